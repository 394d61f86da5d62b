import { callbackLines } from './called-back.ts';
import { Deeds } from './deeds.ts';
import { durationText } from './durations.ts';
import { Ledger } from './ledger.ts';
import { type Line, line, note } from './line.ts';
import { Outages } from './outages.ts';
import type { Recording } from './recording.ts';
import { Stand } from './stand.ts';
import { Views } from './views.ts';

const SECOND_MS = 1_000;
/** What an expectation waits if it does not say otherwise, less some time for a slower machine. */
const PROMPT_MS = 2_500;
/** What takes longer than this is waited for, but for its last seconds, before it is looked for. */
const LOOKED_FOR_MS = 30_000;
const LAST_LOOKS_MS = 10_000;
/** A wait of a scenario is not longer. */
const WAIT_MAX_MS = 7 * 86_400_000;
/** Lines of a file, and their characters: a scenario takes no more. */
const LINES_MAX = 950;
const CHARS_MAX = 150_000;
/** Of a line besides what it says. */
const LINE_CHARS = 40;

/** A session as the lines of a scenario, in order. */
export interface Story {
  stand: Stand;
  lines: Line[];
  /** Lines that there was no room for. */
  linesLeft: number;
  counts: { orders: number; payments: number };
}

/** Retells a session: what was done, with the real pauses, and after it what was shown, reported and called back. */
export function storyOf(recording: Recording): Story {
  const stand = new Stand(recording);
  const ledger = new Ledger(recording.heard);
  const outages = new Outages(recording, stand);
  const deeds = new Deeds(stand, ledger, outages).linesOf(recording.heard);
  const all = [
    ...outages.lines(),
    ...deeds,
    ...new Views(recording, stand, ledger).lines(),
    ...callbackLines(recording, stand, ledger),
  ];
  const inOrder = all.sort((a, b) => a.atMs - b.atMs || Number(b.isAhead ?? false) - Number(a.isAhead ?? false));
  const timed = withPauses(inOrder);
  const fitting = fittingOf(timed);
  return {
    stand,
    lines: fitting,
    linesLeft: timed.length - fitting.length,
    counts: { orders: ledger.orders.length, payments: ledger.payments.size },
  };
}

/** The first of them, as many as one scenario takes. */
function fittingOf(lines: readonly Line[]): Line[] {
  let chars = 0;
  const end = lines.findIndex(({ step, notes }, index) => {
    chars += JSON.stringify([step, notes]).length + LINE_CHARS;
    return index >= LINES_MAX || chars > CHARS_MAX;
  });
  return end < 0 ? [...lines] : lines.slice(0, end);
}

/** Pauses ahead of what somebody did; what is waited for is given its time. */
function withPauses(lines: readonly Line[]): Line[] {
  const [first] = lines;
  let cursorMs = first?.atMs ?? 0;
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
    if (it.step === undefined || waitMs < SECOND_MS) return [it];
    cursorMs += waitMs;
    return [line(it.atMs, { wait: durationText(waitMs) }), it];
  });
}

/** Gives an expectation what it took, and a quarter more. */
function withinOf(it: Line, gapMs: number): Line {
  const within = durationText(Math.ceil((gapMs * 1.25) / SECOND_MS + 5) * SECOND_MS);
  return { ...it, step: { ...it.step, expect: { ...(it.step?.expect as object), within } } };
}

/** What a file says of a recording that is not whole. */
export function gapsOf({ lost }: Recording, { linesLeft }: Story): Line[] {
  return [
    ...(lost === 0
      ? []
      : [note(0, `the gateway had forgotten ${lost} earlier entries: what came of them is not here`)]),
    ...(linesLeft === 0 ? [] : [note(0, `${linesLeft} later steps had no room in one scenario`)]),
  ];
}
