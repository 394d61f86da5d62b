import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  acceptLossFile,
  highWaterMarkFile,
  readHighWaterMark,
} from '../../src/gateway/store/integrity/high-water-mark.ts';
import type { Database, Server } from './database.ts';
import type { Asked } from './load.ts';

/** A payment in the store. */
export interface StoredPayment {
  id: string;
  number: number;
  link: string;
  content: string;
}

/** What a gateway says that refuses a store without payments that it has acknowledged. */
const REFUSAL =
  /payments? (\d+)(?: to (\d+))? (?:is|are) missing[^;]*acknowledged|payment (\d+) is not the one that had been acknowledged/;

/** The numbers of the payments that this line of a gateway names as lost; undefined when it is no such line. */
export function namedLost(line: string): { first: number; last: number } | undefined {
  // Answers to calls are also logged as a count, a minute later.
  if (line.includes('"event":"request-')) return undefined;
  const found = REFUSAL.exec(line);
  if (found === null) return undefined;
  const first = Number(found[1] ?? found[3]);
  return { first, last: Number(found[2] ?? first) };
}

/** All payments in the store of this server. */
export async function storedPayments(database: Database, server: Server): Promise<StoredPayment[]> {
  const rows = await database.run(
    'select id, number::int as number, link, content from payments order by number',
    server,
  );
  return rows as unknown as StoredPayment[];
}

/** What a failover has lost, judged by the disk of the former primary. */
export class Loss {
  /** Acknowledged payments that the store has no more. */
  readonly acknowledged: readonly StoredPayment[];
  readonly #former: readonly StoredPayment[];
  readonly #now: readonly StoredPayment[];

  constructor(asked: readonly Asked[], former: readonly StoredPayment[], now: readonly StoredPayment[]) {
    const there = new Set(now.map(({ content }) => content));
    const promised = asked.filter(({ outcome }) => outcome.kind === 'answered' && outcome.ok);
    const lost = new Set(promised.map(({ content }) => content).filter((it) => !there.has(it)));
    this.acknowledged = former.filter(({ content }) => lost.has(content));
    this.#former = former;
    this.#now = now;
  }

  /** What is wrong with how the gateway has met the loss; `lines` are all that it logged since. */
  wrong(lines: readonly string[], dataDir: string, databaseUrl: string): string[] {
    const named = lines.map(namedLost).find((it) => it !== undefined);
    const first = this.acknowledged[0]?.number ?? 0;
    const last = this.acknowledged.at(-1)?.number ?? 0;
    const gone = `${this.acknowledged.length} acknowledged payments are gone (${first} to ${last})`;
    const wrong: string[] = [];
    if (named === undefined) wrong.push(`${gone}, and the gateway does not say so`);
    const ids = new Set(this.#former.map(({ id }) => id));
    const reused = this.#now.filter(({ id }) => !ids.has(id));
    if (reused.length > 0)
      wrong.push(`${gone}, and ${reused.length} payments were taken since, from number ${reused[0]?.number}`);
    const head = this.#now.findLast(({ id }) => ids.has(id))?.number ?? 0;
    if (
      named !== undefined &&
      (named.first !== head + 1 || named.last < last || named.last > (this.#former.at(-1)?.number ?? 0))
    ) {
      wrong.push(`${gone} after ${head}, and the gateway names ${named.first} to ${named.last}`);
    }
    const { newest: mark } = readHighWaterMark(highWaterMarkFile({ dataDir, databaseUrl }));
    const marked = mark === undefined || mark === 'damaged' ? undefined : mark;
    const atMark = this.#former.find(({ number }) => number === marked?.number);
    if (marked === undefined || marked.number < last || atMark?.link !== marked.link) {
      wrong.push(`${gone}, and the mark is at ${marked?.number ?? mark}`);
    }
    const kept = evidence(dataDir).filter(({ newestAcknowledged }) => newestAcknowledged.number === marked?.number);
    const listed = new Set(kept.flatMap(({ payments }) => payments.map(({ transactionId }) => transactionId)));
    const unlisted = this.acknowledged.filter(({ id }) => !listed.has(id));
    const known = new Set(this.#now.map(({ id }) => id));
    const listedWrongly = [...listed].filter((id) => !ids.has(id) || known.has(id));
    if (kept.length !== 1 || unlisted.length > 0 || listedWrongly.length > 0) {
      const count = `${unlisted.length} are not listed, and ${listedWrongly.length} that are not missing`;
      wrong.push(`${gone}: of them ${count}, in ${kept.length} files`);
    }
    return wrong;
  }
}

interface Evidence {
  newestAcknowledged: { number: number };
  payments: { transactionId: string }[];
}

/** The files in which a gateway lists payments that its store has lost. */
function evidence(dataDir: string): Evidence[] {
  const files = readdirSync(dataDir).filter((name) => name.includes('.missing-'));
  return files.map((name) => JSON.parse(readFileSync(join(dataDir, name), 'utf8')) as Evidence);
}

/** An admin accepts the loss. */
export async function acceptLoss(dataDir: string, databaseUrl: string): Promise<void> {
  await writeFile(acceptLossFile({ dataDir, databaseUrl }), '');
}
