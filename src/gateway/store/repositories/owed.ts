import { type Kysely, sql } from 'kysely';
import type { Logger } from '../../../lib/log.ts';
import { onlyIntact } from '../integrity/checksums.ts';
import type { CallbackRow, Tables } from '../schema/tables.ts';

/** What is owed to partners. */
export interface Backlog {
  partners: { partner: string; waiting: number; failed: number }[];
  oldestWaitingAtMs: number | undefined;
}

/** Callbacks by what they have in common; times are of their payments. */
export interface CallbackChoice {
  status: 'failed' | 'pending';
  partner?: string | undefined;
  fromMs?: number | undefined;
  /** Not those of this moment itself. */
  toMs?: number | undefined;
}

/** The partners of callbacks that are tried again, one for each, and the `seq` after which there may be more. */
export interface TriedAgain {
  partners: string[];
  after: number | undefined;
}

export async function backlogIn(db: Kysely<Tables>): Promise<Backlog> {
  const rows = await db
    .selectFrom('callbacks')
    .select(['partner', 'status', (it) => it.fn.countAll<number>().as('count')])
    .where('status', 'in', ['pending', 'failed'])
    .groupBy(['partner', 'status'])
    .orderBy('partner')
    .execute();
  const partners = new Map<string, { partner: string; waiting: number; failed: number }>();
  for (const { partner, status, count } of rows) {
    const all = partners.get(partner) ?? { partner, waiting: 0, failed: 0 };
    all[status === 'pending' ? 'waiting' : 'failed'] = Number(count);
    partners.set(partner, all);
  }
  const waiting = db.selectFrom('callbacks').select('created_at_ms').where('status', '=', 'pending');
  const oldest = await waiting.orderBy('seq').limit(1).executeTakeFirst();
  return { partners: [...partners.values()], oldestWaitingAtMs: oldest?.created_at_ms };
}

/** What a partner was not told even once, oldest first. */
export async function neverTriedIn(
  db: Kysely<Tables>,
  partner: string,
  limit: number,
): Promise<Pick<CallbackRow, 'id'>[]> {
  const rows = db.selectFrom('callbacks').select('id').where('partner', '=', partner);
  // As the index has it: a parameter would not do.
  const first = rows.where('status', '=', sql.lit('pending')).where('tries', '=', sql.lit(0));
  return first.orderBy('seq').limit(limit).execute();
}

/** Has the oldest of some callbacks tried again from `atMs` on, as after their first attempt. */
export async function tryAgainIn(
  db: Kysely<Tables>,
  log: Logger,
  { choice, after, limit, atMs }: { choice: CallbackChoice; after: number; limit: number; atMs: number },
): Promise<TriedAgain> {
  const { status, partner, fromMs, toMs } = choice;
  return db.transaction().execute(async (trx) => {
    let rows = trx.selectFrom('callbacks').selectAll().where('status', '=', status);
    if (partner !== undefined) rows = rows.where('partner', '=', partner);
    if (fromMs !== undefined) rows = rows.where('created_at_ms', '>=', fromMs);
    if (toMs !== undefined) rows = rows.where('created_at_ms', '<', toMs);
    const found = await rows.where('seq', '>', after).orderBy('seq').limit(limit).execute();
    const told = onlyIntact('callbacks', found, log);
    const ids = told.map((it) => it.id);
    const again = { status: 'pending', warning: null, tries: 1, next_at_ms: atMs } as const;
    if (ids.length > 0) await trx.updateTable('callbacks').set(again).where('id', 'in', ids).execute();
    return { partners: told.map((it) => it.partner), after: found.at(-1)?.seq };
  });
}
