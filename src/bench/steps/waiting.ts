import type { TestTime } from '../test-time.ts';

/** Why something is not yet as it should be; undefined once it is. */
export type Check = () => Promise<string | undefined>;

/** Looks until there is no problem, for at most `withinMs`; the last problem if there still is one. */
export async function waitUntilRight(
  time: TestTime,
  withinMs: number,
  look: Check,
  signal: AbortSignal,
): Promise<string | undefined> {
  const endMs = time.clock.monotonicMs() + withinMs;
  const pause = time.pollDelay();
  for (;;) {
    const problem = await time.inRealTime(look);
    if (problem === undefined || time.clock.monotonicMs() >= endMs) return problem;
    signal.throwIfAborted();
    await pause();
  }
}

/** Looks again and again for `forMs`; the first problem. */
export async function watchWhileRight(
  time: TestTime,
  forMs: number,
  look: Check,
  signal: AbortSignal,
): Promise<string | undefined> {
  const endMs = time.clock.monotonicMs() + forMs;
  const pause = time.pollDelay();
  while (time.clock.monotonicMs() < endMs) {
    signal.throwIfAborted();
    await pause();
    const problem = await time.inRealTime(look);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
