import type { Kysely } from 'kysely';
import type { Code } from '../../../protocol/codes.ts';
import type { DownOf } from '../../../protocol/messages.ts';
import type { Tables } from '../schema/tables.ts';

/** Failures after which a box may still hold the push: it is told again to withdraw it. */
const UNSURE_CODES: Code[] = ['BOX_TIMEOUT', 'BOX_OFFLINE', 'REPLACED'];
/** More are not told at a time. */
const WITHDRAWALS_MAX = 100;

/** A push that its box is to take from the screen, and why. */
export interface Withdrawal {
  id: string;
  why: DownOf<'withdraw'>['why'];
}

/**
 * The newest pushes that failed or were cancelled and that the box may still show, as it has not said that they are over
 * (PROTOCOL.md, clause MSG-9).
 */
export async function withdrawalsFor(db: Kysely<Tables>, terminalCode: string): Promise<Withdrawal[]> {
  const pushes = await db
    .selectFrom('pushes')
    .innerJoin('orders', 'orders.id', 'pushes.order_ref')
    .select(['pushes.id', 'pushes.status', 'orders.status as order_status'])
    .where('pushes.terminal_code', '=', terminalCode)
    .where('pushes.ended_at_ms', 'is', null)
    .where((it) => it.or([it('pushes.status', '=', 'cancelled'), it('pushes.code', 'in', UNSURE_CODES)]))
    .orderBy('pushes.seq', 'desc')
    .limit(WITHDRAWALS_MAX)
    .execute();
  return pushes.map(({ id, status, order_status }) => {
    if (status !== 'cancelled') return { id, why: 'timeout' };
    return { id, why: order_status === 'paid' ? 'paid' : 'cancelled' };
  });
}
