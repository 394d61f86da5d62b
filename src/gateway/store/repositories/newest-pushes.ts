import type { Kysely, Selectable } from 'kysely';
import type { Tables } from '../schema/tables.ts';

/** More of one order are not listed. */
const PUSHES_LISTED_MAX = 20;

/** The newest pushes of each order, at most 20 of one, oldest first. */
export async function newestPushes(db: Kysely<Tables>, orderIds: string[]): Promise<Selectable<Tables['pushes']>[]> {
  if (orderIds.length === 0) return [];
  const listed = db
    .selectFrom('orders')
    .where('id', 'in', orderIds)
    .select((it) => {
      const newest = it
        .selectFrom('pushes')
        .select('seq')
        .whereRef('order_ref', '=', 'orders.id')
        .orderBy('seq', 'desc');
      const oldest = newest.limit(1).offset(PUSHES_LISTED_MAX - 1);
      return ['id', it.fn.coalesce(oldest, it.lit(0)).as('from_seq')];
    });
  return db
    .selectFrom(listed.as('listed'))
    .innerJoin('pushes', (on) =>
      on.onRef('pushes.order_ref', '=', 'listed.id').onRef('pushes.seq', '>=', 'listed.from_seq'),
    )
    .selectAll('pushes')
    .orderBy('pushes.seq')
    .execute();
}
