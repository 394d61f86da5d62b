import { type Kysely, type Migration, sql } from 'kysely';
import {
  addChecksumFunction,
  addChecksumTriggers,
  CHECKED_TABLES,
  damagedSql,
  isPostgres,
} from '../integrity/checksums.ts';
import { SPELLED_REFERENCE } from '../repositories/same-credit.ts';
import { addSequences } from '../repositories/seq.ts';
import { addAdminTokens, addEnrolmentAnswers, addSources, createRegistry, indexTokenNames } from './registry-tables.ts';
import type { RegistryTable, Tables } from './tables.ts';

/** Names in existing stores. The first migration creates the schema. The others change nothing. */
const FIRST_SCHEMA = [
  ...['001-first-tables', '002-indexes', '003-told-notices', '004-newest-pushes', '005-box-secrets', '006-ledger'],
  ...['007-owed-callbacks', '008-pushes-of-a-box', '009-known-logins', '010-enrolment-requests'],
];

/** The migrations by number. A released migration must never change. */
export const MIGRATIONS: Record<string, Migration> = {
  ...Object.fromEntries(FIRST_SCHEMA.map((name, i) => [name, { up: i === 0 ? createSchema : async () => undefined }])),
  '011-checked-orders': { up: indexCheckedOrders },
  '012-credits': { up: addCredits },
  '013-sales': { up: addSales },
  '014-registry': { up: createRegistry },
  '015-sources': { up: addSources },
  '016-payment-requests': { up: addPaymentRequests },
  '017-credits-by-time': { up: indexCreditsByTime },
  '018-admin-tokens': { up: addAdminTokens },
  '019-news': { up: addNews },
  '020-token-names': { up: indexTokenNames },
  '021-sequences': { up: addSequences },
  '022-writers': { up: addWriters },
  '023-enrolment-answers': { up: addEnrolmentAnswers },
};

const columns = (type: string) => (names: string) => names.split(' ').map((name) => `"${name}" ${type}`);
const text = columns('text not null');
const optionalText = columns('text');
const textKey = columns('text primary key');
const number = columns('bigint not null');
const optionalNumber = columns('bigint');
/** A constraint has its own name, such as `orders_key`. */
const key = (table: string, names: string) =>
  `constraint "${table}_key" primary key (${names
    .split(' ')
    .map((it) => `"${it}"`)
    .join(', ')})`;

/** The name of the only chain of payments before each writer had one. */
const FORMER_LEDGER = 'payments';

/** Tables of the registry have their own migration. */
type StoredTable = Exclude<keyof Tables, RegistryTable | 'audit' | 'admin_tokens'>;

/** Tables that the first migration does not create. */
const LATER_TABLES: readonly StoredTable[] = ['credits', 'order_codes', 'sales', 'payment_requests'];

const TABLES: Record<StoredTable, readonly string[]> = {
  settings: [...text('name value'), key('settings', 'name')],
  qr_codes: [...text('ref qr_code'), ...number('created_at_ms'), key('qr_codes', 'ref')],
  orders: [
    ...text('id partner order_id bank_account bank_code user_bank_name content trans_type qr_code terminal_code'),
    ...text('sub_terminal_code service_code sign url_link status'),
    ...optionalText('failure last_push_id shown_on shown_push_id'),
    ...number('seq amount created_at_ms updated_at_ms'),
    ...optionalNumber('paid_at_ms'),
    ...optionalText('checksum'),
    key('orders', 'id'),
  ],
  pushes: [
    ...text('id order_ref terminal_code status'),
    ...optionalText('code'),
    ...number('seq created_at_ms expires_at_ms'),
    ...optionalNumber('confirmed_at_ms ended_at_ms'),
    ...optionalText('checksum'),
    key('pushes', 'id'),
  ],
  payments: [
    ...text('id partner'),
    ...optionalText('order_ref'),
    ...text('order_id reference_number bank_account bank_code content trans_type'),
    ...number('seq amount paid_at_ms'),
    ...optionalText('link checksum'),
    key('payments', 'id'),
  ],
  callbacks: [
    ...text('id payment_id partner url body status'),
    ...optionalText('warning'),
    ...number('seq tries next_at_ms created_at_ms'),
    ...optionalText('checksum'),
    key('callbacks', 'id'),
  ],
  callback_attempts: [
    ...text('id callback_id request_headers'),
    ...optionalText('response_body error'),
    ...number('seq by_hand started_at_ms duration_ms'),
    ...optionalNumber('response_status'),
    key('callback_attempts', 'id'),
  ],
  notices: [
    ...text('payment_id terminal_code'),
    ...optionalText('push_id'),
    ...number('created_at_ms'),
    ...optionalNumber('reported_at_ms recorded told_at_ms'),
    ...optionalText('checksum'),
    key('notices', 'payment_id terminal_code'),
  ],
  box_secrets: [...textKey('terminal_code'), ...text('serial_number secret'), ...number('enrolled_at_ms')],
  ledger: [
    ...textKey('name'),
    ...number('end_seq'),
    ...text('end_link'),
    ...number('pruned_seq'),
    ...text('pruned_link'),
    ...number('pruned_count'),
    ...optionalText('checksum'),
  ],
  damaged_rows: [...text('table_name'), ...optionalText('name'), ...text('content')],
  known_logins: [...textKey('digest'), ...number('seq')],
  enrolment_requests: [
    ...textKey('id'),
    ...text('terminal_code serial_number public_key proof address'),
    ...number('asked_at_ms'),
  ],
  credits: [
    ...text('id source source_id reference bank_account virtual_account text'),
    ...number('seq amount bank_time_ms received_at_ms late'),
    ...optionalText('payment_id'),
    ...optionalNumber('order_amount order_paid'),
    ...optionalText('checksum'),
    key('credits', 'id'),
  ],
  order_codes: [
    ...text('bank_account code order_ref'),
    ...number('created_at_ms'),
    ...optionalText('checksum'),
    key('order_codes', 'bank_account code'),
  ],
  payment_requests: [
    ...text('source order_ref bank_account virtual_account'),
    ...number('order_code created_at_ms expires_at_ms'),
    ...optionalNumber('ended_at_ms closed_at_ms'),
    ...optionalText('checksum'),
    key('payment_requests', 'source order_code'),
  ],
  sales: [...text('order_ref'), ...number('created_at_ms'), key('sales', 'order_ref')],
};

