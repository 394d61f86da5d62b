import { cancelQrRequest } from '../../protocol/http-api.ts';
import { decodeBody } from '../common/decode.ts';
import type { Partner } from '../common/directory.ts';
import { accept, type Result, refuse } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { OrderRow } from '../store/schema/tables.ts';

/** An order that the caller asked to cancel. */
export interface CancelledOrder {
  /** The order before the call. */
  order: OrderRow;
  /** False for an order that had already ended. It is not changed. */
  hasChanged: boolean;
}

/** The part of the hub that withdraws a push from its box. */
interface Withdrawing {
  withdrawPush(terminalCode: string, pushId: string, why: 'cancelled'): void;
}

/** Cancels an unpaid order and withdraws it from its box. */
export async function cancelOrder(
  idOrOrderId: string,
  { clock, changes, log }: World,
  { store }: Stored,
  hub: Withdrawing,
): Promise<Result<CancelledOrder>> {
  const order = await store.orders.find(idOrOrderId);
  if (order === undefined) return refuse('E96', 'no such order');
  const cancelled = await store.orders.cancel(order.id, clock.wallMs());
  if (cancelled === undefined) return refuse('E46', 'the order is paid');
  const { hasChanged, withdrawn } = cancelled;
  if (!hasChanged) return accept({ order, hasChanged });
  for (const { id, terminal_code } of withdrawn) hub.withdrawPush(terminal_code, id, 'cancelled');
  log.info('order-cancelled', { order: order.id, orderId: order.order_id });
  changes.publish('orders');
  return accept({ order, hasChanged });
}

/** Cancels an unpaid order of a partner (PROTOCOL.md, clause CAN). */
export async function cancelQr(
  partner: Partner,
  json: unknown,
  world: World,
  stored: Stored,
  hub: Withdrawing,
): Promise<Result<undefined>> {
  const decoded = decodeBody(cancelQrRequest, json);
  if (!decoded.ok) return decoded;
  const { transactionReceiveId: id } = decoded.value;
  const order = await stored.store.orders.find(id);
  if (order?.id !== id || order.partner !== partner.username) {
    return refuse('E96', 'transactionReceiveId: expected the transactionId of an order of this partner');
  }
  if (order.status === 'paid') return refuse('E46', 'transactionReceiveId: expected an order that is not paid');
  const cancelled = await cancelOrder(id, world, stored, hub);
  return cancelled.ok ? accept(undefined) : cancelled;
}
