import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { type Kysely, sql } from 'kysely';
import { systemClock } from '../../../lib/clock.ts';
import { ConfigError, reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Tables } from '../schema/tables.ts';
import { storeFile } from '../store-files.ts';
import { acceptLossFile, highWaterMarkFile, type KnownPayments, type StoreLocation } from './high-water-mark.ts';
import { brokenLinks, type LedgerHead, missingBetween } from './ledger.ts';
import type { AcknowledgedPayment } from './recent-payments.ts';

/** The setting with the newest payment that another gateway had acknowledged, and did not find in this database. */
const REPORTED = 'missing-payment';
/** The setting with the newest payments whose loss an admin has accepted, as `seq link`, one a line. */
const ACCEPTED = 'accepted-losses';
/** At most this many accepted losses are stored. A gateway that was away for longer needs a new acceptance. */
const ACCEPTED_MAX = 100;
const OWNER_ONLY = 0o600;
const LINK_CHARS = 8;
/** At most this many missing payments are logged, one a line. The file contains all that are known. */
const LOGGED_MAX = 100;

/** Payments that were acknowledged, and that a ledger does not contain. */
export interface Loss {
  /** A text for people. */
  problem: string;
  /** The newest payment that was acknowledged. */
  newest: LedgerHead;
  /** The newest payment of the ledger. */
  found: LedgerHead;
  /** The number of the first missing payment. */
  from: number;
  /** The number of the last missing payment. */
  to: number;
  /** The missing payments whose facts are known, in the order of their numbers. */
  payments: AcknowledgedPayment[];
}

/**
 * Compares a ledger with the payments that a gateway has acknowledged: their numbers, their links, and the chain after
 * the newest one. If the ledger is longer, it has commits whose answers were lost. Returns undefined when nothing is
 * missing, or when an admin has accepted the loss.
 */
export async function lossIn(db: Kysely<Tables>, { newest, recent }: KnownPayments): Promise<Loss | undefined> {
  if (typeof newest !== 'object') return undefined;
  const ledger = await db.selectFrom('ledger').selectAll().executeTakeFirst();
  const found = { seq: ledger?.end_seq ?? 0, link: ledger?.end_link ?? '' };
  const problem =
    newest.seq > found.seq
      ? `${missingBetween(found.seq, newest.seq + 1)}, which had been acknowledged`
      : await problemAfter(db, newest, found, { seq: ledger?.pruned_seq ?? 0, link: ledger?.pruned_link ?? '' });
  if (problem === undefined || (await acceptedLosses(db)).includes(textOf(newest))) return undefined;
  const stored = new Set<string>();
  const [oldest] = recent;
  if (oldest !== undefined) {
    const rows = db.selectFrom('payments').select('link').where('seq', '>=', oldest.seq);
    for (const { link } of await rows.execute()) stored.add(link);
  }
  const payments = recent.filter(({ seq, link }) => seq > (ledger?.pruned_seq ?? 0) && !stored.has(link));
  const from = Math.min(payments[0]?.seq ?? newest.seq, newest.seq > found.seq ? found.seq + 1 : newest.seq);
  return { problem, newest, found, from, to: newest.seq, payments };
}

/** Returns why a ledger of sufficient length does not continue from the payment `known`. Undefined when it does. */
async function problemAfter(
  db: Kysely<Tables>,
  known: LedgerHead,
  head: LedgerHead,
  pruned: LedgerHead,
): Promise<string | undefined> {
  // Payments that were deleted because of their age or number are not missing.
  if (known.seq < pruned.seq || known.seq === 0) return undefined;
  const own = [pruned, head].find(({ seq }) => seq === known.seq);
  const row = own ?? (await db.selectFrom('payments').select('link').where('seq', '=', known.seq).executeTakeFirst());
  if (row?.link !== known.link) return `payment ${known.seq} is not the one that had been acknowledged`;
  return (await brokenLinks(db, known, head))[0];
}

/** Returns the loss of all payments, for a database without the tables of a store. */
export function wholeLoss({ newest, recent }: KnownPayments): Loss | undefined {
  if (typeof newest !== 'object' || newest.seq === 0) return undefined;
  const problem = `${missingBetween(0, newest.seq + 1)}, which had been acknowledged`;
  return { problem, newest, found: { seq: 0, link: '' }, from: 1, to: newest.seq, payments: [...recent] };
}

/** Logs a loss: each payment whose facts are known, then what to do. Writes them to a file. */
export function logLoss(loss: Loss, location: StoreLocation, log: Logger): void {
  const { problem, payments, from, to } = loss;
  const evidence = keepEvidence(loss, location, log);
  for (const payment of payments.slice(0, LOGGED_MAX)) log.error('payment-missing', factsOf(payment));
  const unnamed = to - from + 1 - Math.min(payments.length, LOGGED_MAX);
  const more = unnamed > 0 ? { notLogged: unnamed } : {};
  log.error('payments-missing', { problem, store: storeOf(location), ...more, evidence, fix: fixOf(location) });
}

