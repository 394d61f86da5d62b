import { MissingPeerError } from '../../../lib/errors.ts';
import { LIMITS } from '../../../protocol/fields.ts';
import type { DownBody, DownOf, UpMessage, UpOf } from '../../../protocol/messages.ts';
import { waitUntilRight } from '../../engine/test-time.ts';
import { type CheckRun, Mismatch, PreconditionFailed } from '../check.ts';
import { BoxPages } from './box-pages.ts';
import { ACCOUNT } from './gateway/scripted-gateway.ts';
import { ordersOf } from './orders.ts';
import { type BoxSubject, RETURN_MS } from './subject.ts';

/** A message to a box, without its header. */
export type Body<T extends DownBody['type']> = Extract<DownBody, { type: T }>;

/** Names what the box does against the judged clause; undefined while it does nothing. */
export type ProblemNow = () => string | undefined | Promise<string | undefined>;

/** Time within which a box answers. A slow panel shows a QR within it too. */
const ANSWER_MS = 10_000;
/** Time to withdraw a push between two checks. */
const CLEANUP_MS = 5_000;

/** The messages of one check: those that the gateway sends, and those of the box. */
export class GatewayTranscript extends BoxPages<BoxSubject> {
  readonly #orders: ReturnType<typeof ordersOf>;
  /** Pushes that may still be on the screen. */
  readonly #pushed = new Set<string>();
  #from = 0;

  constructor(run: CheckRun<BoxSubject>) {
    super(run);
    this.#orders = ordersOf(run.subject.gateway);
  }

  get gateway() {
    return this.subject.gateway;
  }

  /** Waits for a session. Throws PreconditionFailed when no hello was legal, MissingPeerError when none came. */
  async setUp(): Promise<void> {
    const { gateway } = this;
    gateway.onTraffic = (title, detail) => this.run.evidence.add('call', title, { detail });
    this.#throwIfTwoBoxes();
    const isThere = async () => (this.#isWelcomed() ? undefined : 'no session');
    const withinMs = gateway.sessions.length === 0 && gateway.violations.length > 0 ? 0 : RETURN_MS;
    if ((await waitUntilRight(this.time, withinMs, isThere, this.run.signal)) !== undefined) {
      const last = gateway.violations.at(-1);
      const against = last === undefined ? '' : `; against ${last.clause}: ${last.what}`;
      if (gateway.sessions.length === 0) throw new PreconditionFailed(`there is no session${against}`);
      throw new MissingPeerError(`the box has not come back within ${RETURN_MS / 1000} s${against}`, 'look at the box');
    }
    this.ignoreEarlier();
  }

  #isWelcomed(): boolean {
    const { session } = this.gateway;
    return session?.isWelcomed === true && session.connection.isOpen;
  }

  /** Leaves an idle box in a session for the next check; a new one after a failed check, which may have broken it. */
  async tearDown(isFailed: boolean): Promise<void> {
    await this.endFaults();
    const { gateway } = this;
    const isChanged = gateway.helloAnswer !== 'welcome' || gateway.account !== ACCOUNT || 'mode' in gateway.mode;
    Object.assign(gateway, { helloAnswer: 'welcome', account: ACCOUNT, mode: {}, openPushIds: [], acksReports: true });
    Object.assign(gateway.http, { refusesWith: undefined, isSilent: false });
    if (isFailed || isChanged) await this.#newSession();
    const unacked = gateway.received.slice(this.#from).flatMap(({ message: { type, id }, session }) => {
      return (type === 'ended' || type === 'paid') && session === gateway.session ? [id] : [];
    });
    if (this.#isWelcomed() && unacked.length > 0) gateway.acknowledge([...new Set(unacked)].slice(0, LIMITS.ackIdsMax));
    if (this.#isWelcomed()) await this.#withdrawAll();
    gateway.onTraffic = undefined;
  }

  async #newSession(): Promise<void> {
    const { session } = this.gateway;
    this.gateway.cut();
    const isNew = async () => (this.gateway.session !== session ? undefined : 'no new session');
    await waitUntilRight(this.time, RETURN_MS, isNew, this.run.signal);
  }

