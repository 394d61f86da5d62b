import { MissingPeerError } from '../../../lib/errors.ts';
import type { DownBody, DownOf, UpMessage, UpOf } from '../../../protocol/messages.ts';
import type { Seen } from '../../probe.ts';
import { untilRight } from '../../steps/waiting.ts';
import type { Check, CheckRun, Level } from '../conformance.ts';
import { Mismatch, Unmet } from '../conformance.ts';
import { ACCOUNT, type Heard, type Session } from './gateway/scripted-gateway.ts';
import { ordersOf } from './orders.ts';
import { type BoxNeed, type BoxSubject, RETURN_MS } from './subject.ts';

type Body<T extends DownBody['type']> = Extract<DownBody, { type: T }>;

/** A box answers what it is told within this; a QR is on a slow panel within it too. */
const ANSWER_MS = 10_000;
/** The longest that a notice, as of a payment, may have the screen of a box that is judged. */
export const NOTICE_MAX_MS = 30_000;
/** A QR that has to go is gone within this: a picture of a camera may be of a moment before. */
const GONE_MS = 5_000;
/** A QR that has to stay is looked at for so long. */
const STAYS_MS = 2_500;
/** No payment waits for the screen any more when it has stayed for so long. */
const ALONE_MS = 4_000;
/** Between two looks at the screen. */
const LOOK_MS = 500;
/** For a push to be taken back between two checks. */
const CLEANUP_MS = 5_000;

/** One check as it goes: what is said to the box, what is waited for, and what is made good again after it. */
export class Trial {
  readonly subject: BoxSubject;
  readonly #run: CheckRun<BoxSubject>;
  readonly #orders: ReturnType<typeof ordersOf>;
  /** Pushes that may still be on the screen. */
  readonly #pushed = new Set<string>();
  #mark = 0;

  constructor(run: CheckRun<BoxSubject>) {
    this.#run = run;
    this.subject = run.subject;
    this.#orders = ordersOf(run.subject.gateway);
  }

  get gateway() {
    return this.subject.gateway;
  }

  get pace() {
    return this.subject.pace;
  }

  /** Milliseconds of the clock that the box lives by. */
  get nowMs(): number {
    return this.pace.clock.monotonicMs();
  }

