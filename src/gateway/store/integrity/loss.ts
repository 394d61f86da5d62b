import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { type Kysely, sql } from 'kysely';
import { systemClock } from '../../../lib/clock.ts';
import { ConfigError, reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Tables } from '../schema/tables.ts';
import { storeFile } from '../store-files.ts';
import { acceptLossFile, besideStore, type StoreLocation, type WrittenPayments } from './high-water-mark.ts';
import {
  brokenLinks,
  chainOf,
  endOf,
  type LedgerHead,
  missingBetween,
  NO_PAYMENT,
  ofWriter,
  prunedEndOf,
} from './ledger.ts';
import type { AcknowledgedPayment } from './recent-payments.ts';
import { keepSetting } from './settings.ts';

/**
 * The setting with the newest payment that another gateway had acknowledged, and did not find in this database. The
 * name of the gateway follows, if it shares the database.
 */
const REPORTED = 'missing-payment';
const OF = '-of-';
/** The setting with the newest payments whose loss an admin has accepted, as `number link`, one a line. */
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
  /** The writer of the chain that lacks them. */
  writer: string;
  /** The newest payment that was acknowledged. */
  newest: LedgerHead;
  /** The newest payment of the chain. */
  found: LedgerHead;
  /** The number of the first missing payment. */
  from: number;
  /** The number of the last missing payment. */
  to: number;
  /** The missing payments whose facts are known, in the order of their numbers. */
  payments: AcknowledgedPayment[];
}

/**
 * Compares the chain of a writer with the payments that a gateway has acknowledged: their numbers, their links, and the
 * chain after the newest one. If the chain is longer, it has commits whose answers were lost. Returns undefined when
 * nothing is missing, or when an admin has accepted the loss.
 */
async function lossIn(db: Kysely<Tables>, { writer, newest, recent }: WrittenPayments): Promise<Loss | undefined> {
  if (typeof newest !== 'object') return undefined;
  const chain = await chainOf(db, writer);
  const found = chain === undefined ? NO_PAYMENT : endOf(chain);
  const pruned = chain === undefined ? NO_PAYMENT : prunedEndOf(chain);
  const isShort = newest.number > found.number;
  const problem = isShort
    ? `${missingBetween(found.number, newest.number + 1, writer)}, which had been acknowledged`
    : await problemAfter(db, { writer, known: newest, found, pruned });
  if (problem === undefined || (await acceptedLosses(db)).includes(textOf(newest))) return undefined;
  const stored = new Set<string>();
  const [oldest] = recent;
  if (oldest !== undefined) {
    const rows = db.selectFrom('payments').select('link').where('writer', '=', writer);
    for (const { link } of await rows.where('number', '>=', oldest.number).execute()) stored.add(link);
  }
  const payments = recent.filter(({ number, link }) => number > pruned.number && !stored.has(link));
  const from = Math.min(payments[0]?.number ?? newest.number, isShort ? found.number + 1 : newest.number);
  return { problem, writer, newest, found, from, to: newest.number, payments };
}

/** Returns why a chain of sufficient length does not continue from the payment `known`. Undefined when it does. */
async function problemAfter(
  db: Kysely<Tables>,
  { writer, known, found, pruned }: { writer: string; known: LedgerHead; found: LedgerHead; pruned: LedgerHead },
): Promise<string | undefined> {
  // Payments that were deleted because of their age or number are not missing.
  if (known.number < pruned.number || known.number === 0) return undefined;
  const stored = db.selectFrom('payments').select('link').where('writer', '=', writer);
  const row =
    [pruned, found].find(({ number }) => number === known.number) ??
    (await stored.where('number', '=', known.number).executeTakeFirst());
  if (row?.link !== known.link)
    return `payment ${known.number}${ofWriter(writer)} is not the one that had been acknowledged`;
  return (await brokenLinks(db, writer, known, found))[0];
}

/**
 * Returns the losses of the chains that this gateway has written, and those that other gateways have reported. `db`
 * must show the store at one moment.
 */
