import { type Insertable, type Kysely, sql } from 'kysely';
import { systemRandom } from '../../lib/random.ts';
import { isPostgres } from './integrity/checksums.ts';
import { keepSetting } from './integrity/settings.ts';
import type { Tables } from './schema/tables.ts';
import { transact } from './transact.ts';

/** The setting whose change must reach the disk. Each gateway of a database has its own, so that none waits for it. */
const PROBE = 'write-probe';
/** The id of the rows that are rolled back. No stored row has it, because ids of the gateway are UUIDs. */
const ID = PROBE;
/** As long as the longer texts of real rows. A disk that is nearly full may have room for a short row only. */
const TEXT = 'x'.repeat(200);
/** A payment of a source changes up to 31 pages of 4 KiB. SQLite writes all of them at the commit. */
const SQLITE_COMMIT_CHARS = 128 * 1024;
/** The longest wait for a table that somebody else has locked. This wait blocks the gateway's only connection. */
const POSTGRES_LOCK_WAIT_MS = 300;

/** An order of a cashier for which a source collects, its push, and its payment with all deliveries. */
const ROWS: { [Table in keyof Tables]?: Insertable<Tables[Table]> } = {
  order_codes: { bank_account: ID, code: ID, order_ref: ID, created_at_ms: 0 },
  qr_codes: { ref: ID, qr_code: TEXT, created_at_ms: 0 },
  payment_requests: {
    ...{ source: ID, order_code: 0, order_ref: ID, bank_account: ID, virtual_account: ID },
    ...{ created_at_ms: 0, expires_at_ms: 0, ended_at_ms: null, closed_at_ms: null },
  },
  orders: {
    ...{ id: ID, seq: 0, partner: ID, order_id: ID, bank_account: ID, bank_code: ID, user_bank_name: TEXT, amount: 0 },
    ...{ content: TEXT, trans_type: 'C', qr_code: TEXT, terminal_code: ID, sub_terminal_code: '', service_code: '' },
    ...{ sign: '', url_link: TEXT, status: 'created', failure: null, last_push_id: ID, shown_on: ID },
    ...{ shown_push_id: ID, created_at_ms: 0, updated_at_ms: 0, paid_at_ms: null },
  },
  sales: { order_ref: ID, created_at_ms: 0 },
  pushes: {
    ...{ id: ID, seq: 0, order_ref: ID, terminal_code: ID, status: 'sent', code: null },
    ...{ created_at_ms: 0, expires_at_ms: 0, confirmed_at_ms: null, ended_at_ms: null },
  },
  credits: {
    ...{ id: ID, seq: 0, source: ID, source_id: ID, reference: ID, bank_account: ID, virtual_account: ID, amount: 0 },
    ...{
      text: TEXT,
      bank_time_ms: 0,
      received_at_ms: 0,
      late: 0,
      payment_id: ID,
      order_amount: null,
      order_paid: null,
    },
  },
  payments: {
    ...{ id: ID, seq: 0, partner: ID, order_ref: ID, order_id: ID, reference_number: TEXT, bank_account: ID },
    ...{ bank_code: ID, amount: 0, content: TEXT, trans_type: 'C', paid_at_ms: 0, link: ID, writer: ID, number: 0 },
  },
  notices: {
    ...{ payment_id: ID, terminal_code: ID, push_id: ID, created_at_ms: 0 },
    ...{ told_at_ms: 0, reported_at_ms: null, recorded: null, late: 0 },
  },
  callbacks: {
    ...{ id: ID, seq: 0, payment_id: ID, partner: ID, url: TEXT, body: TEXT, status: 'pending', warning: null },
    ...{ tries: 0, next_at_ms: 0, created_at_ms: 0 },
  },
  callback_attempts: {
    ...{ id: ID, seq: 0, callback_id: ID, by_hand: 0, started_at_ms: 0, duration_ms: 0, request_headers: TEXT },
    ...{ response_status: null, response_body: TEXT, error: null },
  },
};

/** Returns the changes that a payment makes to the chain of its writer, its order and its push. */
const changesOf = (writer: string) => [
  sql`update ledger set end_seq = end_seq + 1, end_link = ${ID} where name = ${writer}`,
  sql`update orders set status = 'paid' where id = ${ID}`,
  sql`update pushes set status = 'ended' where id = ${ID}`,
];

const rolledBack = new Error('the rows of the probe are rolled back');

/**
 * Does what an order and its payment of this writer do: inserts new rows in every table of money, which are rolled back,
 * then makes a commit that reaches the disk. No row stays, and the ledger does not move. Rejects with the reason when a
 * part fails.
 */
export async function probeWrites(db: Kysely<Tables>, writer: string): Promise<void> {
  await transact(db, async (trx) => {
    await writeRows(trx, writer);
    throw rolledBack;
  }).catch((error: unknown) => {
    if (error !== rolledBack) throw error;
  });
  await probeCommit(db, writer);
}

/** Changes a setting. It writes a new value, because an unchanged one might not reach the disk. */
export async function probeCommit(db: Kysely<Tables>, writer = ''): Promise<void> {
  const name = writer === '' ? PROBE : `${PROBE}-${writer}`;
  const value = `${systemRandom.uuid()}${isPostgres(db) ? '' : 'x'.repeat(SQLITE_COMMIT_CHARS)}`;
  await keepSetting(db, name, value);
}

async function writeRows(trx: Kysely<Tables>, writer: string): Promise<void> {
  const inserts = Object.entries(ROWS).map(
    ([table, row]) =>
      sql`insert into ${sql.table(table)} (${sql.join(Object.keys(row).map(sql.ref))}) values (${sql.join(Object.values(row))})`,
  );
  const statements = [...inserts, ...changesOf(writer)];
  if (!isPostgres(trx)) {
    for (const statement of statements) await statement.execute(trx);
    return;
  }
  await sql.raw(`set local lock_timeout = ${POSTGRES_LOCK_WAIT_MS}`).execute(trx);
  // All statements are one, because on a busy machine each round trip to the server may take 100 ms.
  const parts = statements.map((statement, index) => sql`${sql.ref(`part_${index}`)} as (${statement})`);
  await sql`with ${sql.join(parts)} select 1`.execute(trx);
}