/** No query may read a whole table, or all orders of a shop that always asks for the same amount. */
const INDEXES: readonly (readonly [name: string, table: keyof Tables, columns: string, where?: string])[] = [
  ['orders_by_seq', 'orders', 'seq'],
  ['orders_by_order_id', 'orders', 'order_id'],
  ['orders_by_last_push', 'orders', 'last_push_id'],
  ['orders_of_qr', 'orders', 'qr_code order_id seq'],
  ['orders_of_money', 'orders', 'bank_account amount content seq'],
  ['orders_unpaid', 'orders', 'bank_account amount content seq', `"status" <> 'paid'`],
  ['pushes_by_seq', 'pushes', 'seq'],
  ['pushes_by_expiry', 'pushes', 'status expires_at_ms'],
  ['pushes_of_order', 'pushes', 'order_ref seq'],
  ['pushes_of_box', 'pushes', 'terminal_code seq'],
  ['pushes_unended', 'pushes', 'terminal_code seq', '"ended_at_ms" is null'],
  ['qr_codes_by_age', 'qr_codes', 'created_at_ms ref'],
  ['payments_by_seq', 'payments', 'seq'],
  ['callbacks_by_seq', 'callbacks', 'seq'],
  ['callbacks_by_payment', 'callbacks', 'payment_id'],
  ['callbacks_by_due', 'callbacks', 'status partner next_at_ms seq'],
  ['callbacks_of_status', 'callbacks', 'status seq'],
  // This index has every column of its query. Otherwise SQLite would read the whole index of pending callbacks.
  ['callbacks_never_tried', 'callbacks', 'partner status tries seq', `"status" = 'pending' and "tries" = 0`],
  ['attempts_by_callback', 'callback_attempts', 'callback_id seq'],
  ['notices_by_box', 'notices', 'terminal_code reported_at_ms'],
  ['known_logins_by_seq', 'known_logins', 'seq'],
  ['enrolment_requests_by_age', 'enrolment_requests', 'asked_at_ms'],
];

/** Adds indexes for check-order, and for finding orders by the code of their QR. */
async function indexCheckedOrders(db: Kysely<Tables>): Promise<void> {
  await sql`create index "orders_of_code" on "orders" (substr("content", 1, 13))`.execute(db);
  await sql`create index "payments_of_order" on "payments" ("order_ref", "seq")`.execute(db);
  await sql`create index "payments_by_reference" on "payments" ("reference_number")`.execute(db);
}

/** Adds tables for credits, which sources report, and for the codes by which a credit finds its order. */
async function addCredits(db: Kysely<Tables>): Promise<void> {
  for (const table of ['credits', 'order_codes'] as const) await createTable(db, table);
  await sql`create unique index "credits_of_source" on "credits" ("source", "source_id")`.execute(db);
  await sql`create unique index "credits_of_bank" on "credits" ("bank_account", "reference", "amount")
    where "reference" <> ''`.execute(db);
  await sql`create index "credits_by_seq" on "credits" ("seq")`.execute(db);
  await sql`create index "credits_of_payment" on "credits" ("payment_id")`.execute(db);
  await sql`create index "order_codes_of_order" on "order_codes" ("order_ref")`.execute(db);
  await sql`create index "orders_of_amount" on "orders" ("bank_account", "amount", "seq")
    where "trans_type" = 'C'`.execute(db);
  for (const table of ['credits', 'order_codes'] as const) await addChecksumTriggers(db, table);
}