  async #withdrawAll(): Promise<void> {
    for (const pushId of this.#pushed) {
      const from = this.gateway.received.length;
      this.gateway.send({ type: 'withdraw', pushId, why: 'timeout' });
      const isOver = async () =>
        this.gateway.received.slice(from).some(({ message }) => isEndOf(message, pushId)) || !this.#isWelcomed()
          ? undefined
          : 'not withdrawn';
      await waitUntilRight(this.time, CLEANUP_MS, isOver, this.run.signal);
    }
    this.#pushed.clear();
  }

  /** `received` and `receive` ignore all messages until now. */
  ignoreEarlier(): void {
    this.#from = this.gateway.received.length;
  }

  received<T extends UpMessage['type']>(...types: T[]): UpOf<T>[] {
    const all = this.gateway.received.slice(this.#from).map(({ message }) => message);
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
      if (body.type === 'show') this.#pushed.add(body.pushId);
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
    let found: UpOf<T> | undefined;
    await this.until(what, withinMs, () => {
      found = this.received(...types).find(isIt);
      return found !== undefined;
    });
    if (found === undefined) throw new Mismatch(what);
    return found;
  }

  receivedAtMs(message: UpMessage): number {
    return this.gateway.received.find((it) => it.message === message)?.atMs ?? 0;
  }

  /** Waits until `isSo` is true. Throws Mismatch when it is not in time. */
  async until(what: string, withinMs: number, isSo: () => boolean | Promise<boolean>): Promise<void> {
    const look = async () => {
      this.#throwIfTwoBoxes();
      return (await isSo()) ? undefined : what;
    };
    const problem = await waitUntilRight(this.time, withinMs, look, this.run.signal);
    if (problem === undefined) return;
    const words = this.gateway.received.slice(this.#from).map(({ message }) => inWords(message));
    const received = words.length === 0 ? 'nothing' : words.slice(-6).join(', ');
    throw new Mismatch(`expected ${what} within ${withinMs / 1000} s; received ${received}`);
  }

  /** The first answer to a push that tells whether it is on the screen. */
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
    return this.precondition('an order on the screen', () => this.expectShown(order));
  }

  /** Sends payments together. Throws PreconditionFailed when the box does not report them. */
  async paymentsReported(...payments: Body<'payment'>[]): Promise<void> {
    this.send(...payments);
    for (const { transactionId } of payments) await this.precondition('a report', () => this.paid(transactionId));
  }

  /**
   * Makes the box answer something, so that it has handled everything sent before. Throws Mismatch at once when the box
   * does what `problemNow` names, PreconditionFailed when it does not answer: MSG-9 judges that.
   */
  async sync(problemNow?: ProblemNow): Promise<void> {
    if (await this.answers(problemNow)) return;
    throw new PreconditionFailed('needs an answer to the withdrawal of an unknown push');
  }

  /** Whether the box answers. Meanwhile `problemNow` is asked first; throws Mismatch when it names a problem. */
  async answers(problemNow: ProblemNow = () => undefined): Promise<boolean> {
    const pushId = this.gateway.random.uuid();
    const look = async () => {
      this.#throwIfTwoBoxes();
      // Before the problem is looked for: the box has handled everything by then.
      const hasAnswered = this.received('rejected').some((message) => message.pushId === pushId);
      const problem = await problemNow();
      if (problem !== undefined) throw new Mismatch(problem);
      return hasAnswered ? undefined : 'no answer';
    };
    this.gateway.send({ type: 'withdraw', pushId, why: 'timeout' });
    return (await waitUntilRight(this.time, ANSWER_MS, look, this.run.signal)) === undefined;
  }

  #throwIfTwoBoxes(): void {
    const { duplicateBox } = this.gateway;
    if (duplicateBox !== undefined) throw new MissingPeerError(duplicateBox, 'judge one box at a time');
  }
}

function isEndOf(message: UpMessage, pushId: string): boolean {
  return (message.type === 'ended' || message.type === 'rejected') && message.pushId === pushId;
}

function inWords(message: UpMessage): string {
  if (message.type === 'rejected') return `rejected ${message.code}`;
  return message.type === 'ended' ? `ended ${message.how}` : message.type;
}
