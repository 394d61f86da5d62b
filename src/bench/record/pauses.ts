import { durationText } from './durations.ts';
import { type Line, line } from './line.ts';

const SECOND_MS = 1_000;
/** What an expectation waits if it does not say otherwise, less some time for a slower machine. */
const PROMPT_MS = 2_500;
/** What takes longer than this is waited for, but for its last seconds, before it is looked for. */
const LOOKED_FOR_MS = 30_000;
const LAST_LOOKS_MS = 10_000;
/** A wait of a scenario is not longer. */
const WAIT_MAX_MS = 7 * 86_400_000;

/** Pauses ahead of what somebody did, from `fromMs` on; what is waited for is given its time. */
export function withPauses(lines: readonly Line[], fromMs = lines[0]?.atMs ?? 0): Line[] {
  let cursorMs = fromMs;
  return lines.flatMap((it) => {
    const gapMs = it.atMs - cursorMs;
    if (it.step?.expect !== undefined) {
      cursorMs = Math.max(cursorMs, it.atMs);
      if (gapMs <= PROMPT_MS) return [it];
      if (gapMs <= LOOKED_FOR_MS) return [withinOf(it, gapMs)];
      const restMs = Math.min(WAIT_MAX_MS, Math.floor((gapMs - LAST_LOOKS_MS) / SECOND_MS) * SECOND_MS);
      return [line(it.atMs, { wait: durationText(restMs) }), withinOf(it, gapMs - restMs)];
    }
    const waitMs = Math.min(WAIT_MAX_MS, Math.floor(gapMs / SECOND_MS) * SECOND_MS);
    const isPaused = it.step !== undefined && waitMs >= SECOND_MS;
    if (isPaused) cursorMs += waitMs;
    cursorMs = Math.max(cursorMs, it.untilMs ?? cursorMs);
    return isPaused ? [line(it.atMs, { wait: durationText(waitMs) }), it] : [it];
  });
}

/** Gives an expectation what it took, and a quarter more. */
function withinOf(it: Line, gapMs: number): Line {
  const within = durationText(Math.ceil((gapMs * 1.25) / SECOND_MS + 5) * SECOND_MS);
  return { ...it, step: { ...it.step, expect: { ...(it.step?.expect as object), within } } };
}
