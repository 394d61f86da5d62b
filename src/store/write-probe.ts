import { type Kysely, sql } from 'kysely';
import { systemRandom } from '../lib/random.ts';
import { isPostgres } from './integrity/checksums.ts';
import { appendToLedger } from './integrity/ledger.ts';
import { addOrder } from './repositories/order-changes.ts';
import { endOrder, enqueueDeliveries, type NewPayment } from './repositories/payments.ts';
import type { Tables } from './schema/tables.ts';

/** Setting whose change must reach the disk. */
const PROBE = 'write-probe';
/** Id of the rows that are rolled back. No row that stays has it, and ids of the gateway are UUIDs. */
const ID = PROBE;
/** As long as the longer texts of real rows: a disk that is nearly full has room for a short row. */
const TEXT = 'x'.repeat(200);
/** A payment of a source changes up to 31 pages of 4 KiB, all of which SQLite writes at the commit. */
const SQLITE_COMMIT_CHARS = 128 * 1024;
/** Who waits for a table that somebody else has locked holds up the gateway's only connection. */
const POSTGRES_LOCK_WAIT_MS = 300;

const rolledBack = new Error('the rows of the probe are rolled back');

/**
 * Does what an order and its payment do: new rows in every table of money, which are rolled back, then a commit that
 * reaches the disk. Nothing of the rows stays, and the ledger does not move. Rejects with the reason when a part fails.
 */
export async function probeWrites(db: Kysely<Tables>): Promise<void> {
  await db
    .transaction()
    .execute(async (trx) => {
      if (isPostgres(trx)) await sql.raw(`set local lock_timeout = ${POSTGRES_LOCK_WAIT_MS}`).execute(trx);
      await insertOrder(trx);
      await insertPayment(trx);
      throw rolledBack;
    })
    .catch((error: unknown) => {
      if (error !== rolledBack) throw error;
    });
  await probeCommit(db);
}

/** Changes a setting: an unchanged value might not reach the disk. */
export async function probeCommit(db: Kysely<Tables>): Promise<void> {
  const value = `${systemRandom.uuid()}${isPostgres(db) ? '' : 'x'.repeat(SQLITE_COMMIT_CHARS)}`;
  await db
    .insertInto('settings')
    .values({ name: PROBE, value })
    .onConflict((it) => it.column('name').doUpdateSet({ value }))
    .execute();
}

/** An order of a cashier, for which a source collects, with its push. */
async function insertOrder(db: Kysely<Tables>): Promise<void> {
  const account = { bank_account: ID, bank_code: ID, user_bank_name: TEXT };
  const texts = { content: TEXT, qr_code: TEXT, sub_terminal_code: '', service_code: '', sign: '', url_link: TEXT };
  const order = {
    ...{ ...account, ...texts, id: ID, partner: ID, order_id: ID, terminal_code: ID },
    ...{ amount: 0, trans_type: 'C' as const, created_at_ms: 0 },
  };
  const request = { source: ID, order_code: 0, virtual_account: ID, created_at_ms: 0, expires_at_ms: 0 };
  await addOrder(db, order, { qrRef: ID, code: ID, request });
  await db.insertInto('sales').values({ order_ref: ID, created_at_ms: 0 }).execute();
  const begun = { status: 'sent', code: null, confirmed_at_ms: null, ended_at_ms: null } as const;
  const push = { id: ID, seq: 0, order_ref: ID, terminal_code: ID, created_at_ms: 0, expires_at_ms: 0 };
  await db
    .insertInto('pushes')
    .values({ ...push, ...begun })
    .execute();
}

/** The credit and the payment of that order, with its notice and its callback, which was tried once. */
async function insertPayment(db: Kysely<Tables>): Promise<void> {
  const credit = {
    ...{ id: ID, seq: 0, source: ID, source_id: ID, reference: ID, bank_account: ID, virtual_account: ID, text: TEXT },
    ...{ amount: 0, bank_time_ms: 0, received_at_ms: 0, late: 0, payment_id: ID, order_amount: null, order_paid: null },
  };
  await db.insertInto('credits').values(credit).execute();
  const payment: NewPayment = {
    ...{ id: ID, partner: ID, order_ref: ID, order_id: ID, reference_number: TEXT, bank_account: ID, bank_code: ID },
    ...{ amount: 0, content: TEXT, trans_type: 'C', paid_at_ms: 0 },
  };
  await db
    .insertInto('payments')
    .values(await appendToLedger(db, payment))
    .execute();
  const notices = [{ terminal_code: ID, push_id: ID, told_at_ms: 0 }];
  await enqueueDeliveries(db, payment, { notices, callback: { id: ID, url: TEXT, body: TEXT } }, 0);
  const tried = { by_hand: 0, started_at_ms: 0, duration_ms: 0, request_headers: TEXT };
  await db
    .insertInto('callback_attempts')
    .values({ id: ID, seq: 0, callback_id: ID, ...tried, response_status: null, response_body: TEXT, error: null })
    .execute();
  await endOrder(db, ID, { status: 'paid', paid_at_ms: 0, updated_at_ms: 0 }, notices);
}
