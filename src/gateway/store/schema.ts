import { type Kysely, type Migration, sql } from 'kysely';

/** Tables. Times are milliseconds since 1970; `seq` orders rows by age; flags are 0 or 1, as every engine has numbers. */
export interface Tables {
  settings: { name: string; value: string };
  qr_codes: { ref: string; qr_code: string; created_at_ms: number };
  orders: OrderRow;
  pushes: PushRow;
  payments: PaymentRow;
  callbacks: CallbackRow;
  callback_attempts: AttemptRow;
  notices: NoticeRow;
  box_secrets: BoxSecretRow;
}

export type OrderStatus =
  | 'created'
  | 'pushed'
  | 'shown'
  | 'paid'
  | 'expired'
  | 'replaced'
  | 'dismissed'
  | 'cancelled'
  | 'failed';

export interface OrderRow {
  id: string;
  seq: number;
  partner: string;
  order_id: string;
  bank_account: string;
  bank_code: string;
  user_bank_name: string;
  amount: number;
  content: string;
  trans_type: 'C' | 'D';
  qr_code: string;
  terminal_code: string;
  sub_terminal_code: string;
  service_code: string;
  sign: string;
  url_link: string;
  status: OrderStatus;
  /** The code with which the newest push failed. */
  failure: string | null;
  last_push_id: string | null;
  /** The box that last showed it (PROTOCOL.md, clause CBK-7). */
  shown_on: string | null;
  /** The push with which that box showed it. */
  shown_push_id: string | null;
  created_at_ms: number;
  updated_at_ms: number;
  paid_at_ms: number | null;
}

/** `sent` until the box or the deadline decides; `failed`, `cancelled` and `ended` are final. */
export type PushStatus = 'sent' | 'accepted' | 'shown' | 'failed' | 'cancelled' | 'ended';

/** The box itself ends a push at its time; calendar time counts only where it is away, and may be off by so much. */
export const CLOCK_JUMP_MS = 86_400_000;

/** A box may show the push, or be about to. */
export const OPEN_PUSH: readonly PushStatus[] = ['sent', 'accepted', 'shown'];

export interface PushRow {
  id: string;
  seq: number;
  /** `orders.id` */
  order_ref: string;
  terminal_code: string;
  status: PushStatus;
  code: string | null;
  created_at_ms: number;
  expires_at_ms: number;
  confirmed_at_ms: number | null;
  ended_at_ms: number | null;
}

export interface PaymentRow {
  id: string;
  seq: number;
  partner: string;
  /** `orders.id`, or null for a payment that fits no order. */
  order_ref: string | null;
  order_id: string;
  reference_number: string;
  bank_account: string;
  bank_code: string;
  amount: number;
  content: string;
  trans_type: 'C' | 'D';
  paid_at_ms: number;
}

export type CallbackStatus = 'pending' | 'delivered' | 'failed';

export interface CallbackRow {
  id: string;
  seq: number;
  payment_id: string;
  partner: string;
  url: string;
  /** The same bytes at every attempt (PROTOCOL.md, clause SYN-2). */
  body: string;
  status: CallbackStatus;
  warning: string | null;
  /** Attempts of the ladder so far; those by hand do not count. */
  tries: number;
  next_at_ms: number;
  created_at_ms: number;
}

export interface AttemptRow {
  id: string;
  seq: number;
  callback_id: string;
  by_hand: number;
  started_at_ms: number;
  duration_ms: number;
  /** JSON, with the authorization masked. */
  request_headers: string;
  response_status: number | null;
  response_body: string | null;
  error: string | null;
}

export interface NoticeRow {
  payment_id: string;
  terminal_code: string;
  /** The push that the box showed, where the payment is for that. */
  push_id: string | null;
  created_at_ms: number;
  /** When it was first said to the box, or was about to be. */
  told_at_ms: number | null;
  reported_at_ms: number | null;
  recorded: number | null;
}

/** A secret that was agreed at enrolment, with the box of this serialNumber. */
export interface BoxSecretRow {
  terminal_code: string;
  serial_number: string;
  secret: string;
  enrolled_at_ms: number;
}

/** Numbered; a released one is never changed. */
export const MIGRATIONS: Record<string, Migration> = {
  '001-first-tables': { up: createFirstTables },
  '002-indexes': { up: createIndexes },
  '003-told-notices': { up: addTold },
  '004-newest-pushes': { up: orderPushes },
  '005-box-secrets': { up: createBoxSecrets },
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
