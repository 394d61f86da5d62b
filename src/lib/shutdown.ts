import { type Clock, withDeadline } from './clock.ts';
import { reasonOf } from './errors.ts';
import type { Logger } from './log.ts';

/**
 * From a signal to the exit in milliseconds, whatever hangs: under the 2 s that are promised, with room for a slow
 * machine. Only a write in hand is waited for beyond it.
 */
export const STOP_BUDGET_MS = 1_800;

/** What ends one part; it may be called while others end. */
export type Ends = Readonly<Record<string, () => unknown>>;

/**
 * Ends parts that do not depend on each other, all at once. One that fails, or has not ended after `withinMs`
 * milliseconds, is named in the log and left behind. Never throws.
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
 * Has this program end in order when the one that started it is gone, however that ended, also if it is gone already.
 * Only with a channel to it (`stdio: 'ipc'`); one without stays.
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
