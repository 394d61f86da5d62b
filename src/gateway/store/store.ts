import type { FileHandle } from 'node:fs/promises';
import { type Dialect, Kysely, Migrator } from 'kysely';
import { ConfigError, type PayboxError, reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { DatabaseClock } from './engines/database-clock.ts';
import { noBackup, SnapshotMaker } from './engines/snapshot.ts';
import { damaged, sqliteFile, sqliteProblem } from './engines/sqlite.ts';
import { HighWaterMark, type StoreLocation } from './integrity/high-water-mark.ts';
import { LedgerGuard } from './integrity/ledger-guard.ts';
import { type Pruned, prune, type RetentionLimits } from './prune.ts';
import { AdminTokenStore } from './repositories/admin-tokens.ts';
import { CallbackStore } from './repositories/callbacks.ts';
import { BoxSecretStore, KnownLoginStore } from './repositories/credentials.ts';
import { CreditStore } from './repositories/credits.ts';
import { EnrolmentRequestStore } from './repositories/enrolment-requests.ts';
import { ModeHistory } from './repositories/mode-history.ts';
import { MoneyTransaction } from './repositories/money-transaction.ts';
import { OrderStore } from './repositories/orders.ts';
import { PaymentRequestStore } from './repositories/payment-requests.ts';
import { PaymentStore } from './repositories/payments.ts';
import { PushReader } from './repositories/pushes.ts';
import { QrCodeStore } from './repositories/qr-codes.ts';
import { RegistryStore } from './repositories/registry.ts';
import { SaleStore } from './repositories/sales.ts';
import { Search } from './repositories/search.ts';
import { isHarmless, schemaDifference } from './schema/difference.ts';
import { MIGRATIONS } from './schema/migrations.ts';
import type { Tables } from './schema/tables.ts';
import { checkAtStart } from './startup/check.ts';
import type { DeliveriesFor } from './startup/requeue.ts';
import { makeDataDir, refuseStoppedRestore, storeFile } from './store-files.ts';
import { transact } from './transact.ts';
import { probeCommit, probeWrites } from './write-probe.ts';

/** The setting with the last trusted calendar time. */
const TRUSTED_TIME = 'believed-time-ms';

export interface Settings {
  /** Returns a setting. Creates a missing one with the value of `make`. */
  setting(name: string, make: () => string): Promise<string>;
  /** Returns those of these settings that exist, by name. */
  settingsNamed(names: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Changes an existing setting. */
  replaceSetting(name: string, value: string): Promise<void>;
}

/** The data of the gateway that survives a restart. */
export interface Store extends Settings {
  orders: OrderStore;
  pushes: PushReader;
  qrCodes: QrCodeStore;
  payments: PaymentStore;
  credits: CreditStore;
  sales: SaleStore;
  paymentRequests: PaymentRequestStore;
  search: Search;
  callbacks: CallbackStore;
  knownLogins: KnownLoginStore;
  enrolmentRequests: EnrolmentRequestStore;
  history: ModeHistory;
  boxSecrets: BoxSecretStore;
  adminTokens: AdminTokenStore;
  registry: RegistryStore;
  /** Runs `work` as `transact` does: in one transaction, perhaps several times. */
  within<T>(work: (money: MoneyTransaction) => Promise<T>): Promise<T>;
  /** Returns the last trusted calendar time, or else the time of the newest row, or `wallMs` for an empty store. */
  trustedTimeMs(wallMs: number): Promise<number>;
  saveTrustedTime(wallMs: number): Promise<void>;
  /**
   * Writes the same rows as a payment does, and rolls them back. Rejects with the reason when the store cannot store a
   * payment: its disk is full, read-only or gone, or the database refuses a table.
   */
  check(): Promise<void>;
  /** Deletes finished rows beyond the limits, batch by batch. */
  prune(atMs: number, limits?: RetentionLimits): AsyncGenerator<Pruned, void>;
  /** Makes a complete copy, whose file is deleted when it is closed. Throws a PayboxError `NO_BACKUP`. */
  backup(): Promise<FileHandle>;
  close(): Promise<void>;
  /** Resolves with an error once another gateway has taken over the store. `undefined` if none can. */
  superseded: Promise<PayboxError> | undefined;
}

/** Called once when a standby begins to wait, with the reason. */
export type OnStandby = (reason: string) => void;

export interface StoreHooks {
  onStandby?: OnStandby | undefined;
  /** Updates the registry, before anything is read from it. */
  seed?: (registry: RegistryStore) => Promise<void>;
  /** Recreates damaged callbacks and notices. Without it they are lost. */
  deliveriesFor?: DeliveriesFor;
  /** Compared with the clock of a PostgreSQL database, at the start and regularly. */
  time?: DatabaseClock | undefined;
}

/** A PostgreSQL database, or else a SQLite file in dataDir. */
export interface StorePlace extends StoreLocation {
  /** True to wait while another gateway uses the database. */
  standby?: boolean | undefined;
}

/**
 * Opens the store, with its folder, applies its migrations, and checks it for damage and loss. Throws ConfigError.
 * Throws MissingPeerError when the database server does not answer.
 */
export async function openStore(
  place: StorePlace,
  log: Logger,
  { onStandby, seed, deliveriesFor, time }: StoreHooks = {},
): Promise<Store> {
  const { dataDir, databaseUrl } = place;
  makeDataDir(dataDir);
  const mark = new HighWaterMark(place, log);
  const {
    db,
    early = db,
    assertInPlace,
    problem,
    backup,
    superseded,
  } = databaseUrl === undefined
    ? await openSqlite(dataDir, log)
    : await openPostgres({ ...place, databaseUrl }, { mark, log, onStandby, time });
  const registry = new RegistryStore(db, early);
  const prepare = async () => {
    await seed?.(registry);
    await checkAtStart(db, place, { mark, log }, deliveriesFor);
    // A store that cannot store a payment must fail before the first one, but after the check, which names damage.
    await probeWrites(db, mark.writer);
  };
  await prepare().catch(async (error: unknown) => {
    mark.close();
    await db.destroy();
    throw problem(error);
  });
  const settings = settingsIn(db);
  const history = new ModeHistory(db);
  return {
    orders: new OrderStore(db, log, early),
    pushes: new PushReader(db, early),
    qrCodes: new QrCodeStore(db),
    payments: new PaymentStore(db, log),
    credits: new CreditStore(db, log, history),
    sales: new SaleStore(db, log, history),
    paymentRequests: new PaymentRequestStore(db, log),
    search: new Search(db, log, history),
    callbacks: new CallbackStore(db, log, early),
    knownLogins: new KnownLoginStore(db, early),
    enrolmentRequests: new EnrolmentRequestStore(db),
    history,
    boxSecrets: new BoxSecretStore(db),
    adminTokens: new AdminTokenStore(db),
    registry,
    ...settings,
    within: async (work) => {
      const { result, stored } = await transact(db, async (trx) => {
        const money = new MoneyTransaction(trx, history, mark.writer);
        return { result: await work(money), stored: money.stored };
      });
      for (const payment of stored) mark.move(payment);
      return result;
    },
    trustedTimeMs: async (wallMs) => {
      const newestMs = await newestRowMs(db);
      return Number(await settings.setting(TRUSTED_TIME, () => String(newestMs ?? wallMs)));
    },
    saveTrustedTime: (wallMs) => settings.replaceSetting(TRUSTED_TIME, String(wallMs)),
    check: async () => {
      assertInPlace();
      await probeWrites(db, mark.writer);
    },
    prune: (atMs, limits) => prune(db, atMs, limits),
    backup,
    superseded,
    close: async () => {
      await db.destroy();
      mark.close();
    },
  };
}

function settingsIn(db: Kysely<Tables>): Settings {
  return {
    setting: async (name, make) => {
      const row = { name, value: make() };
      await db
        .insertInto('settings')
        .values(row)
        .onConflict((it) => it.column('name').doNothing())
        .execute();
      const kept = db.selectFrom('settings').select('value').where('name', '=', name);
      return (await kept.executeTakeFirstOrThrow()).value;
    },
    settingsNamed: async (names) => {
      if (names.length === 0) return new Map();
      const rows = await db.selectFrom('settings').selectAll().where('name', 'in', names).execute();
      return new Map(rows.map((it) => [it.name, it.value]));
    },
    replaceSetting: async (name, value) => {
      await db.updateTable('settings').set({ value }).where('name', '=', name).execute();
    },
  };
}

/** Returns the calendar time of the newest order or payment. */
async function newestRowMs(db: Kysely<Tables>): Promise<number | undefined> {
  const order = db.selectFrom('orders').select('created_at_ms as atMs').orderBy('seq', 'desc').limit(1);
  const payment = db.selectFrom('payments').select('paid_at_ms as atMs').orderBy('seq', 'desc').limit(1);
  const times = [...(await order.execute()), ...(await payment.execute())].map(({ atMs }) => atMs);
  return times.length === 0 ? undefined : Math.max(...times);
}

interface OpenDatabase {
  db: Kysely<Tables>;
  /**
   * Runs reads that do not wait until the disk has what another gateway has committed. Their results may decide, but
   * nobody may learn them before another query of the store has settled. Undefined if no other gateway writes there.
   */
  early?: Kysely<Tables> | undefined;
  /** Throws when the store is no longer at its path, because a restart would not find new data. */
  assertInPlace: () => void;
  /** Adds advice to an error of the start. */
  problem: (error: unknown) => Error;
  backup: () => Promise<FileHandle>;
  superseded: Promise<PayboxError> | undefined;
}

async function openSqlite(dataDir: string, log: Logger): Promise<OpenDatabase> {
  const path = storeFile(dataDir);
  const problem = (error: unknown) => sqliteProblem(path, error);
  try {
    refuseStoppedRestore(dataDir);
    const { dialect, assertInPlace, copyTo } = sqliteFile(path, log);
    const db = await migrated(dialect, probeCommit);
    // No checksum covers the schema. A damaged column name would hide the rows of its table.
    const difference = await schemaDifference(db, isHarmless);
    if (difference !== undefined) {
      await db.destroy();
      throw damaged(path, difference);
    }
    const maker = new SnapshotMaker(path, copyTo);
    return { db, assertInPlace, problem, backup: () => maker.make(), superseded: undefined };
  } catch (error) {
    throw problem(error);
  }
}

async function openPostgres(
  place: StorePlace & { databaseUrl: string },
  { mark, log, onStandby, time }: { mark: HighWaterMark; log: Logger } & Pick<StoreHooks, 'onStandby' | 'time'>,
): Promise<OpenDatabase> {
  const { databaseUrl, standby = false, sharing } = place;
  const { DatabaseInUseError, postgresDatabase, postgresProblem } = await import('./engines/postgres.ts');
  const problem = (error: unknown) => postgresProblem(databaseUrl, error);
  const backup = async () => {
    throw noBackup('the store is in PostgreSQL', 'run paybox backup with --config, where pg_dump is');
  };
  const guard = new LedgerGuard(place, mark, log);
  let waits = false;
  for (;;) {
    const { dialect, early, register, superseded } = postgresDatabase(databaseUrl, { guard, time, log, sharing });
    try {
      const db = await migrated(dialect, register);
      if (waits) log.info('store-taken-over');
      const parts = { assertInPlace: () => undefined, problem, backup, superseded };
      return { db, early: early && new Kysely<Tables>({ dialect: early }), ...parts };
    } catch (error) {
      // Each round waits some seconds for the lock.
      if (!(standby && error instanceof DatabaseInUseError)) throw problem(error);
      if (!waits) {
        log.info('store-lock-awaited', { reason: error.message });
        onStandby?.(error.message);
      }
      waits = true;
    }
  }
}

/** Opens and migrates a database, then writes to it. */
async function migrated(dialect: Dialect, write: (db: Kysely<Tables>) => Promise<void>): Promise<Kysely<Tables>> {
  const db = new Kysely<Tables>({ dialect });
  const provider = { getMigrations: async () => MIGRATIONS };
  try {
    const { error } = await new Migrator({ db, provider }).migrateToLatest();
    if (error !== undefined) throw error;
    await write(db);
    return db;
  } catch (error) {
    await db.destroy();
    const newer = /previously executed migration (\S+) is missing/.exec(reasonOf(error))?.[1];
    if (newer === undefined) throw error;
    const fix = 'start the newer version again, or restore a copy of the store from before it; nothing was changed';
    throw new ConfigError(`the store was written by a newer version: it has ${newer}`, fix);
  }
}
