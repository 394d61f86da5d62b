import { type FileHandle, mkdir } from 'node:fs/promises';
import { type Dialect, Kysely, Migrator, sql } from 'kysely';
import { ConfigError, type PayboxError, reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { noBackup, SnapshotMaker } from './backup/snapshot.ts';
import { refuseStoppedRestore, storeFile } from './backup/store-files.ts';
import { sqliteFile, sqliteProblem } from './engines/sqlite.ts';
import { openLedger } from './integrity/startup-check.ts';
import { type Pruned, prune, type RetentionLimits } from './prune.ts';
import { BoxSecretStore } from './repositories/box-secrets.ts';
import type { DeliveriesFor } from './repositories/deliveries.ts';
import { EnrolmentRequestStore } from './repositories/enrolment-requests.ts';
import { KnownLoginStore } from './repositories/known-logins.ts';
import { OrderStore } from './repositories/orders.ts';
import { PaymentStore } from './repositories/payments.ts';
import { QrCodeStore } from './repositories/qr-codes.ts';
import { MIGRATIONS } from './schema/migrations.ts';
import type { Tables } from './schema/tables.ts';

/** The setting that is written to find out whether anything can be. */
const PROBE = 'write-probe';

/** The setting that says up to which calendar time rows were judged to be over. */
const BELIEVED = 'believed-time-ms';

/** Everything that the gateway must not forget. */
export interface Store {
  orders: OrderStore;
  qrCodes: QrCodeStore;
  payments: PaymentStore;
  knownLogins: KnownLoginStore;
  enrolmentRequests: EnrolmentRequestStore;
  /** Reads them all, once for each gateway. */
  boxSecrets(): Promise<BoxSecretStore>;
  /** The setting, made and kept by `make` when it is not there yet. */
  setting(name: string, make: () => string): Promise<string>;
  /** Gives a setting that is there another value. */
  replaceSetting(name: string, value: string): Promise<void>;
  /** The calendar time up to which rows were judged to be over; without one that of the newest row, or of an empty store `wallMs`. */
  trustedTimeMs(wallMs: number): Promise<number>;
  saveTrustedTime(wallMs: number): Promise<void>;
  /** Writes a row; rejects, and says why, when nothing can be kept: the disk is full, cannot be written or is gone. */
  check(): Promise<void>;
  /** Deletes what is over and beyond the limits, which are the gateway's own where none are given; batch by batch. */
  prune(atMs: number, limits?: RetentionLimits): AsyncGenerator<Pruned, void>;
  /** A whole copy as it stands now, in a file that is gone once it is closed. Throws PayboxError `NO_BACKUP`. */
  backup(): Promise<FileHandle>;
  close(): Promise<void>;
  /** Settles, with what to tell, once another gateway has taken the store over; `undefined` where none can. */
  superseded: Promise<PayboxError> | undefined;
}

/** Called once when a standby begins to wait, with the reason. */
export type OnStandby = (reason: string) => void;

/** What a start of the store may need of its gateway. */
export interface StoreHooks {
  onStandby?: OnStandby | undefined;
  /** What is owed for a payment whose callback or notice was damaged; without it that is not owed any more. */
  deliveriesFor?: DeliveriesFor;
}

/** Where the store is: a PostgreSQL database, or else a SQLite file in the folder. */
export interface StorePlace {
  dataDir: string;
  databaseUrl?: string | undefined;
  /** Whether to wait while another gateway uses the database. */
  standby?: boolean | undefined;
}

/**
 * Opens the store, whose folder is made, brings it to the newest migration, and looks for what is damaged or missing. Throws
 * ConfigError, and MissingPeerError when the database server does not answer.
 */
export async function openStore(
  place: StorePlace,
  log: Logger,
  { onStandby, deliveriesFor: owedFor }: StoreHooks = {},
): Promise<Store> {
  const { dataDir, databaseUrl } = place;
  const { db, holdInPlace, problem, backup, superseded } =
    databaseUrl === undefined
      ? await openFile(dataDir, log)
      : await openDatabase({ ...place, databaseUrl }, log, onStandby);
  const mark = await openLedger(db, place, log, owedFor).catch(async (error: unknown) => {
    await db.destroy();
    throw problem(error);
  });
  const setting: Store['setting'] = async (name, make) => {
    await db
      .insertInto('settings')
      .values({ name, value: make() })
      .onConflict((it) => it.column('name').doNothing())
      .execute();
    const row = await db.selectFrom('settings').select('value').where('name', '=', name).executeTakeFirstOrThrow();
    return row.value;
  };
  const replaceSetting: Store['replaceSetting'] = async (name, value) => {
    await db.updateTable('settings').set({ value }).where('name', '=', name).execute();
  };
  return {
    orders: new OrderStore(db, log),
    qrCodes: new QrCodeStore(db),
    payments: new PaymentStore(db, log, (end) => mark?.move(end)),
    knownLogins: new KnownLoginStore(db),
    enrolmentRequests: new EnrolmentRequestStore(db),
    boxSecrets: () => BoxSecretStore.open(db),
    setting,
    replaceSetting,
    trustedTimeMs: async (wallMs) => {
      const newestMs = await newestRowMs(db);
      return Number(await setting(BELIEVED, () => String(newestMs ?? wallMs)));
    },
    saveTrustedTime: (wallMs) => replaceSetting(BELIEVED, String(wallMs)),
    check: async () => {
      holdInPlace();
      await writeProbe(db);
    },
    prune: (atMs, limits) => prune(db, atMs, limits),
    backup,
    superseded,
    close: async () => {
      await db.destroy();
      mark?.close();
    },
  };
}

/** The calendar time of the newest order or payment. */
async function newestRowMs(db: Kysely<Tables>): Promise<number | undefined> {
  const order = db.selectFrom('orders').select('created_at_ms as atMs').orderBy('seq', 'desc').limit(1);
  const payment = db.selectFrom('payments').select('paid_at_ms as atMs').orderBy('seq', 'desc').limit(1);
  const times = [...(await order.execute()), ...(await payment.execute())].map(({ atMs }) => atMs);
  return times.length === 0 ? undefined : Math.max(...times);
}

interface OpenDatabase {
  db: Kysely<Tables>;
  /** Throws when what is kept would not be found again. */
  holdInPlace: () => void;
  /** What an error at the start means, as a person is told. */
  problem: (error: unknown) => Error;
  backup: () => Promise<FileHandle>;
  superseded: Promise<PayboxError> | undefined;
}

async function openFile(dataDir: string, log: Logger): Promise<OpenDatabase> {
  const path = storeFile(dataDir);
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    refuseStoppedRestore(dataDir);
    const { dialect, assertInPlace: holdInPlace, copyTo } = sqliteFile(path, log);
    const db = await migrated(dialect);
    const maker = new SnapshotMaker(path, copyTo);
    const problem = (error: unknown) => sqliteProblem(path, error);
    return { db, holdInPlace, problem, backup: () => maker.make(), superseded: undefined };
  } catch (error) {
    throw sqliteProblem(path, error);
  }
}

