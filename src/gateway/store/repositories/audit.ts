import type { Kysely } from 'kysely';
import type { NewAudit, Tables } from '../schema/tables.ts';
import { nextSeq } from './seq.ts';

/** At most this many changes are listed. Beyond that, the oldest is deleted. */
export const AUDIT_ROWS_MAX = 100_000;

/** Adds a change to the audit list. If it is one of the registry, this must be called in the transaction of that change. */
export async function noteChange(db: Kysely<Tables>, change: NewAudit): Promise<void> {
  const { seq } = await db
    .insertInto('audit')
    .values({ ...change, seq: nextSeq(db, 'audit') })
    .returning('seq')
    .executeTakeFirstOrThrow();
  await db
    .deleteFrom('audit')
    .where('seq', '<=', seq - AUDIT_ROWS_MAX)
    .execute();
}
