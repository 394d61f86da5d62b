import { type Kysely, type Migration, sql } from 'kysely';
import { addLedger } from './ledger-tables.ts';

/** Numbered; a released one is never changed. */
export const MIGRATIONS: Record<string, Migration> = {
  '001-first-tables': { up: createFirstTables },
  '002-indexes': { up: createIndexes },
  '003-told-notices': { up: addTold },
  '004-newest-pushes': { up: orderPushes },
  '005-box-secrets': { up: createBoxSecrets },
  '006-ledger': { up: addLedger },
  '007-owed-callbacks': { up: indexOwed },
  '008-pushes-of-a-box': { up: indexPushesOfBox },
  '009-known-logins': { up: createKnownLogins },
  '010-enrolment-requests': { up: createEnrolmentRequests },
};

async function createFirstTables(db: Kysely<unknown>): Promise<void> {
  const { schema } = db;
  const table = async (name: string, texts: string[], numbers: string[], optional: string[]) => {
    let builder = schema.createTable(name);
    for (const [kind, columns] of [['text', texts] as const, ['bigint', numbers] as const]) {
      for (const column of columns) {
        builder = builder.addColumn(column, kind, (it) => (optional.includes(column) ? it : it.notNull()));
      }
    }
    const key = { settings: 'name', qr_codes: 'ref', notices: 'payment_id' }[name] ?? 'id';
    const keys = name === 'notices' ? [key, 'terminal_code'] : [key];
    await builder.addPrimaryKeyConstraint(`${name}_key`, keys as never[]).execute();
  };
  await table('settings', ['name', 'value'], [], []);
  await table('qr_codes', ['ref', 'qr_code'], ['created_at_ms'], []);
  await table(
    'orders',
    [
      ...['id', 'partner', 'order_id', 'bank_account', 'bank_code', 'user_bank_name', 'content', 'trans_type'],
      ...['qr_code', 'terminal_code', 'sub_terminal_code', 'service_code', 'sign', 'url_link', 'status'],
      ...['failure', 'last_push_id', 'shown_on', 'shown_push_id'],
    ],
    ['seq', 'amount', 'created_at_ms', 'updated_at_ms', 'paid_at_ms'],
    ['failure', 'last_push_id', 'shown_on', 'shown_push_id', 'paid_at_ms'],
  );
  await table(
    'pushes',
    ['id', 'order_ref', 'terminal_code', 'status', 'code'],
    ['seq', 'created_at_ms', 'expires_at_ms', 'confirmed_at_ms', 'ended_at_ms'],
    ['code', 'confirmed_at_ms', 'ended_at_ms'],
  );
  await table(
    'payments',
    [
      'id',
      'partner',
      'order_ref',
      'order_id',
      'reference_number',
      'bank_account',
      'bank_code',
      'content',
      'trans_type',
    ],
    ['seq', 'amount', 'paid_at_ms'],
    ['order_ref'],
  );
  await table(
    'callbacks',
    ['id', 'payment_id', 'partner', 'url', 'body', 'status', 'warning'],
    ['seq', 'tries', 'next_at_ms', 'created_at_ms'],
    ['warning'],
  );
  await table(
    'callback_attempts',
    ['id', 'callback_id', 'request_headers', 'response_body', 'error'],
    ['seq', 'by_hand', 'started_at_ms', 'duration_ms', 'response_status'],
    ['response_body', 'error', 'response_status'],
  );
  await table(
    'notices',
    ['payment_id', 'terminal_code', 'push_id'],
    ['created_at_ms', 'reported_at_ms', 'recorded'],
    ['push_id', 'reported_at_ms', 'recorded'],
  );
  const index = (name: string, on: string, columns: string[]) =>
    schema.createIndex(name).on(on).columns(columns).execute();
  await index('orders_by_seq', 'orders', ['seq']);
  await index('orders_by_order_id', 'orders', ['order_id']);
  await index('orders_by_qr', 'orders', ['qr_code']);
  await index('orders_by_money', 'orders', ['bank_account', 'amount', 'content']);
  await index('pushes_by_box', 'pushes', ['terminal_code', 'expires_at_ms']);
  await index('pushes_by_status', 'pushes', ['status']);
  await index('payments_by_seq', 'payments', ['seq']);
  await index('callbacks_by_seq', 'callbacks', ['seq']);
  await index('callbacks_by_status', 'callbacks', ['status']);
  await index('callbacks_by_payment', 'callbacks', ['payment_id']);
  await index('attempts_by_callback', 'callback_attempts', ['callback_id', 'seq']);
  await index('notices_by_box', 'notices', ['terminal_code', 'reported_at_ms']);
}

