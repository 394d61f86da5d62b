/** Lists the values of `state` in the box's `/status`. */
export const BOX_STATES = [
  'starting',
  'registering',
  'unlinked',
  'idle',
  'showing',
  'paid',
  'expired',
  'fault',
] as const;
export type StatusState = (typeof BOX_STATES)[number];

/** `status` of an order at the gateway. */
export const ORDER_STATUSES = [
  'created',
  'pushed',
  'shown',
  'paid',
  /** Ended with less money than it asked for (PROTOCOL.md, clause MAT-5). */
  'underpaid',
  'expired',
  'replaced',
  'dismissed',
  'cancelled',
  'failed',
] as const;
export type OrderStatus = (typeof ORDER_STATUSES)[number];
