import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type DialectAdapter, Kysely, Migrator, SqliteAdapter, SqliteDialect } from 'kysely';
import { ConfigError, reasonOf } from '../../lib/errors.ts';
import { OrderStore } from './orders.ts';
import { PaymentStore } from './payments.ts';
import { MIGRATIONS, type NextSeq, type Tables } from './schema.ts';
import { openSqlite } from './sqlite.ts';

/** Everything that the gateway must not forget. */
export interface Store {
  orders: OrderStore;
  payments: PaymentStore;
  /** The setting, made and kept by `make` when it is not there yet. */
  setting(name: string, make: () => string): Promise<string>;
  close(): Promise<void>;
}

/** Opens the store in a folder, which is made, and brings it to the newest migration. Throws ConfigError. */
export async function openStore(dataDir: string): Promise<Store> {
  const file = join(dataDir, 'gateway.sqlite');
  const db = await connect(dataDir, file);
  const nextSeq = await countFrom(db);
  return {
    orders: new OrderStore(db, nextSeq),
    payments: new PaymentStore(db, nextSeq),
    setting: async (name, make) => {
      await db
        .insertInto('settings')
        .values({ name, value: make() })
        .onConflict((it) => it.column('name').doNothing())
        .execute();
      const row = await db.selectFrom('settings').select('value').where('name', '=', name).executeTakeFirstOrThrow();
      return row.value;
    },
    close: () => db.destroy(),
  };
}

/** SQLite, whose migrations are made whole or not at all: one that is killed midway is made anew by the next start. */
class WholeMigrations extends SqliteDialect {
  override createAdapter(): DialectAdapter {
    return new TransactionalAdapter();
  }
}

class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

async function connect(dataDir: string, file: string): Promise<Kysely<Tables>> {
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    const db = new Kysely<Tables>({ dialect: new WholeMigrations({ database: openSqlite(file) }) });
    const migrator = new Migrator({ db, provider: { getMigrations: async () => MIGRATIONS } });
    const { error } = await migrator.migrateToLatest();
    if (error !== undefined) {
      await db.destroy();
      throw error;
    }
    return db;
  } catch (error) {
    throw new ConfigError(
      `dataDir: the store ${file} cannot be opened: ${reasonOf(error)}`,
      'use a folder that this user can write and that no other gateway uses',
    );
  }
}

async function countFrom(db: Kysely<Tables>): Promise<NextSeq> {
  let last = 0;
  for (const table of ['orders', 'pushes', 'payments', 'callbacks', 'callback_attempts'] as const) {
    const row = await db
      .selectFrom(table)
      .select((it) => it.fn.max('seq').as('seq'))
      .executeTakeFirst();
    last = Math.max(last, Number(row?.seq ?? 0));
  }
  return () => {
    last += 1;
    return last;
  };
}
