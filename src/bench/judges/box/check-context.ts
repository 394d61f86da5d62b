import { MissingPeerError } from '../../../lib/errors.ts';
import type { DownBody, DownOf, UpMessage, UpOf } from '../../../protocol/messages.ts';
import type { Capture } from '../../engine/target.ts';
import { type CheckRun, Mismatch, PreconditionFailed, precondition } from '../check.ts';
import { ANNOUNCEMENT_MAX_MS, BoxPages } from './box-pages.ts';
import type { Session } from './gateway/scripted-gateway.ts';
import { ordersOf } from './orders.ts';
import { type BoxSubject, RETURN_MS } from './subject.ts';

/** A message to a box, without its header. */
export type Body<T extends DownBody['type']> = Extract<DownBody, { type: T }>;

/** Names what the box does against the judged clause; undefined while it does nothing. */
export type ProblemNow = () => string | undefined | Promise<string | undefined>;

/** A box answers within this time, and even a slow panel shows a QR in it. */
const ANSWER_MS = 10_000;
/** When a QR has stayed for this time, no payment waits for the screen any more. */
const UNDISTURBED_MS = 4_000;

/** Sends messages to the judged box, and judges what the box reports. `box` is its screen and pages. */
export class CheckContext {
  readonly subject: BoxSubject;
  readonly run: CheckRun<BoxSubject>;
  readonly box: BoxPages;
  readonly #orders: ReturnType<typeof ordersOf>;
  /** Pushes that may still be on the screen. */
  readonly pushed = new Set<string>();

  constructor(run: CheckRun<BoxSubject>) {
    this.run = run;
    this.subject = run.subject;
    this.box = new BoxPages(run);
    this.#orders = ordersOf(run.subject.gateway);
  }

  get gateway() {
    return this.subject.gateway;
  }

  get time() {
    return this.subject.time;
  }

  get nowMs(): number {
    return this.time.clock.monotonicMs();
  }

  /** Makes `received` and `receive` ignore all messages until now. */
  ignoreEarlier(): void {
    this.gateway.log.ignoreEarlier();
  }

  received<T extends UpMessage['type']>(...types: T[]): UpOf<T>[] {
    const all = this.gateway.log.recent.map(({ message }) => message);
    return all.filter((message): message is UpOf<T> => (types as string[]).includes(message.type));
  }

  order(change: Partial<Body<'show'>> = {}): Body<'show'> {
    return this.#orders.order(change);
  }

  payment(change: Partial<Body<'payment'>> = {}): Body<'payment'> {
    return this.#orders.payment(change);
  }

  paymentFor({ pushId, orderId, amount, content }: Body<'show'>): Body<'payment'> {
    return this.#orders.payment({ pushId, orderId, amount, content });
  }

  send(...bodies: DownBody[]): void {
    for (const body of bodies) {
      if (body.type === 'show') this.pushed.add(body.pushId);
      this.gateway.send(body);
    }
  }

  /** Sends unsigned bytes. */
  sendRaw(bytes: string | Uint8Array): void {
    this.run.evidence.add('call', 'sent bytes that are no message', { detail: String(bytes).slice(0, 2_000) });
    this.gateway.session?.connection.deliver(bytes);
  }

  withdraw(pushId: string, why: DownOf<'withdraw'>['why'] = 'timeout'): void {
    this.send({ type: 'withdraw', pushId, why });
  }

  /** Waits for the first message of these types for which `isIt` is true. Throws Mismatch when none comes in time. */
  async receive<T extends UpMessage['type']>(
    what: string,
    types: readonly T[],
    isIt: (message: UpOf<T>) => boolean = () => true,
    withinMs = ANSWER_MS,
  ): Promise<UpOf<T>> {
    const find = () => this.received(...types).find(isIt);
    await this.until(what, withinMs, () => find() !== undefined);
    return find() ?? raise(what);
  }

  receivedAtMs(message: UpMessage): number {
    return this.gateway.log.arrived.find((it) => it.message === message)?.atMs ?? 0;
  }

