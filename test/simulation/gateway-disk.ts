import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  Migrator,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import { CHECKSUM_FUNCTION, checksumOf } from '../../src/gateway/store/integrity/checksums.ts';
import { prune } from '../../src/gateway/store/prune.ts';
import { AdminTokenStore } from '../../src/gateway/store/repositories/admin-tokens.ts';
import { CallbackStore } from '../../src/gateway/store/repositories/callbacks.ts';
import { BoxSecretStore, KnownLoginStore } from '../../src/gateway/store/repositories/credentials.ts';
import { CreditStore } from '../../src/gateway/store/repositories/credits.ts';
import { EnrolmentRequestStore } from '../../src/gateway/store/repositories/enrolment-requests.ts';
import { ModeHistory } from '../../src/gateway/store/repositories/mode-history.ts';
import { MoneyTransaction } from '../../src/gateway/store/repositories/money-transaction.ts';
import { OrderStore } from '../../src/gateway/store/repositories/orders.ts';
import { PaymentRequestStore } from '../../src/gateway/store/repositories/payment-requests.ts';
import { PaymentStore } from '../../src/gateway/store/repositories/payments.ts';
import { PushReader } from '../../src/gateway/store/repositories/pushes.ts';
import { QrCodeStore } from '../../src/gateway/store/repositories/qr-codes.ts';
import { RegistryStore } from '../../src/gateway/store/repositories/registry.ts';
import { SaleStore } from '../../src/gateway/store/repositories/sales.ts';
import { Search } from '../../src/gateway/store/repositories/search.ts';
import { MIGRATIONS } from '../../src/gateway/store/schema/migrations.ts';
import type { Tables } from '../../src/gateway/store/schema/tables.ts';
import type { Store } from '../../src/gateway/store/store.ts';
import type { Logger } from '../../src/lib/log.ts';
import { never, type Run } from './machine.ts';
import type { WriteHooks } from './world.ts';

interface Prepared {
  statement: StatementSync;
  /** Whether it gives rows. */
  reads: boolean;
}

/** The database of the gateway: it survives the gateway's crashes, without what was not committed. */
export class GatewayDisk {
  readonly #db = new DatabaseSync(':memory:');
  readonly #prepared = new Map<string, Prepared>();
  #tables: string[] = [];
  hooks: WriteHooks = { beforeWrite: () => undefined, afterWrite: () => undefined };
  /** How long a statement takes, in milliseconds. */
  latencyMs: () => number = () => 0;
  /** Whether this write fails. */
  fails: () => boolean = () => false;

  static async make(): Promise<GatewayDisk> {
    const disk = new GatewayDisk();
    disk.#db.function(CHECKSUM_FUNCTION, { deterministic: true }, (text) => checksumOf(String(text)));
    const db = kyselyOn(new DiskDriver(disk, undefined));
    const { error } = await new Migrator({ db, provider: { getMigrations: async () => MIGRATIONS } }).migrateToLatest();
    if (error !== undefined) throw error;
    const rows = disk.rows<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'");
    disk.#tables = rows.map((row) => row.name).filter((name) => !/^(kysely|sqlite)_/.test(name));
    return disk;
  }

