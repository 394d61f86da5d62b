import { waitUntilRight } from '../../bench/steps/waiting.ts';
import { MissingPeerError } from '../../lib/errors.ts';
import { LIMITS } from '../../protocol/fields.ts';
import type { DownBody, DownOf, UpMessage, UpOf } from '../../protocol/messages.ts';
import { type CheckRun, Mismatch, PreconditionFailed } from '../check.ts';
import { ACCOUNT, type Session } from './gateway/scripted-gateway.ts';
import { ordersOf } from './orders.ts';
import { type BoxSubject, RETURN_MS } from './subject.ts';

/** A message to a box, before it is addressed. */
export type Body<T extends DownBody['type']> = Extract<DownBody, { type: T }>;

/** A box answers what it is told within this; a QR is on a slow panel within it too. */
const ANSWER_MS = 10_000;
/** For a push to be taken back between two checks. */
const CLEANUP_MS = 5_000;

/** One check as it goes: what is said to the box, what it answers, and what is made good again after it. */
export class Hearing {
  readonly subject: BoxSubject;
  protected readonly run: CheckRun<BoxSubject>;
  readonly #orders: ReturnType<typeof ordersOf>;
  /** Pushes that may still be on the screen. */
  readonly #pushed = new Set<string>();
  #mark = 0;

  constructor(run: CheckRun<BoxSubject>) {
    this.run = run;
    this.subject = run.subject;
    this.#orders = ordersOf(run.subject.gateway);
  }

  get gateway() {
    return this.subject.gateway;
  }

  get time() {
    return this.subject.time;
  }

  /** Milliseconds of the clock that the box lives by. */
  get nowMs(): number {
    return this.time.clock.monotonicMs();
  }

  /** The session in use. Throws Unmet when a hello was not taken, MissingPeerError when none came. */
  async begin(): Promise<void> {
    const { gateway } = this;
    gateway.onTraffic = (title, detail) => this.run.evidence.add('call', title, { detail });
    this.#throwIfRival();
    const isThere = async () => (this.#isWelcomed() ? undefined : 'no session');
    const withinMs = gateway.sessions.length === 0 && gateway.violations.length > 0 ? 0 : RETURN_MS;
    if ((await waitUntilRight(this.time, withinMs, isThere, this.run.signal)) !== undefined) {
      const objection = gateway.violations.at(-1);
      const against = objection === undefined ? '' : `; against ${objection.clause}: ${objection.what}`;
      if (gateway.sessions.length === 0) throw new PreconditionFailed(`there is no session${against}`);
      throw new MissingPeerError(`the box has not come back within ${RETURN_MS / 1000} s${against}`, 'look at the box');
    }
    this.mark();
  }

  #isWelcomed(): boolean {
    const { session } = this.gateway;
    return session?.isWelcomed === true && session.connection.isOpen;
  }

  /**
   * Makes good what the check has changed, so that the next one finds an idle box in a session: in another one where the
   * box did not do in this one what it should.
   */
  async end(isFailed: boolean): Promise<void> {
    const { gateway } = this;
    const wasOdd = isFailed || gateway.helloAnswer !== 'welcome' || gateway.account !== ACCOUNT;
    Object.assign(gateway, { answersHello: 'welcome', account: ACCOUNT, openPushIds: [], acknowledges: true });
    Object.assign(gateway.http, { refusesWith: undefined, isSilent: false });
    if (wasOdd) await this.#begunAnew();
    const owed = gateway.received.slice(this.#mark).flatMap(({ message: { type, id }, session }) => {
      return (type === 'ended' || type === 'paid') && session === gateway.session ? [id] : [];
    });
    if (this.#isWelcomed() && owed.length > 0) gateway.acknowledge([...new Set(owed)].slice(0, LIMITS.ackIdsMax));
    if (this.#isWelcomed()) await this.#takeBack();
    gateway.onTraffic = undefined;
  }

  async #begunAnew(): Promise<void> {
    const { session } = this.gateway;
    this.gateway.cut();
    const isNew = async () => (this.gateway.session !== session ? undefined : 'no new session');
    await waitUntilRight(this.time, RETURN_MS, isNew, this.run.signal);
  }

