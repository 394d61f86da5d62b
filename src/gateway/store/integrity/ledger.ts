import { hash } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import type { LedgerRow, NewPayment, PaymentRow, Tables } from '../schema/tables.ts';
import { CHECKED_TABLES, damagedRows, joined, PAYMENT_CONTENT_SQL, paymentContent } from './checksums.ts';

/*
 * The ledger makes a change or a loss of stored payments visible.
 *
 * Theory. Every payment has the next number, and a hash over its content and the hash before it. So the payments form a
 * chain: a changed, missing or inserted payment breaks it. A chain alone cannot show that its newest part is gone. So
 * the row of the ledger and the high-water mark outside the store both have its end.
 *
 * Invariants. The row changes in the same transaction as the payments. Old payments are deleted only together with the
 * record of how many are gone, and of the newest of them: `pruned_seq - pruned_count` payments must still be in the
 * store up to `pruned_seq`. A damaged chain is restarted only after an admin has accepted the loss (clause STO-3).
 */

const BATCH_ROWS_MAX = 5000;
/** At most this many problems are named. The others are counted. */
const NAMED_MAX = 10;

/** The newest payment of the ledger: its number, and the hash that chains it to the payments before it. */
export interface LedgerHead {
  seq: number;
  /** SHA-256 over the previous hash and the payment's own content, in hexadecimal. Empty before the first payment. */
  link: string;
}

/** The result of a check of the whole store. */
export interface LedgerCheck {
  head: LedgerHead;
  /** Returns whether the ledger has this number and link. Numbers below the newest pruned one count as known. */
  has(head: LedgerHead): Promise<boolean>;
  /** Descriptions of damage and loss. Empty if there is none. */
  problems: string[];
}

/** The ledger of a store without payments. It has one row. */
export const EMPTY_LEDGER: LedgerRow = {
  name: 'payments',
  end_seq: 0,
  end_link: '',
  pruned_seq: 0,
  pruned_link: '',
  pruned_count: 0,
};

const chainHash = (before: string, content: string) => hash('sha256', joined([before, content]));

/** Gives a payment the next number in the ledger, in the caller's transaction. Throws when the ledger is damaged. */
export async function appendToLedger(db: Kysely<Tables>, payment: NewPayment): Promise<PaymentRow & { link: string }> {
  const { end_seq, end_link } = await db.selectFrom('ledger').selectAll().executeTakeFirstOrThrow();
  const numbered = { ...payment, seq: end_seq + 1 };
  const link = chainHash(end_link, paymentContent(numbered));
  await db.updateTable('ledger').set({ end_seq: numbered.seq, end_link: link }).execute();
  return { ...numbered, link };
}

/** Records in the caller's transaction that these payments are about to be deleted. */
export async function recordPruned(db: Kysely<Tables>, paymentIds: readonly string[]): Promise<void> {
  const newest = await db
    .selectFrom('payments')
    .select(['seq', 'link'])
    .where('id', 'in', paymentIds)
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirstOrThrow();
  await db
    .updateTable('ledger')
    .set((it) => ({ pruned_count: it('pruned_count', '+', paymentIds.length) }))
    .execute();
  await db
    .updateTable('ledger')
    .set({ pruned_seq: newest.seq, pruned_link: newest.link })
    .where('pruned_seq', '<', newest.seq)
    .execute();
}

/** Checks every row that carries money, and the chain of payments. */
export async function verifyLedger(db: Kysely<Tables>): Promise<LedgerCheck> {
  const problems: string[] = [];
  for (const table of CHECKED_TABLES) {
    const names = await damagedRows(db, table);
    const more = names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : '';
    if (names.length > 0) problems.push(`damaged in ${table}: ${names.slice(0, NAMED_MAX).join(', ')}${more}`);
  }
  const ledger = await db.selectFrom('ledger').selectAll().executeTakeFirst();
  if (ledger === undefined) {
    problems.push('the ledger is gone');
    return { head: { seq: 0, link: '' }, has: async () => false, problems };
  }
  const { pruned_seq, pruned_count } = ledger;
  const pruned = { seq: pruned_seq, link: ledger.pruned_link };
  const head = { seq: ledger.end_seq, link: ledger.end_link };
  const missing = pruned_seq - pruned_count - (await paymentsUpTo(db, pruned_seq));
  if (missing !== 0) problems.push(`${missing} of the payments up to number ${pruned_seq} are missing`);
  const broken = await brokenLinks(db, pruned, head);
  problems.push(...broken.slice(0, NAMED_MAX));
  if (broken.length > NAMED_MAX) problems.push(`${broken.length - NAMED_MAX} more`);
  const has = async ({ seq, link }: LedgerHead) => {
    if (seq < pruned.seq) return true;
    const known = [pruned, head].find((it) => it.seq === seq);
    const stored = known ?? (await db.selectFrom('payments').select('link').where('seq', '=', seq).executeTakeFirst());
    return stored?.link === link;
  };
  return { head, has, problems };
}

/** Restarts the chain after the newest known payment. Missing payments count as pruned. */
export async function restartLedger(db: Kysely<Tables>): Promise<void> {
  const known = (await db.selectFrom('ledger').selectAll().executeTakeFirst()) ?? EMPTY_LEDGER;
  const newest = await db
    .selectFrom('payments')
    .select(['seq', 'link'])
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst();
  const { seq, link } =
    newest !== undefined && newest.seq > known.end_seq ? newest : { seq: known.end_seq, link: known.end_link };
  const pruned_count = seq - (await paymentsUpTo(db, seq));
  await db.deleteFrom('ledger').execute();
  const ends = { end_seq: seq, end_link: link, pruned_seq: seq, pruned_link: link, pruned_count };
  await db
    .insertInto('ledger')
    .values({ ...EMPTY_LEDGER, ...ends })
    .execute();
}

/** Returns the problems of the chain after the payment `from`, up to `head`. */
export async function brokenLinks(db: Kysely<Tables>, from: LedgerHead, head: LedgerHead): Promise<string[]> {
  const problems: string[] = [];
  let last = from;
  for (let more = true; more; ) {
    const rows = await db
      .selectFrom('payments')
      .select(['seq', 'link', sql<string>`${sql.raw(PAYMENT_CONTENT_SQL)}`.as('content')])
      .where('seq', '>', last.seq)
      .orderBy('seq')
      .limit(BATCH_ROWS_MAX)
      .execute();
    for (const { seq, link, content } of rows) {
      if (seq !== last.seq + 1) problems.push(missingBetween(last.seq, seq));
      else if (link !== chainHash(last.link, content))
        problems.push(`payment ${seq} is not the one that was stored after ${last.seq}`);
      last = { seq, link };
    }
    more = rows.length === BATCH_ROWS_MAX;
  }
  if (last.seq < head.seq) problems.push(missingBetween(last.seq, head.seq + 1));
  else if (last.seq > head.seq || last.link !== head.link)
    problems.push(`the ledger ends at payment ${head.seq}, the payments at ${last.seq}`);
  return problems;
}

/** Describes the missing payments between two numbers. */
export function missingBetween(before: number, after: number): string {
  const [first, last] = [before + 1, after - 1];
  return first === last
    ? `payment ${first} is missing`
    : `payments ${first} to ${last} are missing, ${last - before} of them`;
}

async function paymentsUpTo(db: Kysely<Tables>, seq: number): Promise<number> {
  const counted = await db
    .selectFrom('payments')
    .select((it) => it.fn.countAll().as('count'))
    .where('seq', '<=', seq)
    .executeTakeFirstOrThrow();
  return Number(counted.count);
}