  /** The session in use. Throws Unmet when a hello was not taken, MissingPeerError when none came. */
  async begin(): Promise<void> {
    const { gateway } = this;
    gateway.onTraffic = (title, detail) => this.#run.evidence.add('call', title, { detail });
    this.#throwIfRival();
    const isThere = async () => (this.#isWelcomed() ? undefined : 'no session');
    const withinMs = gateway.sessions.length === 0 && gateway.objections.length > 0 ? 0 : RETURN_MS;
    if ((await untilRight(this.pace, withinMs, isThere, this.#run.signal)) !== undefined) {
      const [objection] = gateway.objections;
      if (gateway.sessions.length === 0 && objection !== undefined) {
        throw new Unmet(`there is no session: ${objection.clause}: ${objection.what}`);
      }
      throw new MissingPeerError(`the box has not come back within ${RETURN_MS / 1000} s`, 'look at the box');
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
    const wasOdd = isFailed || gateway.answersHello !== 'welcome' || gateway.account !== ACCOUNT;
    Object.assign(gateway, { answersHello: 'welcome', account: ACCOUNT, openPushIds: [], acknowledges: true });
    Object.assign(gateway.http, { refusesWith: undefined, isSilent: false });
    if (wasOdd) await this.#begunAnew();
    const owed = gateway.heard.slice(this.#mark).flatMap(({ message: { type, id }, session }) => {
      return (type === 'ended' || type === 'paid') && session === gateway.session ? [id] : [];
    });
    if (this.#isWelcomed() && owed.length > 0) gateway.acknowledge([...new Set(owed)].slice(0, 100));
    if (this.#isWelcomed()) await this.#takeBack();
    gateway.onTraffic = undefined;
  }

  async #begunAnew(): Promise<void> {
    const { session } = this.gateway;
    this.gateway.cut();
    const isNew = async () => (this.gateway.session !== session ? undefined : 'no new session');
    await untilRight(this.pace, RETURN_MS, isNew, this.#run.signal);
  }

  async #takeBack(): Promise<void> {
    for (const pushId of this.#pushed) {
      const from = this.gateway.heard.length;
      this.gateway.tell({ type: 'withdraw', pushId, why: 'timeout' });
      const isOver = async () =>
        this.gateway.heard.slice(from).some(({ message }) => isEndOf(message, pushId)) || !this.#isWelcomed()
          ? undefined
          : 'not taken back';
      await untilRight(this.pace, CLEANUP_MS, isOver, this.#run.signal);
    }
    this.#pushed.clear();
  }

  /** Only what is heard from here on counts. */
  mark(): void {
    this.#mark = this.gateway.heard.length;
  }

  /** Messages since the mark, of these types. */
  since<T extends UpMessage['type']>(...types: T[]): UpOf<T>[] {
    const all = this.gateway.heard.slice(this.#mark).map(({ message }) => message);
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
    this.gateway.tell(body);
  }

  /** As it is, in place of a message. */
  deliver(bytes: string | Uint8Array): void {
    this.#run.evidence.add('call', 'told something that is no message', { detail: String(bytes).slice(0, 2_000) });
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
    return this.gateway.heard.find((it) => it.message === message)?.atMs ?? 0;
  }

  async until(what: string, withinMs: number, isSo: () => boolean | Promise<boolean>): Promise<void> {
    const look = async () => {
      this.#throwIfRival();
      return (await isSo()) ? undefined : what;
    };
    const problem = await untilRight(this.pace, withinMs, look, this.#run.signal);
    if (problem === undefined) return;
    throw new Mismatch(`expected ${what} within ${withinMs / 1000} s; heard ${this.#heardInWords()}`);
  }

  #heardInWords(): string {
    const words = this.gateway.heard.slice(this.#mark).map(({ message }) => inWords(message));
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

  /** An order whose QR can be seen. Throws Unmet when it cannot: another check judges that. */
  async onScreen(order = this.order()): Promise<Body<'show'>> {
    await this.shown(order);
    await this.given('a QR that can be seen', () => this.qrIsThere(order, NOTICE_MAX_MS));
    return order;
  }

  /** The same, once payments of before, which come over a new QR, have had their time (PROTOCOL.md, clause AGT-12). */
  async alone(): Promise<Body<'show'>> {
    const order = await this.onScreen();
    let sinceMs = this.nowMs;
    await this.given('a QR that stays on the screen', async () => {
      const seen = await this.#seenUntil(2 * NOTICE_MAX_MS, (qr) => {
        if (qr !== order.qrCode) sinceMs = this.nowMs;
        return this.nowMs - sinceMs >= ALONE_MS;
      });
      if (seen !== order.qrCode) throw new Mismatch('other screens come over it');
    });
    return order;
  }

  /** Has the box say something, so that what came before is known to be behind it. */
  async echo(): Promise<void> {
    const pushId = this.gateway.random.uuid();
    await this.given('an answer to a withdrawal', async () => {
      this.gateway.tell({ type: 'withdraw', pushId, why: 'timeout' });
      await this.hear('rejected for a push that never came', ['rejected'], (message) => message.pushId === pushId);
    });
  }

  /** What only prepares the check: another one judges it. */
  async given<T>(what: string, prepare: () => Promise<T>): Promise<T> {
    try {
      return await prepare();
    } catch (error) {
      if (error instanceof Mismatch) throw new Unmet(`needs ${what}: ${error.message}`, error);
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
    this.#run.step('restarts the box');
    await this.subject.hands.restart?.();
    return this.given('a box that comes back', () => this.nextSession(session, 2 * RETURN_MS));
  }

  /** What is on the screen. */
  async see(): Promise<Seen | undefined> {
    const seen = await this.pace.during(async () => this.subject.hands.see?.());
    if (seen !== undefined) this.#run.evidence.addScreen(this.subject.identity.terminalCode, seen.file, seen.qr);
    return seen;
  }

  /** Throws Mismatch unless the QR of the order is on the screen in time; at once unless told otherwise. */
  async qrIsThere({ qrCode }: Body<'show'>, withinMs = 0): Promise<void> {
    const seen = await this.#seenUntil(withinMs, (qr) => qr === qrCode);
    if (seen === qrCode) return;
    throw new Mismatch(`the screen shows ${seen === undefined ? 'no QR' : `the QR ${seen}`}, expected ${qrCode}`);
  }

  /** Whether there is a QR at all; that it is the right one is asked elsewhere. */
  async isReadable(order: Body<'show'>): Promise<boolean> {
    const seen = await this.#seenUntil(NOTICE_MAX_MS, (qr) => qr !== undefined);
    if (seen !== undefined && seen !== order.qrCode) throw new Unmet('the screen shows another QR');
    return seen !== undefined;
  }

  /** Throws Mismatch when the QR of the order is still there after a while. */
  async qrIsGone({ qrCode }: Body<'show'>): Promise<void> {
    const seen = await this.#seenUntil(GONE_MS, (qr) => qr !== qrCode);
    if (seen === qrCode) throw new Mismatch('the QR is still on the screen');
  }

  /** Throws Mismatch when the QR of the order is away at any time of a while. */
  async qrStays({ qrCode }: Body<'show'>, otherwise: string): Promise<void> {
    const seen = await this.#seenUntil(STAYS_MS, (qr) => qr !== qrCode);
    if (seen !== qrCode) throw new Mismatch(otherwise);
  }

  /** Looks until the QR on the screen is right, for so long at most; the last one that was seen. */
  async #seenUntil(withinMs: number, isRight: (qr: string | undefined) => boolean): Promise<string | undefined> {
    const endMs = this.nowMs + withinMs;
    for (;;) {
      this.#run.signal.throwIfAborted();
      const qr = (await this.see())?.qr;
      if (isRight(qr) || this.nowMs >= endMs) return qr;
      await this.pace.wait(LOOK_MS);
    }
  }

  #throwIfRival(): void {
    const { rival } = this.gateway;
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

export interface BoxCheckOptions {
  needs?: readonly BoxNeed[];
  /** Milliseconds of everybody's time that it may take. */
  timeoutMs?: number;
}

/** PROTOCOL.md is all there is between gateway and box: none of its clauses about that is one choice of several. */
const LEVEL: Level = 'spec';

/** Answers, two reconnections and what a slow box needs beside. */
const TIMEOUT_MS = 180_000;

/** A check of a box that is in a session, and idle. */
export function boxCheck(
  clause: string,
  title: string,
  judge: (trial: Trial) => Promise<void>,
  { needs = [], timeoutMs = TIMEOUT_MS }: BoxCheckOptions = {},
): Check<BoxSubject, BoxNeed> {
  const run = async (checkRun: CheckRun<BoxSubject>) => {
    const trial = new Trial(checkRun);
    await trial.begin();
    try {
      await judge(trial);
    } catch (error) {
      await trial.end(true);
      throw error;
    }
    await trial.end(false);
  };
  return { clause, title, level: LEVEL, needs, timeoutMs, run };
}

/** A check of what the box did in all that was judged so far. */
export function watched(clause: string, title: string, needs: readonly BoxNeed[] = []): Check<BoxSubject, BoxNeed> {
  const run = async ({ subject: { gateway } }: CheckRun<BoxSubject>) => {
    const against = gateway.objections.filter((it) => it.clause === clause).map(({ what }) => what);
    if (against.length > 0) throw new Mismatch(against.slice(0, 5).join('; '));
    if (gateway.sessions.length === 0) throw new Unmet('the box has not been in a session');
  };
  return { clause, title, level: LEVEL, needs, run };
}

export type { Body, Heard };