  async #takeBack(): Promise<void> {
    for (const pushId of this.#pushed) {
      const from = this.gateway.received.length;
      this.gateway.send({ type: 'withdraw', pushId, why: 'timeout' });
      const isOver = async () =>
        this.gateway.received.slice(from).some(({ message }) => isEndOf(message, pushId)) || !this.#isWelcomed()
          ? undefined
          : 'not taken back';
      await waitUntilRight(this.time, CLEANUP_MS, isOver, this.run.signal);
    }
    this.#pushed.clear();
  }

  /** Only what is heard from here on counts. */
  mark(): void {
    this.#mark = this.gateway.received.length;
  }

  /** Messages since the mark, of these types. */
  since<T extends UpMessage['type']>(...types: T[]): UpOf<T>[] {
    const all = this.gateway.received.slice(this.#mark).map(({ message }) => message);
    return all.filter((message): message is UpOf<T> => (types as string[]).includes(message.type));
  }

  order(change: Partial<Body<'show'>> = {}): Body<'show'> {
    return this.#orders.order(change);
  }

  payment(change: Partial<Body<'payment'>> = {}): Body<'payment'> {
    return this.#orders.payment(change);
  }

  paymentOf(order: Body<'show'>, change: Partial<Body<'payment'>> = {}): Body<'payment'> {
    const { pushId, orderId, amount, content } = order;
    return this.#orders.payment({ pushId, orderId, amount, content, ...change });
  }

  tell(body: DownBody): void {
    if (body.type === 'show') this.#pushed.add(body.pushId);
    this.gateway.send(body);
  }

  /** As it is, in place of a message. */
  deliver(bytes: string | Uint8Array): void {
    this.run.evidence.add('call', 'told something that is no message', { detail: String(bytes).slice(0, 2_000) });
    this.gateway.session?.connection.deliver(bytes);
  }

  withdraw(pushId: string, why: DownOf<'withdraw'>['why'] = 'timeout'): void {
    this.tell({ type: 'withdraw', pushId, why });
  }

  /** The first message since the mark that is `what` was expected. Throws Mismatch when it does not come in time. */
  async hear<T extends UpMessage['type']>(
    what: string,
    types: readonly T[],
    isIt: (message: UpOf<T>) => boolean = () => true,
    withinMs = ANSWER_MS,
  ): Promise<UpOf<T>> {
    let found: UpOf<T> | undefined;
    await this.until(what, withinMs, () => {
      found = this.since(...types).find(isIt);
      return found !== undefined;
    });
    if (found === undefined) throw new Mismatch(what);
    return found;
  }

  /** When a message was heard. */
  heardAtMs(message: UpMessage): number {
    return this.gateway.received.find((it) => it.message === message)?.atMs ?? 0;
  }

  async until(what: string, withinMs: number, isSo: () => boolean | Promise<boolean>): Promise<void> {
    const look = async () => {
      this.#throwIfRival();
      return (await isSo()) ? undefined : what;
    };
    const problem = await waitUntilRight(this.time, withinMs, look, this.run.signal);
    if (problem === undefined) return;
    throw new Mismatch(`expected ${what} within ${withinMs / 1000} s; heard ${this.#heardInWords()}`);
  }

  #heardInWords(): string {
    const words = this.gateway.received.slice(this.#mark).map(({ message }) => inWords(message));
    return words.length === 0 ? 'nothing' : words.slice(-6).join(', ');
  }

  /** What the push is answered first. */
  verdictOn(pushId: string, withinMs = ANSWER_MS): Promise<UpOf<'shown' | 'rejected'>> {
    const what = 'shown or rejected for the push';
    return this.hear(what, ['shown', 'rejected'], (message) => message.pushId === pushId, withinMs);
  }

  ended(pushId: string, withinMs?: number): Promise<UpOf<'ended'>> {
    return this.hear('ended for the push', ['ended'], (message) => message.pushId === pushId, withinMs);
  }

  paid(transactionId: string, withinMs?: number): Promise<UpOf<'paid'>> {
    const isIt = (message: UpOf<'paid'>) => message.transactionId === transactionId;
    return this.hear('paid for the transaction', ['paid'], isIt, withinMs);
  }

  /** An order on the screen, which another check judges. Throws Unmet when the box does not say that it is there. */
  async shown(order = this.order()): Promise<Body<'show'>> {
    this.tell(order);
    await this.given('an order on the screen', async () => {
      const verdict = await this.verdictOn(order.pushId);
      if (verdict.type === 'rejected') throw new Mismatch(`it was refused with ${verdict.code}: ${verdict.reason}`);
    });
    return order;
  }

  /** Has the box say something, so that what came before is known to be behind it. */
  async echo(): Promise<void> {
    const pushId = this.gateway.random.uuid();
    await this.given('an answer to a withdrawal', async () => {
      this.gateway.send({ type: 'withdraw', pushId, why: 'timeout' });
      await this.hear('rejected for a push that never came', ['rejected'], (message) => message.pushId === pushId);
    });
  }

  /** What only prepares the check: another one judges it. */
  async given<T>(what: string, prepare: () => Promise<T>): Promise<T> {
    try {
      return await prepare();
    } catch (error) {
      if (error instanceof Mismatch) throw new PreconditionFailed(`needs ${what}: ${error.message}`, error);
      throw error;
    }
  }

  /** Another session than this one, welcomed unless hellos are answered otherwise. */
  async nextSession(after: Session | undefined, withinMs = RETURN_MS): Promise<Session> {
    const isNext = () => this.gateway.session !== after && this.gateway.session !== undefined;
    await this.until('a new hello', withinMs, isNext);
    const { session } = this.gateway;
    if (session === undefined) throw new Mismatch('no hello came');
    return session;
  }

  /** Pulls the cable, and waits for the box to be back. */
  async reconnected(): Promise<Session> {
    const { session } = this.gateway;
    this.gateway.cut();
    return this.given('a box that comes back', () => this.nextSession(session));
  }

  async restarted(): Promise<Session> {
    const { session } = this.gateway;
    this.run.step('restarts the box');
    await this.subject.hands.restart?.();
    return this.given('a box that comes back', () => this.nextSession(session, 2 * RETURN_MS));
  }

  #throwIfRival(): void {
    const { duplicateBox: rival } = this.gateway;
    if (rival !== undefined) throw new MissingPeerError(rival, 'judge one box at a time');
  }
}

function isEndOf(message: UpMessage, pushId: string): boolean {
  return (message.type === 'ended' || message.type === 'rejected') && message.pushId === pushId;
}

function inWords(message: UpMessage): string {
  if (message.type === 'rejected') return `rejected ${message.code}`;
  return message.type === 'ended' ? `ended ${message.how}` : message.type;
}
