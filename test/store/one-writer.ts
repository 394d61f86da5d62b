import { Kysely, Migrator, PostgresDialect } from 'kysely';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { HighWaterMark, type StoreLocation } from '../../src/gateway/store/integrity/high-water-mark.ts';
import { verifyLedger } from '../../src/gateway/store/integrity/ledger.ts';
import { LedgerGuard } from '../../src/gateway/store/integrity/ledger-guard.ts';
import { prune } from '../../src/gateway/store/prune.ts';
import { ModeHistory } from '../../src/gateway/store/repositories/mode-history.ts';
import { MoneyTransaction } from '../../src/gateway/store/repositories/money-transaction.ts';
import { MIGRATIONS } from '../../src/gateway/store/schema/migrations.ts';
import type { Tables } from '../../src/gateway/store/schema/tables.ts';
import { checkAtStart } from '../../src/gateway/store/startup/check.ts';
import type { Store } from '../../src/gateway/store/store.ts';
import { transact } from '../../src/gateway/store/transact.ts';
import { keptLog } from '../support/kept-log.ts';

const INT8 = 20;
/** Connections of one gateway, so that its own transactions overlap too. */
const CONNECTIONS = 3;
const AT_ONCE = '-c default_transaction_isolation=serializable';

/** A PostgreSQL database as the store reads it, without a lock: others may use it at once. */
export function openDatabase(databaseUrl: string): Kysely<Tables> {
  const getTypeParser = ((oid: number, format?: 'text') =>
    oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser;
  const types = { getTypeParser };
  const pool = new pg.Pool({ connectionString: databaseUrl, max: CONNECTIONS, options: AT_ONCE, types });
  pool.on('error', () => undefined);
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  onTestFinished(() => db.destroy());
  return db;
}

/** Applies migrations, all or those before this one. */
export async function migrate(db: Kysely<Tables>, before = '~'): Promise<void> {
  const migrations = Object.fromEntries(Object.entries(MIGRATIONS).filter(([name]) => name < before));
  const { error } = await new Migrator({ db, provider: { getMigrations: async () => migrations } }).migrateToLatest();
  if (error !== undefined) throw error;
}

/** The part of a gateway that keeps payments in a PostgreSQL database: its chain, its mark and its guard. */
export class OneWriter {
  readonly db: Kysely<Tables>;
  readonly mark: HighWaterMark;
  readonly guard: LedgerGuard;
  readonly history: ModeHistory;
  readonly lines: ReturnType<typeof keptLog>['lines'];
  readonly #location: StoreLocation;
  readonly #log: ReturnType<typeof keptLog>['log'];

  /** `name` is '' for a gateway alone. */
  constructor(name: string, databaseUrl: string, dataDir: string, generation = '') {
    const { log, lines } = keptLog();
    const sharing = { name, run: name, application: name, generation };
    this.#location = { dataDir, databaseUrl, ...(name === '' ? {} : { sharing }) };
    this.#log = log;
    this.lines = lines;
    this.db = openDatabase(databaseUrl);
    this.mark = new HighWaterMark(this.#location, log);
    this.guard = new LedgerGuard(this.#location, this.mark, log);
    this.history = new ModeHistory(this.db);
    onTestFinished(() => this.mark.close());
  }

  /** Does what a start does, in its order. */
  async start(): Promise<this> {
    await this.guard.checkFirst(this.db);
    await migrate(this.db);
    await checkAtStart(this.db, this.#location, { mark: this.mark, log: this.#log });
    return this;
  }

  within: Store['within'] = async (work) => {
    this.guard.assertWhole();
    const { result, stored } = await transact(this.db, async (trx) => {
      const money = new MoneyTransaction(trx, this.history, this.mark.writer);
      return { result: await work(money), stored: money.stored };
    });
    for (const payment of stored) this.mark.move(payment);
    return result;
  };

  /** Deletes all but the newest `keptMax` payments. */
  async prune(keptMax: number): Promise<void> {
    for await (const _batch of prune(this.db, 1, { keptMs: 1_000, keptMax }));
  }

  /** Returns the numbers of each writer's payments, in the order of their lists. */
  async numbers(): Promise<Record<string, number[]>> {
    const rows = await this.db.selectFrom('payments').select(['writer', 'number']).orderBy('seq').execute();
    const byWriter = Map.groupBy(rows, ({ writer }) => writer);
    return Object.fromEntries([...byWriter].map(([name, payments]) => [name, payments.map(({ number }) => number)]));
  }

  async problems(): Promise<string[]> {
    return (await verifyLedger(this.db)).problems;
  }
}
