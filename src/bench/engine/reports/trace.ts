import { escaped, tookText } from './text.ts';
import type { TranscriptEntry } from './transcript.ts';

/** A trace has at most this many steps. The timeline has all of them. */
const STEPS_MAX = 500;
const JPEG_START = 0xff;

/** The style of a trace. A picture is large while it is the target of its own link, which works by keyboard too. */
export const TRACE_STYLE = `
.trace { max-height: 90vh; overflow: auto; border: 1px solid var(--line); margin: .8rem 0; }
.trace table { width: auto; min-width: 100%; } .trace thead th { position: sticky; top: 0; background: Canvas; z-index: 1; }
.trace td { border-left: 1px solid var(--line); } .trace td:first-child { border-left: none; }
.trace pre { margin: 0; white-space: pre; overflow-wrap: normal; word-break: normal; max-width: 34rem; }
.trace tr.unmet td:first-child { border-left: 4px solid var(--problem); } .trace .line { color: var(--status); user-select: none; }
.trace ol { display: flex; gap: .5rem; list-style: none; margin: 0; padding: 0; align-items: start; }
.trace figure { margin: 0; } .trace img { width: 9rem; height: auto; } .trace figure:target img { width: min(40rem, 80vw); }
.trace figcaption, .trace .state { font-size: 12px; white-space: nowrap; } .trace a:focus-visible { outline: 3px solid var(--call); }
.trace .state { border: 1px solid var(--line); border-radius: 1rem; padding: 0 .5rem; }`;

interface Row {
  step: TranscriptEntry | undefined;
  problem: TranscriptEntry | undefined;
  /** The screens and states of each box until the next step, as HTML. */
  lanes: Map<string, string[]>;
}

/** Returns the id of the picture of an entry. */
export function frameId(id: string, index: number): string {
  return `${id}-frame${index}`;
}

/**
 * Returns HTML with the steps beside their lines of the scenario, and a lane for each box with its screens in their
 * order. It is empty without a screen. `id` begins the ids of pictures. It escapes everything from outside.
 */
export function traceOf(entries: readonly TranscriptEntry[], id: string): string {
  const { rows, left } = rowsOf(entries, id);
  const boxes = [...new Set(rows.flatMap(({ lanes }) => [...lanes.keys()]))].sort();
  if (boxes.length === 0) return '';
  const head = ['time', 'step', ...boxes].map((name) => `<th scope="col">${escaped(name)}</th>`);
  const more = left === 0 ? '' : `<p>${left} more steps are in the timeline only.</p>`;
  return `<div class="trace" role="region" aria-label="trace: steps, and the screens of each box" tabindex="0">
<table><thead><tr>${head.join('')}</tr></thead>
<tbody>
${rows.map((row) => rowOf(row, boxes)).join('\n')}
</tbody></table></div>${more}`;
}

function rowsOf(entries: readonly TranscriptEntry[], id: string): { rows: Row[]; left: number } {
  let row: Row = { step: undefined, problem: undefined, lanes: new Map() };
  const rows = [row];
  let left = 0;
  for (const [index, entry] of entries.entries()) {
    if (entry.kind === 'step') {
      if (rows.length > STEPS_MAX) left += 1;
      else {
        row = { step: entry, problem: undefined, lanes: new Map() };
        rows.push(row);
      }
    } else if (entry.kind === 'problem') row.problem ??= entry;
    const seen = seenIn(entry, frameId(id, index));
    if (seen === undefined) continue;
    const [box = ''] = entry.title.split(', ', 1);
    row.lanes.set(box, [...(row.lanes.get(box) ?? []), seen]);
  }
  return { rows: rows.filter(({ step, lanes }) => step !== undefined || lanes.size > 0), left };
}

function rowOf({ step, problem, lanes }: Row, boxes: readonly string[]): string {
  const cells = boxes.map(
    (box) => `<td><ol>${(lanes.get(box) ?? []).map((it) => `<li>${it}</li>`).join('')}</ol></td>`,
  );
  const unmet = problem === undefined ? '' : `<p class="problem">${escaped(problem.title)}</p>`;
  const time = step === undefined ? '' : tookText(step.atMs);
  const words = step === undefined ? 'before the first step' : stepOf(step);
  return `<tr${problem === undefined ? '' : ' class="unmet"'}><td>${time}</td><td>${words}${unmet}</td>${cells.join('')}</tr>`;
}

/** Steps within a step begin below these lines and have rows of their own. */
const NESTING = /^[ -]*(?:steps|parallel|for each box|then|else):\s*$/;

/** Returns the step's lines as they are written, or its title if it has none. */
function stepOf({ title, box, lines = [] }: TranscriptEntry): string {
  const nested = lines.findIndex(({ text }) => NESTING.test(text));
  const own = nested < 0 ? lines : lines.slice(0, nested + 1);
  if (own.length === 0) return escaped(title);
  const indent = own[0]?.text.search(/\S|$/) ?? 0;
  const words = own.map(({ line, text }) => `<span class="line">${line}</span> ${escaped(text.slice(indent))}`);
  const who = box === undefined ? '' : `<span class="state">${escaped(box)}</span>`;
  return `${who}<pre title="${escaped(title)}">${words.join('\n')}</pre>`;
}

/** Returns a screen or the state of a box as HTML. */
function seenIn({ kind, title, atMs, picture, detail, qr }: TranscriptEntry, frame: string): string | undefined {
  if (kind === 'status') {
    const state = typeof detail === 'object' && detail !== null && 'state' in detail ? detail.state : undefined;
    return typeof state === 'string' ? `<span class="state">${escaped(state)}</span>` : undefined;
  }
  if (picture === undefined) return undefined;
  const words = `${title} after ${tookText(atMs)}${typeof qr === 'string' ? ', with a QR' : ''}`;
  return `<figure id="${frame}"><a href="#${frame}"><img alt="${escaped(words)}" src="${pictureUrl(picture)}"></a>
<figcaption>${tookText(atMs)}</figcaption></figure>`;
}

/** Returns a picture of a probe as a data URL. */
export function pictureUrl(picture: Uint8Array): string {
  const type = picture[0] === JPEG_START ? 'image/jpeg' : 'image/png';
  return `data:${type};base64,${Buffer.from(picture).toString('base64')}`;
}
