import type { DownOf, UpOf } from '../../protocol/messages.ts';
import type { WireEntryOf } from '../../protocol/wire.ts';
import { variable } from './line.ts';
import type { Heard } from './wire-at.ts';

/** An order that a call of the session made. */
export interface Order {
  /** What the file calls it. */
  name: string;
  /** The gateway's own id of it; undefined for one that was made by its push. */
  id: string | undefined;
  orderId: string;
  amount: number;
  content: string;
  qrCode: string;
}

/** A push as the box was told. */
export interface Show {
  atMs: number;
  box: string;
  pushId: string;
  qrCode: string;
  orderId: string;
  /** Once it is known which call it is of. */
  order?: Order;
  /** When the box first said that it is on its screen. */
  shownMs?: number;
}

/** A payment as the file calls it. */
export interface Payment {
  name: string;
  atMs: number;
  amount: number;
  content: string;
}

/** What belongs to a call may be dated so much before it. */
const SLACK_MS = 50;

export type Message = Heard & WireEntryOf<'message'>;

/** What calls made and boxes were told, by the ids that messages have. */
export class Ledger {
  readonly orders: Order[] = [];
  readonly shows = new Map<string, Show>();
  readonly payments = new Map<string, Payment>();
  /** transactionId → when a box was first told. */
  readonly #noticedMs = new Map<string, number>();
  readonly #withdrawnMs: { atMs: number; pushId: string }[] = [];

  constructor(heard: readonly Heard[]) {
    for (const entry of heard) {
      if (entry.kind === 'message' && entry.to === 'box') this.#told(entry);
      else if (entry.kind === 'message' && entry.body.type === 'shown') {
        const show = this.shows.get((entry.body as unknown as UpOf<'shown'>).pushId);
        if (show !== undefined) show.shownMs ??= entry.atMs;
      }
    }
  }

  #told({ atMs, box, body }: Message): void {
    if (body.type === 'show') {
      const { pushId, qrCode, orderId } = body as unknown as DownOf<'show'>;
      if (!this.shows.has(pushId)) this.shows.set(pushId, { atMs, box, pushId, qrCode, orderId });
    } else if (body.type === 'payment') {
      const { transactionId } = body as unknown as DownOf<'payment'>;
      if (!this.#noticedMs.has(transactionId)) this.#noticedMs.set(transactionId, atMs);
    } else if (body.type === 'withdraw') {
      this.#withdrawnMs.push({ atMs, pushId: (body as unknown as DownOf<'withdraw'>).pushId });
    }
  }

  addOrder(order: Omit<Order, 'name'>): Order {
    const named = { name: `order${this.orders.length + 1}`, ...order };
    this.orders.push(named);
    return named;
  }

  addPayment(transactionId: string, payment: Omit<Payment, 'name'>): Payment {
    const named = { name: `payment${this.payments.size + 1}`, ...payment };
    this.payments.set(transactionId, named);
    return named;
  }

  /** The newest order of this session by the gateway's id or the partner's. */
  order(idOrOrderId: string): Order | undefined {
    return (
      this.orders.findLast(({ id }) => id === idOrOrderId) ??
      this.orders.findLast(({ orderId }) => orderId === idOrOrderId)
    );
  }

  /** How a step names an order: by the partner's id where no other order has it. */
  nameOf({ name, id, orderId }: Order): string {
    const isOnly = this.orders.filter((it) => it.orderId === orderId).length === 1;
    return variable(name, isOnly || id === undefined ? 'orderId' : 'transactionId');
  }

  /** The push that a call which lasted from one moment to the other made. */
  showOf(box: string, qrCode: string, fromMs: number, toMs: number): Show | undefined {
    return [...this.shows.values()].find(
      (it) =>
        it.box === box &&
        it.qrCode === qrCode &&
        it.order === undefined &&
        it.atMs >= fromMs - SLACK_MS &&
        it.atMs <= toMs,
    );
  }

  /** When a box was told of a payment; undefined when none was in this time. */
  noticedMs(transactionId: string, toMs: number): number | undefined {
    const atMs = this.#noticedMs.get(transactionId);
    return atMs !== undefined && atMs <= toMs ? atMs : undefined;
  }

  /** When a push was taken back in this time. */
  withdrawnMs(fromMs: number, toMs: number): number | undefined {
    return this.#withdrawnMs.find(({ atMs }) => atMs >= fromMs - SLACK_MS && atMs <= toMs)?.atMs;
  }
}
