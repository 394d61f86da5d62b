import type { Pace } from '../pace.ts';

/** Why something is not yet as it should be; undefined once it is. */
export type Look = () => Promise<string | undefined>;

/** Looks until there is no problem, for at most `withinMs`; the last problem if there still is one. */
export async function untilRight(
  pace: Pace,
  withinMs: number,
  look: Look,
  signal: AbortSignal,
): Promise<string | undefined> {
  const endMs = pace.clock.monotonicMs() + withinMs;
  const pause = pace.pauses();
  for (;;) {
    const problem = await pace.during(look);
    if (problem === undefined || pace.clock.monotonicMs() >= endMs) return problem;
    signal.throwIfAborted();
    await pause();
  }
}

/** Looks again and again for `forMs`; the first problem. */
export async function whileRight(
  pace: Pace,
  forMs: number,
  look: Look,
  signal: AbortSignal,
): Promise<string | undefined> {
  const endMs = pace.clock.monotonicMs() + forMs;
  const pause = pace.pauses();
  while (pace.clock.monotonicMs() < endMs) {
    signal.throwIfAborted();
    await pause();
    const problem = await pace.during(look);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