async function addTold(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('notices').addColumn('told_at_ms', 'bigint').execute();
}

/** For the newest pushes of an order, which may have been asked for ever so often. */
async function orderPushes({ schema }: Kysely<unknown>): Promise<void> {
  await schema.createIndex('pushes_of_order').on('pushes').columns(['order_ref', 'seq']).execute();
  await schema.dropIndex('pushes_by_order').execute();
}

async function createBoxSecrets({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('box_secrets')
    .addColumn('terminal_code', 'text', (it) => it.primaryKey())
    .addColumn('serial_number', 'text', (it) => it.notNull())
    .addColumn('secret', 'text', (it) => it.notNull())
    .addColumn('enrolled_at_ms', 'bigint', (it) => it.notNull())
    .execute();
}

/** For what no partner was told yet, and for the lists of what waits and of what has failed. */
async function indexOwed({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createIndex('callbacks_never_tried')
    .on('callbacks')
    // All that the query names: else SQLite takes the index of what is pending, and reads it all.
    .columns(['partner', 'status', 'tries', 'seq'])
    .where(sql.ref('status'), '=', sql.lit('pending'))
    .where(sql.ref('tries'), '=', sql.lit(0))
    .execute();
  await schema.createIndex('callbacks_of_status').on('callbacks').columns(['status', 'seq']).execute();
}

/** For every query that would else read a whole table, or all the orders of a shop that asks for the same each time. */
async function createIndexes(db: Kysely<unknown>): Promise<void> {
  const { schema } = db;
  const index = (name: string, on: string, columns: string[]) => schema.createIndex(name).on(on).columns(columns);
  const money = ['bank_account', 'amount', 'content', 'seq'];
  await index('orders_of_money', 'orders', money).execute();
  await index('orders_unpaid', 'orders', money).where('status', '<>', sql.lit('paid')).execute();
  await index('orders_of_qr', 'orders', ['qr_code', 'order_id', 'seq']).execute();
  await index('orders_by_last_push', 'orders', ['last_push_id']).execute();
  await index('pushes_by_seq', 'pushes', ['seq']).execute();
  await index('pushes_by_order', 'pushes', ['order_ref']).execute();
  await index('pushes_by_end', 'pushes', ['terminal_code', 'ended_at_ms']).execute();
  await index('pushes_by_expiry', 'pushes', ['status', 'expires_at_ms']).execute();
  await index('qr_codes_by_age', 'qr_codes', ['created_at_ms', 'ref']).execute();
  await index('callbacks_by_due', 'callbacks', ['status', 'partner', 'next_at_ms', 'seq']).execute();
  for (const name of ['orders_by_money', 'orders_by_qr', 'pushes_by_status', 'callbacks_by_status']) {
    await schema.dropIndex(name).execute();
  }
}

/** For a box with a great many pushes: its newest, and those that it may still show. */
async function indexPushesOfBox({ schema }: Kysely<unknown>): Promise<void> {
  await schema.createIndex('pushes_of_box').on('pushes').columns(['terminal_code', 'seq']).execute();
  await schema
    .createIndex('pushes_unended')
    .on('pushes')
    .columns(['terminal_code', 'seq'])
    .where(sql.ref('ended_at_ms'), 'is', null)
    .execute();
  for (const name of ['pushes_by_box', 'pushes_by_end']) await schema.dropIndex(name).execute();
}

async function createKnownLogins({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('known_logins')
    .addColumn('digest', 'text', (it) => it.primaryKey())
    .addColumn('seq', 'bigint', (it) => it.notNull())
    .execute();
  await schema.createIndex('known_logins_by_seq').on('known_logins').columns(['seq']).execute();
}

async function createEnrolmentRequests({ schema }: Kysely<unknown>): Promise<void> {
  let table = schema.createTable('enrolment_requests').addColumn('id', 'text', (it) => it.primaryKey());
  for (const name of ['terminal_code', 'serial_number', 'public_key', 'proof', 'address']) {
    table = table.addColumn(name, 'text', (it) => it.notNull());
  }
  await table.addColumn('asked_at_ms', 'bigint', (it) => it.notNull()).execute();
  await schema.createIndex('enrolment_requests_by_age').on('enrolment_requests').columns(['asked_at_ms']).execute();
}
