import { hash } from 'node:crypto';
import { type Kysely, PostgresAdapter, sql } from 'kysely';
import { PayboxError } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Tables } from '../schema/tables.ts';

/** The SQL function in both engines that returns the checksum of a text. */
export const CHECKSUM_FUNCTION = 'paybox_checksum';
const CHECKSUM_CHARS = 16;
/** Stands between two values. */
const SEPARATOR = '\u001f';
/** Stands in place of null. */
const NULL = '\u0001';
/** At most this many damaged rows of a table are named. */
const NAMED_MAX = 1000;

/** The columns that the checksum of a row covers, in each table that carries money. */
export const COVERED = {
  orders: [
    ...(['id', 'seq', 'partner', 'order_id', 'bank_account', 'bank_code', 'user_bank_name', 'amount'] as const),
    ...(['content', 'trans_type', 'qr_code', 'terminal_code', 'sub_terminal_code', 'service_code', 'sign'] as const),
    ...(['url_link', 'status', 'failure', 'last_push_id', 'shown_on', 'shown_push_id'] as const),
    ...(['created_at_ms', 'updated_at_ms', 'paid_at_ms'] as const),
  ],
  pushes: [
    ...(['id', 'seq', 'order_ref', 'terminal_code', 'status', 'code'] as const),
    ...(['created_at_ms', 'expires_at_ms', 'confirmed_at_ms', 'ended_at_ms'] as const),
  ],
  // `link` is last, because it covers the columns before it.
  payments: [
    ...(['id', 'seq', 'partner', 'order_ref', 'order_id', 'reference_number', 'bank_account', 'bank_code'] as const),
    ...(['amount', 'content', 'trans_type', 'paid_at_ms', 'link'] as const),
  ],
  callbacks: [
    ...(['id', 'seq', 'payment_id', 'partner', 'url', 'body', 'status', 'warning'] as const),
    ...(['tries', 'next_at_ms', 'created_at_ms'] as const),
  ],
  notices: [
    ...(['payment_id', 'terminal_code', 'push_id', 'created_at_ms', 'told_at_ms'] as const),
    ...(['reported_at_ms', 'recorded'] as const),
  ],
  credits: [
    ...(['id', 'seq', 'source', 'source_id', 'reference', 'bank_account', 'virtual_account'] as const),
    ...(['amount', 'text', 'bank_time_ms', 'received_at_ms', 'late'] as const),
    ...(['payment_id', 'order_amount', 'order_paid'] as const),
  ],
  order_codes: [...(['code', 'bank_account', 'order_ref', 'created_at_ms'] as const)],
  payment_requests: [
    ...(['order_code', 'source', 'order_ref', 'bank_account', 'virtual_account'] as const),
    ...(['created_at_ms', 'expires_at_ms', 'ended_at_ms', 'closed_at_ms'] as const),
  ],
  ledger: [...(['name', 'end_seq', 'end_link', 'pruned_seq', 'pruned_link', 'pruned_count'] as const)],
} as const satisfies { [Table in keyof Tables]?: readonly (keyof Tables[Table])[] };

export type CheckedTable = keyof typeof COVERED;
export const CHECKED_TABLES = Object.keys(COVERED) as CheckedTable[];
type CheckedRow<Table extends CheckedTable> = Record<(typeof COVERED)[Table][number] | 'checksum', unknown>;

export function checksumOf(text: string): string {
  return hash('sha256', text).slice(0, CHECKSUM_CHARS);
}

/** Joins values to the text that checksums and links cover. */
export function joined(values: readonly unknown[]): string {
  return values.map((it) => (it === null ? NULL : String(it))).join(SEPARATOR);
}

/** Returns an SQL expression for the text that `joined` makes of columns. In a trigger, `row` is `old.` or `new.`. */
export function joinedSql(columns: readonly string[], row = ''): string {
  return columns.map((it) => `coalesce(cast(${row}${it} as text), '${NULL}')`).join(` || '${SEPARATOR}' || `);
}

/** The columns that the link of a payment covers. It has the number of the payment in its chain in place of `seq`. */
const CHAINED = COVERED.payments.flatMap((it) => {
  if (it === 'link') return [];
  return it === 'seq' ? ('number' as const) : it;
});

/** Returns the text of a payment that its link covers. */
export function paymentContent(row: Record<(typeof CHAINED)[number], unknown>): string {
  return joined(CHAINED.map((column) => row[column]));
}

/** An SQL expression for `paymentContent`. */
export const PAYMENT_CONTENT_SQL = joinedSql(CHAINED);

/** Returns the row. Throws a PayboxError when the row is damaged. */
export function intact<Table extends CheckedTable, Row extends CheckedRow<Table>>(
  table: Table,
  row: Row | undefined,
): Row | undefined {
  if (row === undefined || isIntact(table, row)) return row;
  const what = `the row ${nameOf(table, row)} of ${table} is damaged: its checksum is wrong`;
  const fix = 'restore a copy of the store: the gateway does not use this row';
  throw new PayboxError('STORAGE_FAULT', what, { severity: 'fatal', fix });
}

/** Returns the rows that are not damaged, and logs the others. */
export function onlyIntact<Table extends CheckedTable, Row extends CheckedRow<Table>>(
  table: Table,
  rows: Row[],
  log: Logger,
): Row[] {
  return rows.filter((row) => {
    if (isIntact(table, row)) return true;
    log.error('row-damaged', { table, name: nameOf(table, row), fix: 'restore a copy of the store' });
    return false;
  });
}