async function addSales(db: Kysely<Tables>): Promise<void> {
  await createTable(db, 'sales');
  await sql`create index "sales_by_time" on "sales" ("created_at_ms")`.execute(db);
}

/** Adds payment requests. From now on a credit is recognised by any name of its account. */
async function addPaymentRequests(db: Kysely<Tables>): Promise<void> {
  await createTable(db, 'payment_requests');
  await addChecksumTriggers(db, 'payment_requests');
  await sql`create index "payment_requests_of_order" on "payment_requests" ("order_ref")`.execute(db);
  await sql`create index "payment_requests_of_account" on "payment_requests" ("virtual_account")`.execute(db);
  await sql`create index "payment_requests_open" on "payment_requests" ("source", "created_at_ms")
    where "closed_at_ms" is null`.execute(db);
  await sql`drop index "credits_of_bank"`.execute(db);
  await sql`create index "credits_of_reference" on "credits" (${SPELLED_REFERENCE}, "amount")
    where "reference" <> ''`.execute(db);
}

/**
 * Lets two credits of a source share a number. Each bank numbers its own transfers, so a source without other ids may
 * report one number for two accounts.
 */
async function indexCreditsByTime(db: Kysely<Tables>): Promise<void> {
  await sql`drop index "credits_of_source"`.execute(db);
  await sql`create unique index "credits_of_source" on "credits" ("source", "source_id", "bank_account")`.execute(db);
  await sql`create index "credits_by_time" on "credits" ("amount", "bank_time_ms")`.execute(db);
}

/**
 * Records which notices were sent as old news. Existing boxes count as known from the beginning, so the payments that
 * wait for them are news.
 */
async function addNews(db: Kysely<Tables>): Promise<void> {
  await sql`alter table "notices" add column "late" bigint not null default 0`.execute(db);
  await sql`insert into "settings" ("name", "value")
    select 'paybox-box-' || "terminal_code" || '-' || "serial_number", '0' from "boxes"
    where "dialect" = 'paybox'`.execute(db);
}

/**
 * Gives each writer a chain of payments of its own. A gateway alone continues the existing one. Lets a payment have one
 * callback only. Damaged rows are left as they are, so that the check of the start names them. A damaged payment gets a
 * negative number, because its `seq` may be that of another one.
 */
async function addWriters(db: Kysely<Tables>): Promise<void> {
  const number = sql.raw(`case when ${damagedSql(db, 'payments')} then -"seq" else "seq" end`);
  await sql`alter table "payments" add column "writer" text not null default ''`.execute(db);
  await sql`alter table "payments" add column "number" bigint not null default 0`.execute(db);
  // In PostgreSQL an update would run the trigger, which refuses damaged rows.
  await (isPostgres(db)
    ? sql`alter table "payments" alter column "number" type bigint using ${number}`
    : sql`update "payments" set "number" = ${number}`
  ).execute(db);
  await sql`create unique index "payments_of_writer" on "payments" ("writer", "number")`.execute(db);
  await sql`drop index "callbacks_by_payment"`.execute(db);
  await sql`create unique index "callback_of_payment" on "callbacks" ("payment_id")`.execute(db);
  const isDamaged = sql.raw(damagedSql(db, 'ledger'));
  await sql`update "ledger" set "name" = '' where "name" = ${FORMER_LEDGER} and not (${isDamaged})`.execute(db);
}

function createTable(db: Kysely<Tables>, table: StoredTable): Promise<unknown> {
  return sql.raw(`create table "${table}" (${TABLES[table].join(', ')})`).execute(db);
}

async function createSchema(db: Kysely<Tables>): Promise<void> {
  const run = (statement: string) => sql.raw(statement).execute(db);
  const isFirst = (table: StoredTable) => !LATER_TABLES.includes(table);
  for (const table of (Object.keys(TABLES) as StoredTable[]).filter(isFirst)) await createTable(db, table);
  for (const [name, table, names, where] of INDEXES) {
    const on = names.split(' ').map((it) => `"${it}"`);
    await run(`create index "${name}" on "${table}" (${on.join(', ')})${where === undefined ? '' : ` where ${where}`}`);
  }
  await addChecksumFunction(db);
  for (const table of CHECKED_TABLES.filter(isFirst)) await addChecksumTriggers(db, table);
  const ends = { end_seq: 0, end_link: '', pruned_seq: 0, pruned_link: '', pruned_count: 0 };
  await db
    .insertInto('ledger')
    .values({ name: FORMER_LEDGER, ...ends })
    .execute();
}
