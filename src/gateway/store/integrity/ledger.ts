import { hash } from 'node:crypto';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { LedgerRow, NewPayment, PaymentRow, Tables } from '../schema/tables.ts';
import { CHECKED_TABLES, damagedRows, isPostgres, joined, PAYMENT_CONTENT_SQL, paymentContent } from './checksums.ts';

/*
 * The ledger makes a change or a loss of stored payments visible.
 *
 * Theory. Every payment has the next number of its writer, and a hash over its content and the hash before it. So the
 * payments of a writer form a chain: a changed, missing or inserted payment breaks it. A chain alone cannot show that
 * its newest part is gone. So a row of the ledger and the high-water mark outside the store both have its end. Gateways
 * that share a database are a writer each, so none of them waits for a payment of another.
 *
 * Invariants. The row changes in the same transaction as the payments. Old payments are deleted only together with the
 * record of how many are gone, and of the newest of them: `pruned_seq - pruned_count` payments must still be in the
 * chain up to `pruned_seq`. A damaged chain is restarted only after an admin has accepted the loss (clause STO-3).
 */

const BATCH_ROWS_MAX = 5000;
/** At most this many problems are named. The others are counted. */
const NAMED_MAX = 10;

/** The newest payment of a chain: its number, and the hash that chains it to the payments before it. */
export interface LedgerHead {
  number: number;
  /** SHA-256 over the previous hash and the payment's own content, in hexadecimal. Empty before the first payment. */
  link: string;
}

/** The end of a chain without payments. */
export const NO_PAYMENT: LedgerHead = { number: 0, link: '' };

/** The result of a check of the whole store. */
export interface LedgerCheck {
  /** The end of each chain, by its writer. */
  heads: ReadonlyMap<string, LedgerHead>;
  /** Descriptions of damage and loss. Empty if there is none. */
  problems: string[];
}

const chainHash = (before: string, content: string) => hash('sha256', joined([before, content]));

/** Returns the row of a chain without payments. */
function emptyChain(writer: string): LedgerRow {
  return { name: writer, end_seq: 0, end_link: '', pruned_seq: 0, pruned_link: '', pruned_count: 0 };
}

/** Returns the row of a writer's chain. */
export function chainOf(db: Kysely<Tables>, writer: string): Promise<LedgerRow | undefined> {
  return db.selectFrom('ledger').selectAll().where('name', '=', writer).executeTakeFirst();
}

/** Begins the chain of a writer, unless it has one. */
export async function beginChain(db: Kysely<Tables>, writer: string): Promise<void> {
  await db
    .insertInto('ledger')
    .values(emptyChain(writer))
    .onConflict((it) => it.doNothing())
    .execute();
}

/**
 * Stores a payment as the next one in the chain of its writer, in the caller's transaction. `seq` is its place in the
 * lists of all payments. Throws when the ledger is damaged.
 */
export async function appendToLedger(
  db: Kysely<Tables>,
  writer: string,
  payment: NewPayment,
  seq: RawBuilder<number>,
): Promise<Omit<PaymentRow, 'seq'> & LedgerHead> {
  const chain = db.selectFrom('ledger').select(['end_seq', 'end_link']).where('name', '=', writer);
  const { end_seq, end_link } = await chain.executeTakeFirstOrThrow();
  const numbered = { ...payment, writer, number: end_seq + 1 };
  const chained = { ...numbered, link: chainHash(end_link, paymentContent(numbered)) };
  const end = { end_seq: chained.number, end_link: chained.link };
  // The row is locked first, so that of two payments at once one conflicts, and is stored again after the other.
  await db.updateTable('ledger').set(end).where('name', '=', writer).execute();
  await db
    .insertInto('payments')
    .values({ ...chained, seq })
    .execute();
  return chained;
}

/** Records in the caller's transaction that these payments are about to be deleted. */
export async function recordPruned(db: Kysely<Tables>, paymentIds: readonly string[]): Promise<void> {
  const pruned = db.selectFrom('payments').select(['writer', 'number', 'link']).where('id', 'in', paymentIds);
  const byWriter = Map.groupBy(await pruned.orderBy('number').execute(), ({ writer }) => writer);
  for (const [writer, payments] of byWriter) {
    const chain = db.updateTable('ledger').where('name', '=', writer);
    await chain.set((it) => ({ pruned_count: it('pruned_count', '+', payments.length) })).execute();
    const newest = payments.at(-1) ?? NO_PAYMENT;
    const end = { pruned_seq: newest.number, pruned_link: newest.link };
    await chain.set(end).where('pruned_seq', '<', newest.number).execute();
  }
}

/**
 * Runs queries that all see the store at one moment, although other gateways write. They must only read. A SQLite store
 * has no other writer.
 */
export function atOneMoment<T>(db: Kysely<Tables>, work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
  return isPostgres(db) ? db.transaction().setIsolationLevel('repeatable read').execute(work) : work(db);
}