function isIntact<Table extends CheckedTable>(table: Table, row: CheckedRow<Table>): boolean {
  const values: Record<string, unknown> = row;
  return row.checksum === checksumOf(joined(COVERED[table].map((column) => values[column])));
}

/** Returns the names of the rows of a table whose checksum is wrong, at most 1,000. */
export async function damagedRows(db: Kysely<Tables>, table: CheckedTable): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select cast(${sql.raw(nameSql(table))} as text) as name from ${sql.table(table)}
    where ${sql.raw(damagedSql(db, table))} limit ${NAMED_MAX}`.execute(db);
  return rows.map(({ name }) => name);
}

/** The damaged rows of each table, as they were read. */
export type Quarantined = { [Table in CheckedTable]: CheckedRow<Table>[] };

/** Moves the damaged rows to `damaged_rows`, and returns them. */
export async function quarantineDamaged(db: Kysely<Tables>): Promise<Quarantined> {
  const quarantined: { [Table in CheckedTable]?: unknown } = {};
  for (const table of CHECKED_TABLES) {
    const isDamaged = sql.raw(damagedSql(db, table));
    const [name, content] = [sql.raw(nameSql(table)), sql.raw(joinedSql(COVERED[table]))];
    await sql`insert into damaged_rows (table_name, name, content)
      select ${sql.lit(table)}, ${name}, ${content} from ${sql.table(table)} where ${isDamaged}`.execute(db);
    const deleted = await sql`delete from ${sql.table(table)} where ${isDamaged} returning *`.execute(db);
    quarantined[table] = deleted.rows;
  }
  return quarantined as Quarantined;
}

/**
 * Adds triggers that write the checksum of a row at each insert and update. They refuse to update a damaged row,
 * because it would get a checksum that fits the damage.
 */
export async function addChecksumTriggers(db: Kysely<Tables>, table: CheckedTable): Promise<void> {
  const statements = isPostgres(db) ? postgresTriggers(table) : sqliteTriggers(table);
  for (const statement of statements) await sql.raw(statement).execute(db);
}

/** Creates the checksum function in PostgreSQL. For SQLite, the code that opens the file adds it. */
export async function addChecksumFunction(db: Kysely<Tables>): Promise<void> {
  if (!isPostgres(db)) return;
  const body = `left(encode(sha256(convert_to($1, 'UTF8')), 'hex'), ${CHECKSUM_CHARS})`;
  await sql
    .raw(`create function ${CHECKSUM_FUNCTION}(text) returns text language sql as $$ select ${body} $$`)
    .execute(db);
}

export function isPostgres(db: Kysely<Tables>): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}

function sqliteTriggers(table: CheckedTable): string[] {
  const keep = `update ${table} set checksum = ${checksumSql(table)} where rowid = new.rowid`;
  const refuse = `select raise(abort, 'a row of ${table} is damaged: ' || old.${COVERED[table][0]})
    where old.checksum is distinct from ${checksumSql(table, 'old.')}`;
  return [
    `create trigger ${table}_inserted after insert on ${table} begin ${keep}; end`,
    `create trigger ${table}_updated after update of ${COVERED[table].join(', ')} on ${table}
     begin ${refuse}; ${keep}; end`,
  ];
}

function postgresTriggers(table: CheckedTable): string[] {
  return [
    `create function ${table}_checksum() returns trigger language plpgsql as $$
     begin
       if tg_op = 'UPDATE' and old.checksum is distinct from ${checksumSql(table, 'old.')} then
         raise exception 'a row of ${table} is damaged: %', old.${COVERED[table][0]} using errcode = 'data_corrupted';
       end if;
       new.checksum := ${checksumSql(table, 'new.')};
       return new;
     end $$`,
    `create trigger ${table}_checksum before insert or update on ${table}
     for each row execute function ${table}_checksum()`,
  ];
}

/**
 * Returns an SQL condition for a damaged row. In SQLite one changed bit can turn a text into a BLOB. The cast in the
 * checksum hides that, so the type is checked too.
 */
export function damagedSql(db: Kysely<Tables>, table: CheckedTable): string {
  const isOther = `checksum is distinct from ${checksumSql(table)}`;
  return isPostgres(db)
    ? isOther
    : `(${isOther} or 'blob' in (${COVERED[table].map((it) => `typeof(${it})`).join(', ')}))`;
}

function checksumSql(table: CheckedTable, row = ''): string {
  return `${CHECKSUM_FUNCTION}(${joinedSql(COVERED[table], row)})`;
}

function nameSql(table: CheckedTable): string {
  if (table === 'notices') return "'payment ' || payment_id || ' to ' || terminal_code";
  return table === 'callbacks' ? "id || ' of payment ' || payment_id" : COVERED[table][0];
}

function nameOf<Table extends CheckedTable>(table: Table, row: CheckedRow<Table>): string {
  const values: Record<string, unknown> = row;
  if (table === 'notices') return `payment ${values.payment_id} to ${values.terminal_code}`;
  const name = String(values[COVERED[table][0]]);
  return table === 'callbacks' ? `${name} of payment ${values.payment_id}` : name;
}
