import { type GatewayOrder, type GatewayPayment, getJson, observe } from './inspection.ts';
import type { World } from './world.ts';

const CREDITS_MAX = 40;

/** What must become of one movement of money, which its amount names. */
export interface Awaited {
  amount: number;
  text: string;
  /** A late one is neither shown nor spoken. */
  isFresh: boolean;
  /** '' without an order. */
  orderId: string;
  isOrderPaid: boolean;
}

/** The money of one run: what has become of it at gateway, partner and box. */
export class SourcesLedger {
  readonly #world: World;
  readonly #awaited: Awaited[] = [];
  readonly #calledBefore: number;
  #agentWasKilled = false;

  constructor(world: World) {
    this.#world = world;
    this.#calledBefore = world.partner.calls.size;
  }

  add(awaited: Awaited): void {
    this.#awaited.push(awaited);
  }

  agentKilled(): void {
    this.#agentWasKilled = true;
  }

  /** What is still to happen. Throws for what must never be, and no waiting can mend. */
  async owed(): Promise<string | undefined> {
    const seen = await observe(this.#world);
    if (seen === undefined) return 'no answer';
    if (!seen.box.online || !seen.boxOnlineAtGateway) return 'the box is not online';
    const url = `${this.#world.gatewayUrl}/_mock/credits?limit=${CREDITS_MAX}`;
    const credits = await getJson<{ amount: number; transactionId: string }[]>(url).catch(() => undefined);
    if (credits === undefined) return 'no answer';
    for (const awaited of this.#awaited) {
      const count = credits.filter(({ amount }) => amount === awaited.amount).length;
      const payments = seen.payments.filter(({ amount }) => amount === awaited.amount);
      if (count > 1 || payments.length > 1) {
        throw new Error(`${awaited.amount} came once, and is ${count} credits and ${payments.length} payments`);
      }
      this.#expectNeverTwice(awaited, payments[0]);
      const owed = this.#owedOf(awaited, payments[0], seen.orders);
      if (owed !== undefined) return `${awaited.amount}: ${owed}`;
    }
    const called = this.#world.partner.calls.size - this.#calledBefore;
    if (called > this.#awaited.length) throw new Error(`the partner was told of ${called} transactions`);
    return undefined;
  }

  /** Of a settled run. */
  async counts(): Promise<{ callbacks: number; spoken: number; silent: number }> {
    const { evidence, partner } = this.#world;
    const spoken = this.#awaited.filter(({ amount }) => evidence.spoken(amount) > 0).length;
    const fresh = this.#awaited.filter(({ isFresh }) => isFresh).length;
    return { callbacks: partner.calls.size - this.#calledBefore, spoken, silent: fresh - spoken };
  }

  #owedOf(
    { amount, isFresh, orderId, isOrderPaid }: Awaited,
    payment: GatewayPayment | undefined,
    orders: readonly GatewayOrder[],
  ): string | undefined {
    if (payment === undefined) return 'there is no payment';
    const { transactionId, boxes, callback } = payment;
    const { evidence, partner } = this.#world;
    if (boxes.length !== 1 || boxes[0]?.reportedAt === null) return 'the box has not reported it';
    if (boxes[0]?.recorded !== true) return 'it is not in the journal of the box';
    if (callback?.status !== 'delivered') return `its callback is ${callback?.status}`;
    if (!partner.calls.has(transactionId)) return 'the partner has not heard of it';
    // A QR may take the screen before the payments that wait for it: then they are only said.
    const isTold =
      evidence.voiced(transactionId) > 0 || (this.#agentWasKilled && evidence.paidScreens(transactionId) > 0);
    if (isFresh && !isTold) return `it was not said aloud; the speech program got it ${evidence.spoken(amount)} times`;
    const order = orders.find((it) => it.orderId === orderId);
    if (orderId !== '' && isOrderPaid && order?.status !== 'paid') return `its order is ${order?.status}`;
    return undefined;
  }

  #expectNeverTwice({ amount, text, isFresh, orderId }: Awaited, payment: GatewayPayment | undefined): void {
    const { evidence, partner } = this.#world;
    const id = payment?.transactionId ?? '';
    const times = Math.max(evidence.spoken(amount), evidence.voiced(id));
    if (times > (isFresh ? 1 : 0))
      throw new Error(`${amount} (${isFresh ? 'fresh' : 'late'}) was spoken ${times} times`);
    if (!isFresh && evidence.paidScreens(id) > 0) throw new Error(`${amount} is late, and was on the screen`);
    if (payment === undefined) return;
    const bodies = partner.calls.get(id)?.bodies.size ?? 0;
    if (bodies > 1) throw new Error(`the callbacks of ${amount} had ${bodies} different bodies`);
    if (payment.orderId !== orderId || payment.content !== text) {
      throw new Error(`${amount} is for order '${payment.orderId}', expected '${orderId}': ${payment.content}`);
    }
  }
}
