import type { Kysely } from 'kysely';
import type { Tables } from '../schema/tables.ts';

/** Stores a setting in place of an older value. */
export async function keepSetting(db: Kysely<Tables>, name: string, value: string): Promise<void> {
  const added = db.insertInto('settings').values({ name, value });
  await added.onConflict((it) => it.column('name').doUpdateSet({ value })).execute();
}
