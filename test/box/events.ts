import type { BoxEvent } from '../../src/device/box/state.ts';
import type { DownOf, LinkedAccount } from '../../src/protocol/messages.ts';
import { LINK, paymentOf, pushOf, uuid, WALL_START_MS } from './samples.ts';

export const connecting: BoxEvent = { type: 'connecting' };
export const tick: BoxEvent = { type: 'tick' };
export const dismiss: BoxEvent = { type: 'key', key: 'dismiss' };
/** A screen without order and payment is on the display. */
export const idleDrawn: BoxEvent = { type: 'drawn', pushId: undefined, transactionId: undefined };
/** The screen that names this account is on the display. */
export const accountDrawn = (account: LinkedAccount): BoxEvent => ({ ...idleDrawn, account }) as BoxEvent;
/** The gateway takes each of these for open unless a test says otherwise. */
const OPEN_PUSH_IDS = Array.from({ length: 9 }, (_, n) => uuid(n + 1));
/** The welcome of a gateway whose clock says so many milliseconds after `WALL_START_MS`. */
export const registeredAt = (
  ms: number,
  account: LinkedAccount | null = LINK,
  openPushIds = OPEN_PUSH_IDS,
): BoxEvent => ({
  type: 'registered',
  account,
  gatewayMs: WALL_START_MS + ms,
  openPushIds,
  sandboxMark: false,
});
export const registered = registeredAt(0);
/** A push that took no time from the gateway to the box, unless told when its lifetime began. */
export const push = (n: number, change?: Partial<DownOf<'show'>>, bornAtMs = Number.POSITIVE_INFINITY): BoxEvent => ({
  type: 'push',
  push: pushOf(n, change),
  bornAtMs,
  qrCheck: { ok: true },
});
/** A payment of an order that no box has shown. */
export const free = (n: number, change?: Partial<DownOf<'payment'>>) => payment(n, { pushId: null, ...change });
export const drawn = (n: number): BoxEvent => ({ type: 'drawn', pushId: uuid(n), transactionId: undefined });
/** The paid screen of payment `n` is on the display. */
export const paidDrawn = (n: number): BoxEvent => ({
  type: 'drawn',
  pushId: undefined,
  transactionId: uuid(0xc000 + n),
});
export const payment = (n: number, change?: Partial<DownOf<'payment'>>): BoxEvent => ({
  type: 'payment',
  payment: paymentOf(n, change),
});
