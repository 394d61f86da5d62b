import { type Clock, withDeadline } from './clock.ts';
import { reasonOf } from './errors.ts';
import type { Logger } from './log.ts';
import { DETACH, onceStarterEnds } from './starter.js';

/** Time from a signal to the end of all parts, whatever hangs: below the promised 2 s, with a reserve for slow machines. */
export const STOP_BUDGET_MS = 1_800;
/** A program exits by then, even if a part has broken its own deadline. */
export const STOP_PROMISE_MS = 1_950;
/** Time that each later stage has at least, when the parts of an earlier one hang. */
const STAGE_MS_MIN = 100;

/** Functions that each end one part. Each gets the milliseconds that the part has; they may run at the same time. */
export type Ends = Readonly<Record<string, (withinMs: number) => unknown>>;

interface Deps {
  clock: Clock;
  log: Logger;
}

/**
 * Ends independent parts, all at once. A part that fails, or has not ended after `withinMs` milliseconds, is logged and
 * abandoned. Never throws.
 */
export async function endAll(ends: Ends, withinMs: number, { clock, log }: Deps): Promise<void> {
  const left = new Set(Object.keys(ends));
  const ending = Object.entries(ends).map(async ([part, end]) => {
    try {
      await end(withinMs);
    } catch (error) {
      log.error('end-failed', { part, reason: reasonOf(error) });
    }
    left.delete(part);
  });
  await withDeadline(clock, withinMs, Promise.all(ending));
  for (const part of left) log.warn('end-late', { part, withinMs: Math.round(withinMs) });
}

/** Ends the parts of each stage as `endAll`, one stage after the other, in `withinMs` milliseconds for all of them. */
export async function endInOrder(stages: readonly Ends[], withinMs: number, deps: Deps): Promise<void> {
  const untilMs = deps.clock.monotonicMs() + withinMs;
  for (const [index, ends] of stages.entries()) {
    const laterMs = (stages.length - 1 - index) * STAGE_MS_MIN;
    await endAll(ends, Math.max(STAGE_MS_MIN, untilMs - laterMs - deps.clock.monotonicMs()), deps);
  }
}

/**
 * Ends this program in order, as SIGTERM does, when its parent is gone, even if it is gone already: one that has a channel
 * to it (`stdio: 'ipc'`), else the one that `onceStarterEnds` names, unless the arguments ask it to stay.
 */
export function endWithParent(args: readonly string[]): void {
  const end = () => process.kill(process.pid, 'SIGTERM');
  if (process.connected === undefined) {
    if (!args.includes(DETACH)) onceStarterEnds(end);
    return;
  }
  if (!process.connected) {
    end();
    return;
  }
  process.channel?.unref();
  process.once('disconnect', end);
}
