import { z } from 'zod';

const row = z.record(z.string(), z.unknown());
const list = z.array(row);
/** The sales of a day. */
const day = z.object({ day: z.string(), sales: z.int(), paid: z.int(), amount: z.int(), rows: list });
const part = z.union([list, day]);

type Row = z.infer<typeof row>;

/** Times by which lists are sorted. */
const TIMES = ['createdAt', 'madeAt', 'paidAt', 'receivedAt', 'at'];

/** The newest `limit` rows of the lists of all shards; a box that several list is that of the shard where it is online. */
export function merge(parts: readonly Buffer[], limit: number): unknown {
  const values = parts.map((it) => part.parse(JSON.parse(it.toString())));
  const rows = newestFirst(onePerBox(values.flatMap((it) => (Array.isArray(it) ? it : it.rows)))).slice(0, limit);
  const days = values.flatMap((it) => (Array.isArray(it) ? [] : [it]));
  const [first] = days;
  if (first === undefined) return rows;
  const sum = (of: 'sales' | 'paid' | 'amount') => days.reduce((total, it) => total + it[of], 0);
  return { day: first.day, sales: sum('sales'), paid: sum('paid'), amount: sum('amount'), rows };
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