/** Writes the missing payments to a file beside the mark, once for each loss. Returns the path of the file. */
function keepEvidence(loss: Loss, location: StoreLocation, log: Logger): string {
  const { newest, found, from, to, payments } = loss;
  const name = `${from}-${to}-${newest.link.slice(0, LINK_CHARS)}-${found.link.slice(0, LINK_CHARS) || 'empty'}`;
  const file = highWaterMarkFile(location, `.missing-${name}.json`);
  const content = {
    what: 'Payments that this gateway had acknowledged, and that its store does not have',
    foundAt: new Date(systemClock.wallMs()).toISOString(),
    store: storeOf(location),
    missing: { from, to, count: to - from + 1 },
    newestAcknowledged: { number: newest.seq, link: newest.link },
    found: { number: found.seq, link: found.link },
    // The mark has only the numbers of older payments.
    payments: payments.map(factsOf),
  };
  try {
    const fd = openSync(file, 'wx', OWNER_ONLY);
    try {
      writeSync(fd, `${JSON.stringify(content, null, 2)}\n`);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    // This run or an earlier one has already written the file.
    if (systemCodeOf(error) !== 'EEXIST') log.error('evidence-not-written', { file, reason: reasonOf(error) });
  }
  return file;
}

/** Returns the refusal of a start whose store is damaged or incomplete. */
export function lossError(problems: readonly string[], location: StoreLocation): ConfigError {
  const store = location.databaseUrl === undefined ? storeFile(location.dataDir) : 'in PostgreSQL';
  return new ConfigError(
    `dataDir: the store ${store} is damaged or incomplete: ${problems.join('; ')}`,
    `restore a copy of the store, or make the empty file ${acceptLossFile(location)} to go on without what is named ` +
      'here; the start deletes that file, and nothing else',
  );
}

/** Stores in the database which newest payment it lacks, for any other gateway that opens it. */
export async function reportLoss(db: Kysely<Tables>, { newest }: Loss): Promise<void> {
  await keepSetting(db, REPORTED, textOf(newest));
}

/** Returns the newest payment that another gateway has missed in this database. */
export async function reportedLoss(db: Kysely<Tables>): Promise<LedgerHead | undefined> {
  const [, seq, link] = /^(\d+) (\S+)$/.exec((await settingOf(db, REPORTED)) ?? '') ?? [];
  return seq === undefined || link === undefined ? undefined : { seq: Number(seq), link };
}

/** Deletes the loss that another gateway has reported. Stores the payments whose loss an admin has accepted. */
export async function settleLosses(db: Kysely<Tables>, accepted: readonly LedgerHead[]): Promise<void> {
  await db.deleteFrom('settings').where('name', '=', REPORTED).execute();
  if (accepted.length === 0) return;
  const all = [...(await acceptedLosses(db)), ...accepted.map(textOf)];
  await keepSetting(db, ACCEPTED, [...new Set(all)].slice(-ACCEPTED_MAX).join('\n'));
}

async function acceptedLosses(db: Kysely<Tables>): Promise<string[]> {
  return ((await settingOf(db, ACCEPTED)) ?? '').split('\n').filter(Boolean);
}

async function settingOf(db: Kysely<Tables>, name: string): Promise<string | undefined> {
  return (await db.selectFrom('settings').select('value').where('name', '=', name).executeTakeFirst())?.value;
}

async function keepSetting(db: Kysely<Tables>, name: string, value: string): Promise<void> {
  await db
    .insertInto('settings')
    .values({ name, value })
    .onConflict((it) => it.column('name').doUpdateSet({ value }))
    .execute();
}

/** Returns whether a database has the tables of a store. */
export async function hasLedger(db: Kysely<Tables>): Promise<boolean> {
  const { rows } = await sql<{ made: boolean }>`select to_regclass('ledger') is not null as made`.execute(db);
  return rows[0]?.made === true;
}

function factsOf(payment: AcknowledgedPayment) {
  const { seq, id, order_id, reference_number, bank_account, bank_code, amount, partner, paid_at_ms } = payment;
  return {
    number: seq,
    transactionId: id,
    amount,
    bankAccount: bank_account,
    bankCode: bank_code,
    partner,
    orderId: order_id,
    referenceNumber: reference_number,
    paidAt: new Date(paid_at_ms).toISOString(),
  };
}

function textOf({ seq, link }: LedgerHead): string {
  return `${seq} ${link}`;
}

/** Returns the name of the store, never with the password. */
function storeOf({ dataDir, databaseUrl }: StoreLocation): string {
  if (databaseUrl === undefined) return storeFile(dataDir);
  const { host, pathname } = new URL(databaseUrl);
  return `${host}${pathname}`;
}

export function fixOf(location: StoreLocation): string {
  return (
    'point databaseUrl back to the server that has them, or make the empty file ' +
    `${acceptLossFile(location)} and start the gateway again to go on without them`
  );
}