  /** Waits until `isSo` is true. Throws Mismatch when it is not in time. */
  async until(what: string, withinMs: number, isSo: () => boolean | Promise<boolean>): Promise<void> {
    const look = () => {
      this.throwIfTwoBoxes();
      return isSo();
    };
    if (await this.run.isSoon(withinMs, look)) return;
    const words = this.gateway.log.recent.map(({ message }) => inWords(message));
    const received = words.length === 0 ? 'nothing' : words.slice(-6).join(', ');
    throw new Mismatch(`expected ${what} within ${withinMs / 1000} s; received ${received}`);
  }

  /** Returns the first answer to a push that says whether its QR is on the screen. */
  pushResult(pushId: string, withinMs = ANSWER_MS): Promise<UpOf<'shown' | 'rejected'>> {
    const what = 'shown or rejected for the push';
    return this.receive(what, ['shown', 'rejected'], (message) => message.pushId === pushId, withinMs);
  }

  ended(pushId: string, withinMs?: number): Promise<UpOf<'ended'>> {
    return this.receive('ended for the push', ['ended'], (message) => message.pushId === pushId, withinMs);
  }

  paid(transactionId: string, withinMs?: number): Promise<UpOf<'paid'>> {
    const isIt = (message: UpOf<'paid'>) => message.transactionId === transactionId;
    return this.receive('paid for the transaction', ['paid'], isIt, withinMs);
  }

  /** Throws Mismatch when the push does not end in this way. */
  async expectEnded(pushId: string, how: UpOf<'ended'>['how'], withinMs?: number): Promise<UpOf<'ended'>> {
    const end = await this.ended(pushId, withinMs);
    if (end.how !== how) throw new Mismatch(`ended as ${end.how}, expected ${how}`);
    return end;
  }

  hasEnded({ pushId }: { pushId: string }): boolean {
    return this.received('ended').some((message) => message.pushId === pushId);
  }

  /** Pushes an order. Throws Mismatch unless the box shows it. */
  async expectShown(order: Body<'show'>, withinMs?: number): Promise<Body<'show'>> {
    this.send(order);
    const result = await this.pushResult(order.pushId, withinMs);
    if (result.type === 'rejected') throw new Mismatch(`rejected with ${result.code}: ${result.reason}`);
    return order;
  }

  /** Pushes an order. Throws Mismatch unless the box rejects it at once with one of these codes. */
  async expectRejected(order: Body<'show'>, ...codes: string[]): Promise<void> {
    this.send(order);
    await this.expectRejection(order, ...codes);
  }

  async expectRejection({ pushId }: Body<'show'>, ...codes: string[]): Promise<void> {
    const isIt = (message: { pushId: string }) => message.pushId === pushId;
    const answer = await this.receive('rejected for the push', ['accepted', 'shown', 'rejected'], isIt);
    const expected = `expected rejected with ${codes.join(' or ')}`;
    if (answer.type !== 'rejected') throw new Mismatch(`it was ${answer.type}, ${expected}`);
    if (!codes.includes(answer.code)) {
      throw new Mismatch(`rejected with ${answer.code} (${answer.reason}), ${expected}`);
    }
  }

  /** Sends a payment. Throws Mismatch unless the box reports it with these numbers. */
  async expectPaid(payment: Body<'payment'>, isRecorded = true): Promise<UpOf<'paid'>> {
    this.send(payment);
    const { orderId, amount, transactionId } = payment;
    const paid = await this.paid(transactionId);
    if (paid.amount !== amount) throw new Mismatch(`paid says ${paid.amount} đồng, expected ${amount}`);
    if (paid.orderId !== orderId) throw new Mismatch(`paid names the order ${paid.orderId}, expected ${orderId}`);
    if (paid.recorded === isRecorded) return paid;
    throw new Mismatch(`paid says that the disk of the box ${paid.recorded ? 'has kept it' : 'could not keep it'}`);
  }

  /** Pushes an order. Throws PreconditionFailed when the box does not report it as shown: another check judges that. */
  async pushShown(order = this.order()): Promise<Body<'show'>> {
    return precondition('an order on the screen', () => this.expectShown(order));
  }

  /** Sends payments together. Throws PreconditionFailed when the box does not report them. */
  async paymentsReported(...payments: Body<'payment'>[]): Promise<void> {
    this.send(...payments);
    for (const { transactionId } of payments) await precondition('a report', () => this.paid(transactionId));
  }

