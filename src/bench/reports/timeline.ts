import { escaped, tookText } from './text.ts';
import type { EntryKind, TranscriptEntry } from './transcript.ts';

/** Filter labels of the kinds, in display order. */
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
/** Kinds that are hidden until selected. */
const HIDDEN: readonly EntryKind[] = ['status'];

/**
 * The transcript in order, with a filter for each kind that works without script. The entry `marked` gets the id `id`. Everything
 * from outside is escaped.
 */
export function timelineOf(
  entries: readonly TranscriptEntry[],
  marked?: { entry: TranscriptEntry; id: string },
): string {
  if (entries.length === 0) return '';
  const rows = entries.map((entry) => row(entry, entry === marked?.entry ? marked.id : undefined));
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

function row({ atMs, kind, title, detail, picture, qr }: TranscriptEntry, id: string | undefined): string {
  const words = escaped(title);
  const told =
    detail === undefined ? words : `<details><summary>${words}</summary><pre>${escaped(json(detail))}</pre></details>`;
  const image =
    picture === undefined ? '' : `<img alt="the screen" src="data:${typeOf(picture)};base64,${base64(picture)}">`;
  const read = qr === undefined ? '' : `<pre>${qr === null ? 'no QR' : `QR: ${escaped(qr)}`}</pre>`;
  const name = id === undefined ? '' : ` id="${id}"`;
  return `<tr class="${kind}"${name}><td>${tookText(atMs)}</td><td>${kind}</td><td>${told}${image}${read}</td></tr>`;
}

function json(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, undefined, 1);
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

const JPEG_START = 0xff;

function typeOf([first]: Uint8Array): string {
  return first === JPEG_START ? 'image/jpeg' : 'image/png';
}
