import { type Clock, withDeadline } from './clock.ts';
import { reasonOf } from './errors.ts';
import type { Logger } from './log.ts';
import { DETACH, onceStarterEnds } from './starter.js';

/**
 * All parts must end within this time after a signal, even if some hang. It is below the promised 2 s, with a reserve
 * for slow machines.
 */
export const STOP_BUDGET_MS = 1_800;
/** A program exits after this time, even if a part has missed its own deadline. */
export const STOP_PROMISE_MS = 1_950;
/** Each later stage has at least this time, when parts of an earlier one hang. */
const STAGE_MS_MIN = 100;

/**
 * Maps the name of each part to the function that ends it. Each function receives its time limit in milliseconds, and
 * all may run at the same time.
 */
export type Ends = Readonly<Record<string, (withinMs: number) => unknown>>;

interface Deps {
  clock: Clock;
  log: Logger;
}

/**
 * Ends independent parts, all at once. It logs and abandons a part that fails or has not ended after `withinMs`
 * milliseconds. Never throws.
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
  for (const part of left) log.warn('end-timed-out', { part, withinMs: Math.round(withinMs) });
}

/**
 * Ends the parts of each stage as `endAll` does, one stage after the other, in `withinMs` milliseconds for all of them.
 */
export async function endInOrder(stages: readonly Ends[], withinMs: number, deps: Deps): Promise<void> {
  const untilMs = deps.clock.monotonicMs() + withinMs;
  for (const [index, ends] of stages.entries()) {
    const laterMs = (stages.length - 1 - index) * STAGE_MS_MIN;
    await endAll(ends, Math.max(STAGE_MS_MIN, untilMs - laterMs - deps.clock.monotonicMs()), deps);
  }
}

/**
 * Ends this program in order, as SIGTERM does, once its parent is gone, even if it is gone already. The parent is the
 * one with a channel to it (`stdio: 'ipc'`), else the one that `onceStarterEnds` finds. Arguments may ask the program
 * to stay.
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
