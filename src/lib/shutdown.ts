import { type Clock, withDeadline } from './clock.ts';
import { reasonOf } from './errors.ts';
import type { Logger } from './log.ts';

/**
 * Time from a signal to the exit, whatever hangs: below the promised 2 s, with a reserve for slow machines. Only a
 * write in progress may exceed it.
 */
export const STOP_BUDGET_MS = 1_800;

/** Functions that each end one part; they may run at the same time. */
export type Ends = Readonly<Record<string, () => unknown>>;

/**
 * Ends independent parts, all at once. A part that fails, or has not ended after `withinMs` milliseconds, is logged and
 * abandoned. Never throws.
 */
export async function endAll(
  ends: Ends,
  withinMs: number,
  { clock, log }: { clock: Clock; log: Logger },
): Promise<void> {
  const left = new Set(Object.keys(ends));
  const ending = Object.entries(ends).map(async ([part, end]) => {
    try {
      await end();
    } catch (error) {
      log.error('end-failed', { part, reason: reasonOf(error) });
    }
    left.delete(part);
  });
  await withDeadline(clock, withinMs, Promise.all(ending));
  for (const part of left) log.warn('end-late', { part, withinMs: Math.round(withinMs) });
}

/**
 * Ends this program in order when its parent is gone, even if it is gone already. Needs the parent's channel (`stdio:
 * 'ipc'`); does nothing without one.
 */
export function endWithParent(): void {
  if (process.connected === undefined) return;
  const end = () => process.kill(process.pid, 'SIGTERM');
  if (!process.connected) {
    end();
    return;
  }
  process.channel?.unref();
  process.once('disconnect', end);
}
