import { reasonOf } from '../../lib/errors.ts';
import type { World } from './world.ts';

/** How long work that a gateway has left, and rows of which no hint has arrived, wait for another gateway. */
const LOOK_EVERY_MS = 1_000;

/**
 * Waits until this gateway is the one that does the work of this name for all gateways of its database. Returns false if
 * `signal` aborts before.
 */
export async function untilOurs({ place, clock }: World, work: string, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    if (await place.lease(work)) return !signal.aborted;
    await clock.sleep(LOOK_EVERY_MS, signal);
  }
  return false;
}

/**
 * Calls `look` every second until `signal` aborts, because other gateways change the same rows. At a gateway whose store
 * is its own, nobody does. A failed look is logged once. Settles once the last look has ended: the store must stay open
 * until then.
 */
export async function lookRegularly(
  { place, clock, log }: Pick<World, 'place' | 'clock' | 'log'>,
  what: string,
  signal: AbortSignal,
  look: () => Promise<void>,
): Promise<void> {
  if (place.sharing === undefined) return;
  let hasFailed = false;
  while (!signal.aborted) {
    await clock.sleep(LOOK_EVERY_MS, signal);
    if (signal.aborted) return;
    try {
      await look();
      hasFailed = false;
    } catch (error) {
      if (!hasFailed) log.warn('shared-work-not-read', { what, reason: reasonOf(error) });
      hasFailed = true;
    }
  }
}