async function openDatabase(
  { databaseUrl, standby = false }: StorePlace & { databaseUrl: string },
  log: Logger,
  onStandby: OnStandby = () => undefined,
): Promise<OpenDatabase> {
  const { DatabaseInUseError, postgresDatabase, postgresProblem } = await import('./engines/postgres.ts');
  let waits = false;
  for (;;) {
    const { dialect, begin, superseded } = postgresDatabase(databaseUrl, log);
    try {
      const db = await migrated(dialect, begin);
      if (waits) log.info('store-taken-over');
      const problem = (error: unknown) => postgresProblem(databaseUrl, error);
      return { db, holdInPlace: () => undefined, problem, backup: refuseBackup, superseded };
    } catch (error) {
      // Each round waits for the lock for a while.
      if (!(standby && error instanceof DatabaseInUseError)) throw postgresProblem(databaseUrl, error);
      if (!waits) log.info('store-awaited', { reason: error.message });
      if (!waits) onStandby(error.message);
      waits = true;
    }
  }
}

async function migrated(dialect: Dialect, begin?: (db: Kysely<Tables>) => Promise<void>): Promise<Kysely<Tables>> {
  const db = new Kysely<Tables>({ dialect });
  const migrator = new Migrator({ db, provider: { getMigrations: async () => MIGRATIONS } });
  const { error } = await migrator.migrateToLatest();
  if (error === undefined) return probed(db, begin);
  await db.destroy();
  const newer = /previously executed migration (\S+) is missing/.exec(reasonOf(error))?.[1];
  if (newer === undefined) throw error;
  const fix = 'start the newer version again, or restore a copy of the store from before it; nothing was changed';
  throw new ConfigError(`the store was written by a newer version: it has ${newer}`, fix);
}

async function refuseBackup(): Promise<never> {
  throw noBackup('the store is in PostgreSQL', 'run paybox backup with --config, where pg_dump is');
}

/** A store that cannot be written would take its first payment in vain: that is told at the start. */
async function probed(db: Kysely<Tables>, begin = writeProbe): Promise<Kysely<Tables>> {
  try {
    await begin(db);
    return db;
  } catch (error) {
    await db.destroy();
    throw error;
  }
}

/** A change each time: the same value again might be written nowhere. */
async function writeProbe(db: Kysely<Tables>): Promise<void> {
  await db
    .insertInto('settings')
    .values({ name: PROBE, value: '0' })
    .onConflict((it) =>
      it.column('name').doUpdateSet({ value: sql<string>`case settings.value when '0' then '1' else '0' end` }),
    )
    .execute();
}