  /**
   * Makes the box answer something, so that it has handled everything sent before. Throws Mismatch at once when the box
   * does what `problemNow` names, PreconditionFailed when it does not answer: MSG-9 judges that.
   */
  async sync(problemNow?: ProblemNow): Promise<void> {
    if (await this.answers(problemNow)) return;
    throw new PreconditionFailed('needs an answer to the withdrawal of an unknown push');
  }

  /**
   * Returns true if the box answers. Asks `problemNow` before each look, and throws Mismatch when it names a problem.
   */
  async answers(problemNow: ProblemNow = () => undefined): Promise<boolean> {
    const pushId = this.gateway.random.uuid();
    const look = async () => {
      this.throwIfTwoBoxes();
      // This comes before the look for a problem: by then the box has handled everything.
      const hasAnswered = this.received('rejected').some((message) => message.pushId === pushId);
      const problem = await problemNow();
      if (problem !== undefined) throw new Mismatch(problem);
      return hasAnswered;
    };
    this.gateway.send({ type: 'withdraw', pushId, why: 'timeout' });
    return this.run.isSoon(ANSWER_MS, look);
  }

  /** Throws MissingPeerError when two boxes use the judged identity. */
  throwIfTwoBoxes(): void {
    const { duplicateBox } = this.gateway;
    if (duplicateBox !== undefined) throw new MissingPeerError(duplicateBox, 'judge one box at a time');
  }

  /** Waits for the next session. Throws Mismatch when no hello comes in time. */
  async nextSession(after: Session | undefined, withinMs = RETURN_MS): Promise<Session> {
    await this.until('a new hello', withinMs, () => ![after, undefined].includes(this.gateway.session));
    return this.gateway.session ?? raise('no hello came');
  }

  /** Breaks the connection, and waits until the box is back. */
  async reconnect(): Promise<Session> {
    const { session } = this.gateway;
    this.gateway.cut();
    return precondition('a box that comes back', () => this.nextSession(session));
  }

  async restart(): Promise<Session> {
    const { session } = this.gateway;
    this.run.step('restarts the box');
    await this.subject.controls.restart?.();
    return precondition('a box that comes back', () => this.nextSession(session, 2 * RETURN_MS));
  }

  /** Pushes an order and sees its QR on the screen. Throws PreconditionFailed otherwise: another check judges that. */
  async qrShown(order = this.order()): Promise<Body<'show'>> {
    await this.pushShown(order);
    await precondition('a QR that can be seen', () => this.box.expectQr(order, ANNOUNCEMENT_MAX_MS));
    return order;
  }

  /** Pushes as `qrShown`, and waits until no earlier payment can cover the QR any more (PROTOCOL.md, clause AGT-12). */
  async qrUndisturbed(): Promise<Body<'show'>> {
    const order = await this.qrShown();
    let sinceMs = this.nowMs;
    await precondition('a QR that stays on the screen', async () => {
      const seen = await this.box.waitForQr(2 * ANNOUNCEMENT_MAX_MS, (qr) => {
        if (qr !== order.qrCode) sinceMs = this.nowMs;
        return this.nowMs - sinceMs >= UNDISTURBED_MS;
      });
      if (seen !== order.qrCode) throw new Mismatch('other screens cover it');
    });
    return order;
  }

  /**
   * Pushes an order, and looks at the screen at the moment when the box reports it as shown. Throws Mismatch when its QR
   * is not there by then.
   */
  async expectQrAtShown(order = this.order()): Promise<void> {
    const { gateway } = this;
    let picture: Promise<Capture | undefined> | undefined;
    gateway.onMessage = (message) => {
      if (message.type !== 'shown' || message.pushId !== order.pushId) return;
      picture ??= this.box.look();
      picture.catch(() => undefined);
    };
    try {
      await this.pushShown(order);
    } finally {
      gateway.onMessage = undefined;
    }
    const qr = (await picture)?.qr;
    if (qr === order.qrCode) return;
    throw new Mismatch(`when shown came in, the screen had ${qr === undefined ? 'no QR' : `the QR ${qr}`}`);
  }
}

function raise(what: string): never {
  throw new Mismatch(what);
}

function inWords(message: UpMessage): string {
  if (message.type === 'rejected') return `rejected ${message.code}`;
  return message.type === 'ended' ? `ended ${message.how}` : message.type;
}
