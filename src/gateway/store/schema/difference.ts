import { Kysely, Migrator, sql } from 'kysely';
import { memorySqlite } from '../engines/sqlite.ts';
import { MIGRATIONS } from './migrations.ts';
import type { Tables } from './tables.ts';

/** Tables, indexes, views and triggers: by kind and name, in SQL. */
type Schema = ReadonlyMap<string, string | null>;

const MIGRATIONS_MADE = 'table "kysely_migration"';

/**
 * What a SQLite store has in its schema that its migrations do not make, or lacks of it, in words; `undefined` for none. A
 * trigger would change what a gateway keeps, and no checksum of a row tells of it. Nothing is said of a store that a newer
 * version has written.
 */
export async function schemaDifference(db: Kysely<Tables>): Promise<string | undefined> {
  const found = await schemaOf(db);
  if (!found.has(MIGRATIONS_MADE)) return `it has no ${MIGRATIONS_MADE}`;
  const made = (await sql<{ name: string }>`select name from kysely_migration`.execute(db)).rows.map(
    ({ name }) => name,
  );
  if (made.some((name) => !Object.hasOwn(MIGRATIONS, name))) return undefined;
  const own = await ownSchema(made);
  for (const [name, text] of found) {
    if (!own.has(name)) return `it has ${name.startsWith('index') ? 'an' : 'a'} ${name}`;
    if (own.get(name) !== text) return `it has another ${name}`;
  }
  const missing = [...own.keys()].find((name) => !found.has(name));
  return missing === undefined ? undefined : `it has no ${missing}`;
}

/** Of a fresh store that has only had these migrations. */
async function ownSchema(made: readonly string[]): Promise<Schema> {
  const db = new Kysely<Tables>({ dialect: memorySqlite() });
  try {
    const migrations = Object.fromEntries(Object.entries(MIGRATIONS).filter(([name]) => made.includes(name)));
    const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
    const { error } = await migrator.migrateToLatest();
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
