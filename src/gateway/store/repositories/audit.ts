import { type Kysely, sql } from 'kysely';
import type { NewAudit, Tables } from '../schema/tables.ts';
import { nextSeq } from './seq.ts';

/** At most this many changes are listed. Beyond that, the oldest is deleted. */
export const AUDIT_ROWS_MAX = 100_000;
/** Shards of a cluster that write at the same moment choose the same number. All but one of them then choose again. */
const NUMBER_TRIES_MAX = 100;

/** Adds a change to the audit list. If it is one of the registry, this must be called in the transaction of that change. */
export async function noteChange(db: Kysely<Tables>, change: NewAudit): Promise<void> {
  for (let tries = 1; !(await isNoted(db, change)); tries += 1) {
    if (tries === NUMBER_TRIES_MAX) throw new Error(`no free number in the audit list after ${tries} tries`);
  }
  const newest = sql<number>`(select max(seq) from ${sql.table('audit')}) - ${AUDIT_ROWS_MAX}`;
  await db.deleteFrom('audit').where('seq', '<=', newest).execute();
}

async function isNoted(db: Kysely<Tables>, change: NewAudit): Promise<boolean> {
  const added = db.insertInto('audit').values({ ...change, seq: nextSeq('audit') });
  return (
    (
      await added
        .onConflict((it) => it.doNothing())
        .returning('seq')
        .execute()
    ).length > 0
  );
}
