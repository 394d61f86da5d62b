import { Kysely, Migrator, sql } from 'kysely';
import { memorySqlite } from '../engines/sqlite.ts';
import { MIGRATIONS } from './migrations.ts';
import type { Tables } from './tables.ts';

/** The SQL of tables, indexes, views and triggers, by kind and name. */
type Schema = ReadonlyMap<string, string | null>;

const MIGRATIONS_TABLE = 'table "kysely_migration"';

/** Kysely writes these tables itself, so their SQL may differ. */
const TABLES_OF_KYSELY = [MIGRATIONS_TABLE, 'table "kysely_migration_lock"'];

/** Returns whether an object changes no row and hides none: an admin's index, or the statistics of `ANALYZE`. */
export function isHarmless(name: string): boolean {
  return /^(index "|table "sqlite_stat\d)/.test(name);
}

/**
 * Describes how the schema of a SQLite store differs from its migrations. `undefined` if it does not. A foreign trigger
 * could change rows, and no checksum would show it. `isAllowed` accepts further objects by name. A store of a newer
 * version is not compared.
 */
export async function schemaDifference(
  db: Kysely<Tables>,
  isAllowed: (name: string) => boolean = () => false,
): Promise<string | undefined> {
  const found = await schemaOf(db);
  if (!found.has(MIGRATIONS_TABLE)) return `it has no ${MIGRATIONS_TABLE}`;
  const applied = await appliedMigrations(db);
  if (applied.some((name) => !Object.hasOwn(MIGRATIONS, name))) return undefined;
  const expected = await expectedSchema(applied);
  for (const [name, text] of found) {
    const isOurs = expected.has(name);
    if (!isOurs && !isAllowed(name)) return `it has ${name.startsWith('index') ? 'an' : 'a'} ${name}`;
    if (isOurs && !TABLES_OF_KYSELY.includes(name) && expected.get(name) !== text) return `it has another ${name}`;
  }
  const missing = [...expected.keys()].find((name) => !found.has(name));
  return missing === undefined ? undefined : `it has no ${missing}`;
}

/** Returns the names of the migrations that were applied to this store. */
export async function appliedMigrations(db: Kysely<Tables>): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(db);
  return rows.map(({ name }) => name);
}

async function expectedSchema(applied: readonly string[]): Promise<Schema> {
  const db = new Kysely<Tables>({ dialect: memorySqlite() });
  try {
    const migrations = Object.fromEntries(Object.entries(MIGRATIONS).filter(([name]) => applied.includes(name)));
    const { error } = await new Migrator({ db, provider: { getMigrations: async () => migrations } }).migrateToLatest();
    if (error !== undefined) throw error;
    return await schemaOf(db);
  } finally {
    await db.destroy();
  }
}

async function schemaOf(db: Kysely<Tables>): Promise<Schema> {
  const { rows } = await sql<{ type: string; name: string; sql: string | null }>`
    select type, name, sql from sqlite_schema`.execute(db);
  return new Map(rows.map(({ type, name, sql: text }) => [`${type} "${name}"`, text]));
}
