import { type Kysely, type RawBuilder, sql } from 'kysely';
import { isStorable } from '../../../lib/text.ts';
import { isPostgres } from '../integrity/checksums.ts';
import { keepSetting } from '../integrity/settings.ts';
import {
  type AuditRow,
  type BoxRow,
  type ChangedBy,
  KEY_ID,
  type NewAudit,
  OPEN_PUSH,
  type OrderRow,
  type RegistryTable,
  type Tables,
} from '../schema/tables.ts';
import { transact } from '../transact.ts';
import { takeBoxOut } from './admin-tokens.ts';
import { noteChange } from './audit.ts';

/** At most this many boxes of one account are read. Each payment to it makes a notice for each of them. */
export const BOXES_OF_ACCOUNT_MAX = 10_000;
const ROWS_AT_ONCE = 500;
/** More changes than may be under way at once. */
const CHANGES_COMPARED = 50;
/** A character greater than any in a name. */
const AFTER_ALL = '\u{10ffff}';

export type RegistryRow<Table extends RegistryTable> = Tables[Table];

/** The column with the name of a row. */
export const NAME_OF = {
  partners: 'username',
  accounts: 'bank_account',
  boxes: 'terminal_code',
  sources: 'name',
} as const;

/** Returns the name of a row of this table. */
export function nameOf(table: RegistryTable, row: object): string {
  return String(Object.entries(row).find(([key]) => key === NAME_OF[table])?.[1]);
}

/** A part of a table, in the order of its names. */
export interface PageQuery {
  limit: number;
  /** Only rows after this name, or after this value of the column of `begins`. */
  after?: string | undefined;
  /** Only rows that have this value in this column. */
  where?: { column: string; value: string } | undefined;
  /** Only boxes that have their own secret in the store. */
  has?: 'secret' | undefined;
  /** Only rows whose value in this column begins with this text. */
  begins?: { column: string; text: string } | undefined;
}

/** The boxes that a payment concerns. */
export interface Recipients {
  /** Returns whether a box, enabled or disabled, has this terminalCode. */
  isBox(terminalCode: string): boolean;
  /** The enabled box that has shown the order, or else the one that the order was made for. */
  box: string | undefined;
  /** Every enabled box of the account. Empty if `box` is given. */
  boxes: readonly string[];
}

/** Reads partners, accounts, boxes and sources. Only the count reads a whole table. */
export interface RegistryReader {
  find<Table extends RegistryTable>(table: Table, name: string): Promise<RegistryRow<Table> | undefined>;
  boxBy(column: 'serial_number' | 'mac_addr', value: string): Promise<BoxRow | undefined>;
  /** Returns at most `BOXES_OF_ACCOUNT_MAX` boxes. */
  boxesOf(bankAccount: string): Promise<BoxRow[]>;
  page<Table extends RegistryTable>(table: Table, query: PageQuery): Promise<RegistryRow<Table>[]>;
  /** Returns the boxes that are linked to an account, ordered by account. */
  linkedBoxes(limit: number): Promise<BoxRow[]>;
  /** Returns the boxes that speak a dialect of other makers. */
  dialectBoxes(limit: number): Promise<BoxRow[]>;
  /** Returns the boxes with these codes. The caller passes at most some hundreds. */
  boxesNamed(terminalCodes: readonly string[]): Promise<BoxRow[]>;
  boxCount(): Promise<number>;
}

/** The prefix of a setting, before the name of a source. Its value is the kind of the source. */
const KIND_OF_SOURCE = 'kind-of-source-';

/** Stores partners, accounts, boxes and sources, and the list of their changes. */
export class RegistryStore implements RegistryReader {
  readonly #db: Kysely<Tables>;
  readonly #early: Kysely<Tables>;

  /** `early`: for a look whether anything has changed, after which the rows are read. */
  constructor(db: Kysely<Tables>, early = db) {
    this.#db = db;
    this.#early = early;
  }

