import { PATHS } from '../../protocol/http-api.ts';
import { asBegun, begunMs, type Call, isCall, type Overlap, sendBody } from './calls.ts';
import { durationText } from './durations.ts';
import { type Line, line } from './line.ts';
import { withPauses } from './pauses.ts';
import type { Stand } from './stand.ts';
import type { Heard } from './wire-at.ts';

/** Branches of one step `parallel`, one of them for what is seen meanwhile. */
const PUSHES_MAX = 49;

/** Times of what came one after the other may be in another order by less than this, as they are rounded. */
const ROUNDED_MS = 1;

/**
 * The pushes that a scenario has to make at the same time again, by their calls: those to one box while faults stood. A
 * fault may hold one back until the next comes, or have it come after that. Without a fault a box takes pushes in the
 * order in which it is told of them, so that one after the other comes to the same: the same answers, screens and reports.
 */
export function overlapsIn(heard: readonly Heard[], stand: Stand): ReadonlyMap<Call, Overlap> {
  const open = new Map<string, Overlap>();
  const found = new Map<Call, Overlap>();
  for (const call of asBegun(heard.filter((it) => isCall(it, PATHS.sendQr)))) {
    const { terminalCode, serialNumber } = sendBody.safeParse(call.body).data ?? {};
    const box = stand.boxOf(String(terminalCode ?? ''), String(serialNumber ?? ''));
    if (box === undefined || !stand.isFaulty(call.atMs)) continue;
    const before = open.get(box);
    if (before !== undefined && isWithin(call, before) && before.calls.length < PUSHES_MAX) {
      before.calls.push(call);
      before.toMs = Math.max(before.toMs, call.atMs);
      for (const it of before.calls) found.set(it, before);
    } else open.set(box, { fromMs: begunMs(call), toMs: call.atMs, calls: [call] });
  }
  return found;
}

/** Whether a push that began after others did so before all of them were answered. */
function isWithin(call: Call, { toMs }: Overlap): boolean {
  return begunMs(call) < toMs - ROUNDED_MS || call.atMs < toMs;
}

/** The lines with each overlap as one step `parallel`; in order of time before and after. */
export function withOverlaps(lines: readonly Line[]): Line[] {
  const overlaps = new Set(lines.flatMap(({ beside }) => beside?.overlap ?? []));
  return [...overlaps].reduce(folded, [...lines]);
}

function folded(lines: Line[], overlap: Overlap): Line[] {
  const { fromMs, toMs, calls } = overlap;
  const pushes = lines.filter(({ beside }) => beside?.overlap === overlap);
  const isBefore = (it: Line) => it.atMs < fromMs + ROUNDED_MS;
  const meanwhile = lines.filter((it) => it.beside?.overlap !== overlap && !isBefore(it) && it.atMs <= toMs);
  const made = meanwhile.filter(({ step }) => step?.generate !== undefined);
  const seen = meanwhile.filter(({ step }) => step?.expect !== undefined);
  const isOther = (it: Line) => it.step !== undefined && !made.includes(it) && !seen.includes(it);
  // What else was done meanwhile has no place among them; nor can one be left out.
  const isMixed = meanwhile.some((it) => isOther(it) && it.atMs < toMs - ROUNDED_MS);
  if (pushes.length < calls.length || isMixed) return lines;
  const branches = pushes
    .map(({ step, beside }) => ({ step, laterMs: Math.round((beside?.begunMs ?? fromMs) - fromMs) }))
    .sort((a, b) => a.laterMs - b.laterMs)
    .map(({ step, laterMs }) => [...(laterMs > 0 ? [{ wait: durationText(laterMs) }] : []), step]);
  const looks = withPauses(seen, fromMs).map(({ step }) => step);
  const notes = pushes.flatMap((it) => it.notes);
  const parallel = line(fromMs, { parallel: looks.length > 0 ? [...branches, looks] : branches }, ...notes);
  const taken = new Set([...pushes, ...made, ...seen]);
  const others = lines.filter((it) => !taken.has(it));
  return [
    ...others.filter(isBefore),
    ...made.map((it) => ({ ...it, atMs: fromMs })),
    { ...parallel, untilMs: toMs },
    ...others.filter((it) => !isBefore(it)),
  ];
}
