import { callbackLines } from './called-back.ts';
import { Deeds } from './deeds.ts';
import { endOfFaults } from './injected.ts';
import { Ledger } from './ledger.ts';
import { type Line, note } from './line.ts';
import { Outages } from './outages.ts';
import { withOverlaps } from './overlaps.ts';
import { withPauses } from './pauses.ts';
import type { Recording } from './recording.ts';
import { Stand } from './stand.ts';
import { Views } from './views.ts';

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
  const timed = withPauses(withOverlaps([...inOrder, ...endOfFaults(inOrder)]));
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

/** What a file says of a recording that is not whole. */
export function gapsOf({ lost }: Recording, { linesLeft }: Story): Line[] {
  return [
    ...(lost === 0
      ? []
      : [note(0, `the gateway had forgotten ${lost} earlier entries: what came of them is not here`)]),
    ...(linesLeft === 0 ? [] : [note(0, `${linesLeft} later steps had no room in one scenario`)]),
  ];
}
