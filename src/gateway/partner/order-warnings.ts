import type { NewOrder, OrderRow } from '../store/schema/tables.ts';
import type { Store } from '../store/store.ts';
import type { CallNotes } from './call-notes.ts';

const WAITS_FOR_MONEY: readonly OrderRow['status'][] = ['created', 'pushed', 'shown', 'failed', 'expired', 'replaced'];
const IS_OVER: readonly OrderRow['status'][] = ['paid', 'underpaid', 'cancelled'];

/**
 * Warns about a generate call that repeats one whose answer was lost. check-order then lists two orders, and only one
 * is paid.
 */
export async function warnOfSameOrder(
  { search }: Store,
  { partner, bank_account, order_id }: NewOrder,
  notes: CallNotes,
): Promise<void> {
  if (order_id === '') return;
  const { orders } = await search.byOrderId({ partner, bank_account }, order_id);
  if (!orders.some(({ status }) => WAITS_FOR_MONEY.includes(status))) return;
  notes.warn(
    'orderId: another order of this account that can still be paid has it; check-order lists both, newest first',
  );
}

/** Warns about a push that asks for money which nobody owes any more (PROTOCOL.md, clause SND-9). */
export function warnOfOldOrder(known: OrderRow | undefined, notes: CallNotes): void {
  if (known === undefined || !IS_OVER.includes(known.status)) return;
  notes.warn(`qrCode: its order is ${known.status}, and the box asks for the money once more`);
}