export async function lossesIn(db: Kysely<Tables>, known: readonly WrittenPayments[]): Promise<Loss[]> {
  const losses: Loss[] = [];
  for (const written of [...known, ...(await reportedLosses(db))]) {
    const loss = await lossIn(db, written);
    if (loss !== undefined && !losses.some(({ newest }) => newest.link === loss.newest.link)) losses.push(loss);
  }
  return losses;
}

/** Returns the loss of all payments, for a database without the tables of a store. */
export function wholeLoss({ writer, newest, recent }: WrittenPayments): Loss | undefined {
  if (typeof newest !== 'object' || newest.number === 0) return undefined;
  const problem = `${missingBetween(0, newest.number + 1, writer)}, which had been acknowledged`;
  return { problem, writer, newest, found: NO_PAYMENT, from: 1, to: newest.number, payments: [...recent] };
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
  const { writer, newest, found, from, to, payments } = loss;
  const name = `${from}-${to}-${newest.link.slice(0, LINK_CHARS)}-${found.link.slice(0, LINK_CHARS) || 'empty'}`;
  const file = besideStore(location, `.missing-${name}.json`);
  const content = {
    what: 'Payments that this gateway had acknowledged, and that its store does not have',
    foundAt: new Date(systemClock.wallMs()).toISOString(),
    store: storeOf(location),
    ...(writer === '' ? {} : { gateway: writer }),
    missing: { from, to, count: to - from + 1 },
    newestAcknowledged: { number: newest.number, link: newest.link },
    found: { number: found.number, link: found.link },
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

/** Stores in the database which newest payment it lacks, for any other gateway that uses it. */
export async function reportLoss(db: Kysely<Tables>, { writer, newest }: Loss): Promise<void> {
  await keepSetting(db, writer === '' ? REPORTED : `${REPORTED}${OF}${writer}`, textOf(newest));
}

/** Returns the newest payments that gateways have missed in this database. */
export async function reportedLosses(db: Kysely<Tables>): Promise<WrittenPayments[]> {
  const reported = db.selectFrom('settings').selectAll().where('name', 'like', `${REPORTED}%`).orderBy('name');
  return (await reported.execute()).flatMap(({ name, value }) => {
    const [, number, link] = /^(\d+) (\S+)$/.exec(value) ?? [];
    if (number === undefined || link === undefined) return [];
    const writer = name === REPORTED ? '' : name.slice(REPORTED.length + OF.length);
    return [{ writer, newest: { number: Number(number), link }, recent: [] }];
  });
}

/** Deletes the losses that gateways have reported. Stores the payments whose loss an admin has accepted. */
export async function settleLosses(db: Kysely<Tables>, accepted: readonly LedgerHead[]): Promise<void> {
  await db.deleteFrom('settings').where('name', 'like', `${REPORTED}%`).execute();
  if (accepted.length === 0) return;
  const all = [...(await acceptedLosses(db)), ...accepted.map(textOf)];
  await keepSetting(db, ACCEPTED, [...new Set(all)].slice(-ACCEPTED_MAX).join('\n'));
}

async function acceptedLosses(db: Kysely<Tables>): Promise<string[]> {
  const row = await db.selectFrom('settings').select('value').where('name', '=', ACCEPTED).executeTakeFirst();
  return (row?.value ?? '').split('\n').filter(Boolean);
}

/** Returns what a database has of the ledger: nothing, the single chain of an earlier version, or a chain a writer. */
export async function ledgerIn(db: Kysely<Tables>): Promise<'none' | 'former' | 'current'> {
  const { rows } = await sql<{ form: 'none' | 'former' | 'current' }>`
    select case when to_regclass('ledger') is null then 'none'
      when exists (select from pg_attribute where attrelid = to_regclass('payments') and attname = 'number')
        then 'current' else 'former' end as form`.execute(db);
  return rows[0]?.form ?? 'none';
}

function factsOf(payment: AcknowledgedPayment) {
  const { number, id, order_id, reference_number, bank_account, bank_code, amount, partner, paid_at_ms } = payment;
  return {
    number,
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

function textOf({ number, link }: LedgerHead): string {
  return `${number} ${link}`;
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