/** Checks every row that carries money, and each chain of payments. */
export async function verifyLedger(db: Kysely<Tables>): Promise<LedgerCheck> {
  const problems: string[] = [];
  for (const table of CHECKED_TABLES) {
    const names = await damagedRows(db, table);
    const more = names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : '';
    if (names.length > 0) problems.push(`damaged in ${table}: ${names.slice(0, NAMED_MAX).join(', ')}${more}`);
  }
  const chains = await db.selectFrom('ledger').selectAll().orderBy('name').execute();
  for (const writer of await writersOf(db)) {
    if (!chains.some(({ name }) => name === writer)) problems.push(`the ledger${ofWriter(writer)} is gone`);
  }
  for (const chain of chains) problems.push(...(await problemsOf(db, chain)));
  return { heads: new Map(chains.map((it) => [it.name, endOf(it)])), problems };
}

async function problemsOf(db: Kysely<Tables>, chain: LedgerRow): Promise<string[]> {
  const { name, pruned_seq, pruned_count } = chain;
  const missing = pruned_seq - pruned_count - (await paymentsUpTo(db, name, pruned_seq));
  const broken = await brokenLinks(db, name, prunedEndOf(chain), endOf(chain));
  return [
    ...(missing === 0 ? [] : [`${missing} of the payments${ofWriter(name)} up to number ${pruned_seq} are missing`]),
    ...broken.slice(0, NAMED_MAX),
    ...(broken.length > NAMED_MAX ? [`${broken.length - NAMED_MAX} more`] : []),
  ];
}

/** Restarts each chain after its newest known payment. Missing payments count as pruned. */
export async function restartLedger(db: Kysely<Tables>): Promise<void> {
  const chains = await db.selectFrom('ledger').selectAll().execute();
  const writers = new Set([...chains.map(({ name }) => name), ...(await writersOf(db))]);
  await db.deleteFrom('ledger').execute();
  for (const writer of writers) {
    const known = endOf(chains.find(({ name }) => name === writer) ?? emptyChain(writer));
    const payments = db.selectFrom('payments').select(['number', 'link']).where('writer', '=', writer);
    const newest = (await payments.orderBy('number', 'desc').limit(1).executeTakeFirst()) ?? NO_PAYMENT;
    const { number, link } = newest.number > known.number ? newest : known;
    const pruned_count = number - (await paymentsUpTo(db, writer, number));
    const ends = { end_seq: number, end_link: link, pruned_seq: number, pruned_link: link, pruned_count };
    await db
      .insertInto('ledger')
      .values({ name: writer, ...ends })
      .execute();
  }
}

/** Returns the problems of a writer's chain after the payment `from`, up to `head`. */
export async function brokenLinks(
  db: Kysely<Tables>,
  writer: string,
  from: LedgerHead,
  head: LedgerHead,
): Promise<string[]> {
  const problems: string[] = [];
  const of = ofWriter(writer);
  let last = from;
  for (let more = true; more; ) {
    const rows = await db
      .selectFrom('payments')
      .select(['number', 'link', sql<string>`${sql.raw(PAYMENT_CONTENT_SQL)}`.as('content')])
      .where('writer', '=', writer)
      .where('number', '>', last.number)
      .orderBy('number')
      .limit(BATCH_ROWS_MAX)
      .execute();
    for (const { number, link, content } of rows) {
      if (number !== last.number + 1) problems.push(missingBetween(last.number, number, writer));
      else if (link !== chainHash(last.link, content))
        problems.push(`payment ${number}${of} is not the one that was stored after ${last.number}`);
      last = { number, link };
    }
    more = rows.length === BATCH_ROWS_MAX;
  }
  if (last.number < head.number) problems.push(missingBetween(last.number, head.number + 1, writer));
  else if (last.number > head.number || last.link !== head.link)
    problems.push(`the ledger${of} ends at payment ${head.number}, the payments at ${last.number}`);
  return problems;
}

/** Describes the missing payments of a writer between two numbers. */
export function missingBetween(before: number, after: number, writer: string): string {
  const [first, last] = [before + 1, after - 1];
  const of = ofWriter(writer);
  return first === last
    ? `payment ${first}${of} is missing`
    : `payments ${first} to ${last}${of} are missing, ${last - before} of them`;
}

/** Names a writer for people. A gateway alone needs no name. */
export function ofWriter(writer: string): string {
  return writer === '' ? '' : ` of gateway ${writer}`;
}

/** Returns the end of a chain. */
export function endOf({ end_seq, end_link }: LedgerRow): LedgerHead {
  return { number: end_seq, link: end_link };
}

/** Returns the newest pruned payment of a chain. */
export function prunedEndOf({ pruned_seq, pruned_link }: LedgerRow): LedgerHead {
  return { number: pruned_seq, link: pruned_link };
}

/** Returns the writers that must have a chain: those of all payments, and a gateway alone. */
async function writersOf(db: Kysely<Tables>): Promise<ReadonlySet<string>> {
  const rows = await db.selectFrom('payments').select('writer').distinct().orderBy('writer').execute();
  return new Set(['', ...rows.map(({ writer }) => writer)]);
}

async function paymentsUpTo(db: Kysely<Tables>, writer: string, number: number): Promise<number> {
  const counted = await db
    .selectFrom('payments')
    .select((it) => it.fn.countAll().as('count'))
    .where('writer', '=', writer)
    .where('number', '>', 0)
    .where('number', '<=', number)
    .executeTakeFirstOrThrow();
  return Number(counted.count);
}