  /** Makes all changes of `work`, or none. Runs it as `transact` does: perhaps several times. */
  transaction<T>(work: (registry: RegistryStore) => Promise<T>): Promise<T> {
    return transact(this.#db, (trx) => work(new RegistryStore(trx)));
  }

  async find<Table extends RegistryTable>(table: Table, name: string): Promise<RegistryRow<Table> | undefined> {
    // SQLite may have such a row from before names were checked. An admin must be able to find and remove it.
    if (!isStorable(name) && isPostgres(this.#db)) return undefined;
    const [row] = await this.#rows<Table>(sql`select * from ${sql.table(table)} where ${nameIn(table)} = ${name}`);
    return row;
  }

  boxBy(column: 'serial_number' | 'mac_addr', value: string): Promise<BoxRow | undefined> {
    return this.#db.selectFrom('boxes').selectAll().where(column, '=', value).executeTakeFirst();
  }

  boxesOf(bankAccount: string): Promise<BoxRow[]> {
    return this.page('boxes', { limit: BOXES_OF_ACCOUNT_MAX, where: { column: 'account', value: bankAccount } });
  }

  async page<Table extends RegistryTable>(
    table: Table,
    { limit, after = '', where, has, begins }: PageQuery,
  ): Promise<RegistryRow<Table>[]> {
    // A page by another column is in the order of that column, so that the index returns it in this order.
    const by = begins === undefined ? nameIn(table) : sql.ref(begins.column);
    // The query has only one lower bound. With two, SQLite may begin at the lower one and read up to the other.
    const isFirst = begins !== undefined && after < begins.text;
    const conditions = [isFirst ? sql`${by} >= ${begins.text}` : sql`${by} > ${after}`];
    if (begins !== undefined) conditions.push(sql`${by} < ${begins.text + AFTER_ALL}`);
    if (has !== undefined) conditions.push(sql`${sql.ref(has)} is not null`);
    if (where !== undefined) conditions.push(sql`${sql.ref(where.column)} = ${where.value}`);
    return this.#rows<Table>(
      sql`select * from ${sql.table(table)} where ${sql.join(conditions, sql` and `)} order by ${by} limit ${limit}`,
    );
  }

  linkedBoxes(limit: number): Promise<BoxRow[]> {
    const boxes = this.#db.selectFrom('boxes').selectAll().where('account', '>', '');
    return boxes.orderBy('account').orderBy('terminal_code').limit(limit).execute();
  }

  boxesNamed(terminalCodes: readonly string[]): Promise<BoxRow[]> {
    return this.#db.selectFrom('boxes').selectAll().where('terminal_code', 'in', terminalCodes).execute();
  }

  async boxCount(): Promise<number> {
    const counted = this.#db.selectFrom('boxes').select(({ fn }) => fn.countAll<number | string>().as('count'));
    return Number((await counted.executeTakeFirstOrThrow()).count);
  }

  dialectBoxes(limit: number): Promise<BoxRow[]> {
    // This is a literal, because with a parameter SQLite does not use the index.
    const boxes = this.#db.selectFrom('boxes').selectAll().where('dialect', '<>', sql.lit('paybox'));
    return boxes.orderBy('terminal_code').limit(limit).execute();
  }

  /** Reads every row of a table that fits the query, in the order of their names. */
  async *each<Table extends RegistryTable>(table: Table, query: Pick<PageQuery, 'has'> = {}) {
    for (let after = ''; ; ) {
      const rows = await this.page(table, { ...query, limit: ROWS_AT_ONCE, after });
      yield* rows;
      if (rows.length < ROWS_AT_ONCE) return;
      after = nameOf(table, rows.at(-1) ?? {});
    }
  }

  /** Returns the rows that the gateway's file manages. These are not more than fit into a file. */
  managedByFile<Table extends RegistryTable>(table: Table): Promise<RegistryRow<Table>[]> {
    return this.#rows<Table>(sql`select * from ${sql.table(table)} where managed = ${sql.lit('file')}`);
  }

  /** Returns whether the file manages every row. */
  async isUnused(): Promise<boolean> {
    for (const table of ['partners', 'accounts', 'boxes'] as const) {
      const own = sql`select * from ${sql.table(table)} where managed <> ${sql.lit('file')} limit 1`;
      if ((await this.#rows(own)).length > 0) return false;
    }
    return true;
  }

  /** Adds a row, or replaces the row of the same name. */
  async put<Table extends RegistryTable>(table: Table, row: RegistryRow<Table>): Promise<void> {
    const changes = Object.keys(row).map((name) => sql`${sql.ref(name)} = ${sql.ref(`excluded.${name}`)}`);
    await sql`${insertInto(table, row)}
      on conflict (${nameIn(table)}) do update set ${sql.join(changes)}`.execute(this.#db);
  }

  /** Adds a row. Returns false, and adds nothing, if another row has its name or another value that must be unique. */
  async add<Table extends RegistryTable>(table: Table, row: RegistryRow<Table>): Promise<boolean> {
    return (await this.#rows(sql`${insertInto(table, row)} on conflict do nothing returning 1`)).length > 0;
  }

  async remove(table: RegistryTable, name: string): Promise<void> {
    await sql`delete from ${sql.table(table)} where ${nameIn(table)} = ${name}`.execute(this.#db);
  }

  /** Removes a deleted box from the tokens of cashiers, in the same transaction (PROTOCOL.md, clause ROL-6). */
  takeOutOfTokens(terminalCode: string, by: ChangedBy): Promise<void> {
    return takeBoxOut(this.#db, terminalCode, by);
  }

  /** Adds a change to the audit list, in the transaction of the change. */
  note(change: NewAudit): Promise<void> {
    return noteChange(this.#db, change);
  }

  /** Returns changes, newest first. With `before`, a `seq`, only older ones. */
  changes(
    limit: number,
    { before, target }: { before?: number | undefined; target?: string | undefined } = {},
  ): Promise<AuditRow[]> {
    let rows = this.#db.selectFrom('audit').selectAll().orderBy('seq', 'desc').limit(limit);
    if (before !== undefined) rows = rows.where('seq', '<', before);
    if (target !== undefined) rows = rows.where('target', '=', target);
    return rows.execute();
  }

  /** Returns a text that differs after each change: the newest numbers of the audit list, which may commit in any order. */
  async version(): Promise<string> {
    const newest = this.#early.selectFrom('audit').select('seq').orderBy('seq', 'desc').limit(CHANGES_COMPARED);
    return (await newest.execute()).map(({ seq }) => seq).join();
  }

  /** Returns the id of the key that encrypts secrets. `undefined` while there is none. */
  keyId(): Promise<string | undefined> {
    return this.#setting(KEY_ID);
  }

  keepKeyId(value: string): Promise<void> {
    return keepSetting(this.#db, KEY_ID, value);
  }

  /**
   * Returns the kind that a source of this name has, or had. Ids of a source of another kind could be taken for credits
   * that this one has reported.
   */
  kindOfSource(name: string): Promise<string | undefined> {
    return this.#setting(`${KIND_OF_SOURCE}${name}`);
  }

  keepKindOfSource(name: string, kind: string): Promise<void> {
    return keepSetting(this.#db, `${KIND_OF_SOURCE}${name}`, kind);
  }

  /** Returns whether a box may show an order of this account, at this calendar time. */
  async isOnBox(bankAccount: string, atMs: number): Promise<boolean> {
    const open = this.#db
      .selectFrom('pushes')
      .innerJoin('orders', 'orders.id', 'pushes.order_ref')
      .select('pushes.id')
      .where('pushes.status', 'in', OPEN_PUSH)
      .where('pushes.expires_at_ms', '>', atMs)
      .where('orders.bank_account', '=', bankAccount);
    return (await open.limit(1).executeTakeFirst()) !== undefined;
  }

  /** Returns the boxes of this account that a payment of this order, or of no order, concerns. */
  async recipients(order: OrderRow | undefined, bankAccount: string): Promise<Recipients> {
    const { shown_on = null, terminal_code = '' } = order ?? {};
    const named = [...new Set([shown_on ?? '', terminal_code])].filter((it) => it !== '');
    const known = new Map<string, BoxRow>();
    for (const name of named) {
      const box = await this.find('boxes', name);
      if (box !== undefined) known.set(name, box);
    }
    const last = known.get(shown_on ?? terminal_code);
    const box = last?.disabled === 0 && last.account === bankAccount ? last.terminal_code : undefined;
    const boxes = box === undefined ? await this.boxesOf(bankAccount) : [];
    return {
      isBox: (terminalCode) => known.has(terminalCode),
      box,
      boxes: boxes.filter((it) => it.disabled === 0).map((it) => it.terminal_code),
    };
  }

  async #setting(name: string): Promise<string | undefined> {
    const setting = this.#db.selectFrom('settings').select('value').where('name', '=', name);
    return (await setting.executeTakeFirst())?.value;
  }

  async #rows<Table extends RegistryTable>(query: RawBuilder<unknown>): Promise<RegistryRow<Table>[]> {
    return (query as RawBuilder<RegistryRow<Table>>).execute(this.#db).then(({ rows }) => rows);
  }
}

function insertInto(table: RegistryTable, row: object): RawBuilder<unknown> {
  const columns = Object.entries(row);
  const names = sql.join(columns.map(([name]) => sql.ref(name)));
  return sql`insert into ${sql.table(table)} (${names}) values (${sql.join(columns.map(([, value]) => value))})`;
}

function nameIn(table: RegistryTable): RawBuilder<unknown> {
  return sql.ref(NAME_OF[table]);
}
