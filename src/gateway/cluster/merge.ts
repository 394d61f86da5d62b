import { setImmediate as nextTurn } from 'node:timers/promises';
import { z } from 'zod';

const row = z.record(z.string(), z.unknown());
const list = z.array(row);
/** The sales of a day. */
const day = z.object({ day: z.string(), sales: z.int(), paid: z.int(), amount: z.int(), rows: list });
// These two are read less strictly than they are documented, because a member of another version may add keys.
const backlog = z.object({
  waiting: z.int(),
  failed: z.int(),
  oldestWaitingSeconds: z.number(),
  partners: z.array(z.object({ partner: z.string(), waiting: z.int(), failed: z.int() })),
});
const resent = z.object({ status: z.string(), message: z.string(), callbacks: z.int(), more: z.boolean() });
const faults = z.object({ faults: list, standing: z.array(z.looseObject({ id: z.string(), happened: z.int() })) });

type Row = z.infer<typeof row>;

/** The column of a file of sales with the paid amount. */
const PAID_COLUMN = 3;
/** Lists are sorted by the first of these times that a row has. */
const TIMES = ['createdAt', 'madeAt', 'paidAt', 'receivedAt', 'at'];

/**
 * Merges the answers of all shards into one. Lists get their newest `limit` rows. If several shards list a box, the row
 * of the shard where it is online counts. Counts are added up. Throws when the answers are not of one kind.
 */
export async function merge(parts: readonly Buffer[], limit: number): Promise<unknown> {
  const values: unknown[] = [];
  const lists: Row[][] = [];
  for (const it of parts) {
    const value: unknown = JSON.parse(it.toString());
    values.push(value);
    const rows = list.safeParse(value).data;
    if (rows !== undefined) lists.push(rows);
    // Merging all answers in one turn of the event loop would block everything else.
    await nextTurn();
  }
  const [first] = values;
  if (lists.length === values.length) return mergeRows(lists, limit);
  if (faults.safeParse(first).success) return mergeFaults(z.array(faults).parse(values));
  if (backlog.safeParse(first).success) return mergeBacklogs(z.array(backlog).parse(values));
  if (resent.safeParse(first).success) {
    const all = z.array(resent).parse(values);
    return { ...all[0], callbacks: sum(all.map((it) => it.callbacks)), more: all.some((it) => it.more) };
  }
  const days = z.array(day).parse(values);
  const rows = mergeRows(
    days.map((it) => it.rows),
    limit,
  );
  const of = (name: 'sales' | 'paid' | 'amount') => sum(days.map((it) => it[name]));
  return { day: days[0]?.day, sales: of('sales'), paid: of('paid'), amount: of('amount'), rows };
}

/** Merges files of sales into one. Each has a head, rows that begin with their time, and a sum of the paid amounts. */
export function mergeCsv(parts: readonly Buffer[]): string {
  const files = parts.map((it) => it.toString().trimEnd().split('\r\n'));
  const [head = ''] = files[0] ?? [];
  const rows = files.flatMap((lines) => lines.slice(1, -1)).toSorted();
  const paid = sum(files.map((lines) => Number(lines.at(-1)?.split(',')[PAID_COLUMN])));
  return [head, ...rows, `sum,,,${paid},,,,,`].map((line) => `${line}\r\n`).join('');
}

function mergeRows(lists: readonly Row[][], limit: number): Row[] {
  return newestFirst(onePerBox(lists.flat())).slice(0, limit);
}

/** Lists a fault of all shards once, because each shard counts the occurrences in the others too. */
function mergeFaults(parts: readonly z.infer<typeof faults>[]): z.infer<typeof faults> {
  const standing = new Map<string, z.infer<typeof faults>['standing'][number]>();
  for (const it of parts.flatMap((part) => part.standing)) {
    const happened = Math.max(it.happened, standing.get(it.id)?.happened ?? 0);
    standing.set(it.id, { ...it, happened });
  }
  return { faults: parts[0]?.faults ?? [], standing: [...standing.values()] };
}

function mergeBacklogs(parts: readonly z.infer<typeof backlog>[]): z.infer<typeof backlog> {
  const partners = new Map<string, z.infer<typeof backlog>['partners'][number]>();
  for (const { partner, waiting, failed } of parts.flatMap((it) => it.partners)) {
    const before = partners.get(partner) ?? { waiting: 0, failed: 0 };
    partners.set(partner, { partner, waiting: before.waiting + waiting, failed: before.failed + failed });
  }
  return {
    waiting: sum(parts.map((it) => it.waiting)),
    failed: sum(parts.map((it) => it.failed)),
    oldestWaitingSeconds: Math.max(0, ...parts.map((it) => it.oldestWaitingSeconds)),
    partners: [...partners.values()],
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, it) => total + it, 0);
}

function newestFirst(rows: readonly Row[]): Row[] {
  const timeOf = (it: Row) => String(TIMES.map((name) => it[name]).find((time) => typeof time === 'string') ?? '');
  return rows.toSorted((a, b) => (timeOf(a) < timeOf(b) ? 1 : timeOf(a) > timeOf(b) ? -1 : 0));
}

function onePerBox(rows: readonly Row[]): Row[] {
  const isBox = (it: Row) => 'terminalCode' in it && 'serialNumber' in it;
  const boxes = new Map<unknown, Row>();
  for (const it of rows) {
    if (isBox(it) && (it.online === true || !boxes.has(it.terminalCode))) boxes.set(it.terminalCode, it);
  }
  const sorted = [...boxes.values()].toSorted((a, b) => (String(a.terminalCode) < String(b.terminalCode) ? -1 : 1));
  return [...sorted, ...rows.filter((it) => !isBox(it))];
}

/**
 * Merges the metrics of several shards into one text (Prometheus, text format 0.0.4). Adds the label of its shard to
 * every sample.
 */
export function mergeMetrics(texts: readonly { shard: number; text: string }[]): string {
  const families = new Map<string, { about: Set<string>; samples: string[] }>();
  const familyOf = (name: string) => {
    const family = families.get(name) ?? { about: new Set(), samples: [] };
    families.set(name, family);
    return family;
  };
  for (const { shard, text } of texts) {
    let name = '';
    for (const line of text.split('\n')) {
      const about = /^# (?:HELP|TYPE) (\S+)/.exec(line);
      const sample = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (.+)$/.exec(line);
      if (about?.[1] !== undefined) {
        name = about[1];
        familyOf(name).about.add(line);
      } else if (sample !== null) {
        const [, metric = '', labels = '', value = ''] = sample;
        const all = [`shard="${shard}"`, labels].filter((it) => it !== '').join(',');
        familyOf(metric.startsWith(name) && name !== '' ? name : metric).samples.push(`${metric}{${all}} ${value}`);
      }
    }
  }
  return [...families.values()].map(({ about, samples }) => `${[...about, ...samples].join('\n')}\n`).join('');
}
