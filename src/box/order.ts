import type { DownOf, Link } from '../protocol/messages.ts';
import type { Order } from './entry.ts';

/** The order that a push asks for; people are told the holder of the linked account, whatever push and QR say (clause AGT-1). */
export function orderOf(push: DownOf<'show'>, holder: Link): Order {
  const { pushId, orderId, amount, content, qrCode, expiresAtMs } = push;
  return { pushId, orderId, amount, content, qrCode, holder, expiresAtMs, lifetimeMs: push.expiresInMs };
}

/**
 * What is left of an order's lifetime at a calendar time, in milliseconds. `undefined` when nothing is left, or more than
 * the whole: then the order is over, or one of the clocks was set.
 */
export function leftMs(order: Order, wallMs: number): number | undefined {
  const left = order.expiresAtMs - wallMs;
  return left > 0 && left <= order.lifetimeMs ? left : undefined;
}
