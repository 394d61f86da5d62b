import { escaped, tookText } from './text.ts';
import { frameId, pictureUrl } from './trace.ts';
import type { EntryKind, TranscriptEntry } from './transcript.ts';

/** The filter labels of the kinds, in the order of display. */
const KINDS: Readonly<Record<EntryKind, string>> = {
  step: 'steps',
  call: 'calls of the bench',
  service: 'calls at the gateway',
  message: 'messages of boxes',
  callback: 'callbacks',
  screen: 'screens',
  status: 'status of boxes',
  problem: 'problems',
};
/** The page hides these kinds until the reader selects them. */
const HIDDEN: readonly EntryKind[] = ['status'];

/**
 * Returns the transcript in its order as HTML, with a filter for each kind that works without script. If the page has a
 * trace (trace.ts) with the same `id`, the pictures link to it, and the row of `problem` has the id `ID-problem`. It
 * escapes everything from outside.
 */
export function timelineOf(
  entries: readonly TranscriptEntry[],
  trace?: { id: string; problem: TranscriptEntry | undefined },
): string {
  if (entries.length === 0) return '';
  const rows = entries.map((entry, index) => row(entry, index, trace));
  return `${filters(entries)}
<table class="timeline"><tbody>
${rows.join('\n')}
</tbody></table>`;
}

function filters(entries: readonly TranscriptEntry[]): string {
  const counts = new Map<EntryKind, number>();
  for (const { kind } of entries) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const labels = Object.entries(KINDS).flatMap(([name, words]) => {
    const kind = name as EntryKind;
    const count = counts.get(kind);
    const checked = HIDDEN.includes(kind) ? '' : ' checked';
    return count === undefined
      ? []
      : [`<label class="${kind}"><input type="checkbox"${checked}> ${words} ${count}</label>`];
  });
  return `<div class="filters">${labels.join('')}</div>`;
}

function row(entry: TranscriptEntry, index: number, trace: Parameters<typeof timelineOf>[1]): string {
  const { atMs, kind, title, detail, picture, qr } = entry;
  const words = escaped(title);
  const told =
    detail === undefined ? words : `<details><summary>${words}</summary><pre>${escaped(json(detail))}</pre></details>`;
  const image = picture === undefined ? '' : pictureOf(picture, trace && frameId(trace.id, index));
  const read = qr === undefined ? '' : `<pre>${qr === null ? 'no QR' : `QR: ${escaped(qr)}`}</pre>`;
  const name = trace?.problem === entry ? ` id="${trace.id}-problem"` : '';
  return `<tr class="${kind}"${name}><td>${tookText(atMs)}</td><td>${kind}</td><td>${told}${image}${read}</td></tr>`;
}

function pictureOf(picture: Uint8Array, frame: string | undefined): string {
  if (frame !== undefined) return ` <a href="#${frame}">its picture</a>`;
  return `<img alt="the screen" src="${pictureUrl(picture)}">`;
}

function json(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, undefined, 1);
}