  /** As new, for the next world. */
  wipe(): void {
    this.rollback();
    for (const table of this.#tables) this.#prepare(`DELETE FROM ${table}`).statement.run();
    this.#prepare("INSERT INTO ledger VALUES ('', 0, '', 0, '', 0, NULL)").statement.run();
    this.hooks = { beforeWrite: () => undefined, afterWrite: () => undefined };
    this.latencyMs = () => 0;
    this.fails = () => false;
  }

  /** What the end of a program leaves of its open transaction. */
  rollback(): void {
    if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
  }

  /** Puts rows there before a program starts: no write of a program. */
  put(table: string, rows: readonly object[]): void {
    for (const row of rows) {
      const columns = Object.keys(row);
      const insert = `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`;
      this.#prepare(insert).statement.run(...(Object.values(row) as SQLInputValue[]));
    }
  }

  rows<Row>(sql: string, ...parameters: SQLInputValue[]): Row[] {
    return this.#prepare(sql).statement.all(...parameters) as Row[];
  }

  run(sql: string, parameters: readonly unknown[]): QueryResult<unknown> {
    const { statement, reads } = this.#prepare(sql);
    const inputs = parameters as SQLInputValue[];
    if (reads) return { rows: statement.all(...inputs) };
    return { rows: [], numAffectedRows: BigInt(statement.run(...inputs).changes) };
  }

  /** The store as one run of the gateway opens it. */
  storeFor(run: Run, log: Logger): Store {
    const db = kyselyOn(new DiskDriver(this, run));
    const history = new ModeHistory(db);
    const settings = {
      setting: async (_name: string, make: () => string) => make(),
      settingsNamed: async () => new Map<string, string>(),
      replaceSetting: async () => undefined,
    };
    return {
      ...settings,
      within: (work) => db.transaction().execute((trx) => work(new MoneyTransaction(trx, history, ''))),
      orders: new OrderStore(db, log),
      pushes: new PushReader(db),
      qrCodes: new QrCodeStore(db),
      payments: new PaymentStore(db, log),
      credits: new CreditStore(db, log, history),
      sales: new SaleStore(db, log, history),
      paymentRequests: new PaymentRequestStore(db, log),
      search: new Search(db, log, history),
      callbacks: new CallbackStore(db, log),
      knownLogins: new KnownLoginStore(db),
      enrolmentRequests: new EnrolmentRequestStore(db),
      history,
      boxSecrets: new BoxSecretStore(db),
      adminTokens: new AdminTokenStore(db),
      registry: new RegistryStore(db),
      trustedTimeMs: async (wallMs) => wallMs,
      saveTrustedTime: async () => undefined,
      check: async () => undefined,
      prune: (atMs, limits) => prune(db, atMs, limits),
      superseded: undefined,
      backup: async () => Promise.reject(new Error('this disk is no file')),
      close: async () => undefined,
    };
  }

  #prepare(sql: string): Prepared {
    const known = this.#prepared.get(sql);
    if (known !== undefined) return known;
    const statement = this.#db.prepare(sql);
    const prepared = { statement, reads: statement.columns().length > 0 };
    this.#prepared.set(sql, prepared);
    return prepared;
  }
}

function kyselyOn(driver: DiskDriver): Kysely<Tables> {
  return new Kysely<Tables>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => driver,
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
  });
}

/** One connection, one user at a time, as production's; every step asks whether its program still runs. */
class DiskDriver implements Driver, DatabaseConnection {
  readonly #disk: GatewayDisk;
  readonly #run: Run | undefined;
  #last: Promise<void> = Promise.resolve();
  #release: () => void = () => undefined;
  #inTransaction = false;

  constructor(disk: GatewayDisk, run: Run | undefined) {
    this.#disk = disk;
    this.#run = run;
  }

  async init(): Promise<void> {}

  async destroy(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    const before = this.#last;
    const mine = Promise.withResolvers<void>();
    this.#last = mine.promise;
    await before;
    this.#release = mine.resolve;
    return this;
  }

  async releaseConnection(): Promise<void> {
    this.#release();
  }

  async beginTransaction(): Promise<void> {
    await this.#running();
    this.#disk.run('BEGIN', []);
    this.#inTransaction = true;
  }

  async commitTransaction(): Promise<void> {
    await this.#running();
    await this.#write(() => this.#disk.run('COMMIT', []));
    this.#inTransaction = false;
  }

  async rollbackTransaction(): Promise<void> {
    await this.#running();
    this.#inTransaction = false;
    this.#disk.rollback();
  }

  async executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    await this.#running();
    const execute = () => this.#disk.run(sql, parameters) as QueryResult<Row>;
    const writes = !this.#inTransaction && !sql.startsWith('select');
    return writes ? this.#write(execute) : execute();
  }

  async *streamQuery<Row>(query: CompiledQuery): AsyncIterableIterator<QueryResult<Row>> {
    yield await this.executeQuery<Row>(query);
  }

  #isDead(): boolean {
    return this.#run?.alive === false;
  }

  async #running(): Promise<void> {
    const latencyMs = this.#disk.latencyMs();
    if (latencyMs > 0) await this.#run?.sleep(latencyMs);
    if (this.#isDead()) return never();
  }

  /** What is on the disk once it is done: a statement of its own, or all of a transaction. */
  async #write<T>(work: () => T): Promise<T> {
    this.#disk.hooks.beforeWrite();
    if (this.#isDead()) return never();
    if (this.#disk.fails()) throw new Error('disk I/O error');
    const result = work();
    this.#disk.hooks.afterWrite();
    if (this.#isDead()) return never();
    return result;
  }
}
