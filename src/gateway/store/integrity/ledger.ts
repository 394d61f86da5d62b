import { hash } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import type { Logger } from '../../../lib/log.ts';
import { type DeliveriesFor, requeueDamaged } from '../repositories/deliveries.ts';
import type { PaymentRow, Tables } from '../schema/tables.ts';
import {
  CHECKED_TABLES,
  type DamagedRow,
  damagedRows,
  joined,
  PAYMENT_CONTENT_SQL,
  paymentContent,
  quarantineDamaged,
} from './checksums.ts';

/** Payments read at a time. */
const BATCH_ROWS_MAX = 5000;
/** Findings that are told by name; the others only by their number. */
const NAMED_MAX = 10;

/** How far the ledger goes: the number and the link of its newest payment, kept or deleted since. */
export interface LedgerHead {
  seq: number;
  /** SHA-256 over the link before it and the payment's own content, in hexadecimal digits; empty before the first. */
  link: string;
}

/** What a look through the whole store found. */
export interface LedgerCheck {
  /** How far the ledger goes. */
  end: LedgerHead;
  /** Whether the ledger has a payment with this number and link, as far as that can still be told. */
  holds(end: LedgerHead): Promise<boolean>;
  /** What is damaged or missing, for people; empty when all is well. */
  problems: string[];
}

/** Name of the one row in the table of the ledger. */
export const LEDGER = 'payments';
const START: LedgerHead = { seq: 0, link: '' };

/** The link of a payment after the one with the link `before`. */
export function linkOf(before: string, payment: PaymentRow): string {
  return chainHash(before, paymentContent(payment));
}

/** The link of a payment with this content. */
export function chainHash(before: string, content: string): string {
  return hash('sha256', joined([before, content]));
}

/** Takes the next number in the ledger for a payment, in the caller's transaction. Throws when the ledger itself is damaged. */
export async function appendToLedger(
  db: Kysely<Tables>,
  payment: Omit<PaymentRow, 'seq'>,
): Promise<PaymentRow & { link: string }> {
  const { end_seq, end_link } = await db.selectFrom('ledger').selectAll().executeTakeFirstOrThrow();
  const numbered = { ...payment, seq: end_seq + 1 };
  const link = linkOf(end_link, numbered);
  await db.updateTable('ledger').set({ end_seq: numbered.seq, end_link: link }).execute();
  return { ...numbered, link };
}

/** Takes down that payments are to be deleted, in the caller's transaction. */
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

/** Looks at every row that carries money, and at the chain of payments. */
export async function verifyLedger(db: Kysely<Tables>): Promise<LedgerCheck> {
  const problems: string[] = [];
  for (const table of CHECKED_TABLES) {
    const damaged = await damagedRows(db, table);
    if (damaged.length > 0) problems.push(`damaged in ${table}: ${namesOf(damaged)}`);
  }
  const ledger = await db.selectFrom('ledger').selectAll().executeTakeFirst();
  if (ledger === undefined)
    return { end: START, holds: async () => false, problems: [...problems, 'the ledger is gone'] };
  const { pruned_seq, pruned_count } = ledger;
  const pruned = { seq: pruned_seq, link: ledger.pruned_link };
  const end = { seq: ledger.end_seq, link: ledger.end_link };
  const missing = pruned_seq - pruned_count - (await countUpTo(db, pruned_seq));
  if (missing !== 0) problems.push(`${missing} of the payments up to number ${pruned_seq} are missing`);
  problems.push(...(await brokenLinks(db, pruned, end)));
  const holds = async ({ seq, link }: LedgerHead) => {
    if (seq < pruned.seq) return true;
    const known = [pruned, end].find((it) => it.seq === seq);
    const kept = known ?? (await db.selectFrom('payments').select('link').where('seq', '=', seq).executeTakeFirst());
    return kept?.link === link;
  };
  return { end, holds, problems };
}

/**
 * Goes on without what is damaged or missing: moves damaged rows to the table `damaged_rows`, for a technician, owes
 * anew what `owedFor` says for payments that are whole, and begins the chain anew after the newest payment that is
 * known of.
 */
export async function acceptLoss(db: Kysely<Tables>, log: Logger, owedFor?: DeliveriesFor): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const aside = await quarantineDamaged(trx);
    if (owedFor !== undefined) await requeueDamaged(trx, aside, owedFor, log);
    const known = (await trx.selectFrom('ledger').selectAll().executeTakeFirst()) ?? { end_seq: 0, end_link: '' };
    const newest = await trx
      .selectFrom('payments')
      .select(['seq', 'link'])
      .orderBy('seq', 'desc')
      .limit(1)
      .executeTakeFirst();
    const end =
      newest !== undefined && newest.seq > known.end_seq ? newest : { seq: known.end_seq, link: known.end_link };
    const pruned_count = end.seq - (await countUpTo(trx, end.seq));
    await trx.deleteFrom('ledger').execute();
    await trx
      .insertInto('ledger')
      .values({
        ...{ name: LEDGER, end_seq: end.seq, end_link: end.link },
        ...{ pruned_seq: end.seq, pruned_link: end.link, pruned_count },
      })
      .execute();
  });
}

/** Problems of the chain between two of its places. */
async function brokenLinks(db: Kysely<Tables>, from: LedgerHead, end: LedgerHead): Promise<string[]> {
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
        problems.push(`payment ${seq} is not the one that was kept after ${last.seq}`);
      last = { seq, link };
    }
    more = rows.length === BATCH_ROWS_MAX;
  }
  if (last.seq < end.seq) problems.push(missingBetween(last.seq, end.seq + 1));
  else if (last.seq > end.seq || last.link !== end.link)
    problems.push(`the ledger ends at payment ${end.seq}, the payments at ${last.seq}`);
  return problems.length <= NAMED_MAX
    ? problems
    : [...problems.slice(0, NAMED_MAX), `${problems.length - NAMED_MAX} more`];
}

/** For people: payments between two numbers that are not there. */
export function missingBetween(before: number, after: number): string {
  const [first, last] = [before + 1, after - 1];
  return first === last
    ? `payment ${first} is missing`
    : `payments ${first} to ${last} are missing, ${last - before} of them`;
}

async function countUpTo(db: Kysely<Tables>, seq: number): Promise<number> {
  const counted = await db
    .selectFrom('payments')
    .select((it) => it.fn.countAll().as('count'))
    .where('seq', '<=', seq)
    .executeTakeFirstOrThrow();
  return Number(counted.count);
}

function namesOf(damaged: readonly DamagedRow[]): string {
  const names = damaged.slice(0, NAMED_MAX).map((it) => it.name);
  const more = damaged.length - names.length;
  return more === 0 ? names.join(', ') : `${names.join(', ')} and ${more} more`;
}
