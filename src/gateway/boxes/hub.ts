import { withDeadline } from '../../lib/clock.ts';
import type { Code } from '../../protocol/codes.ts';
import type { DownBody, UpMessage, UpOf } from '../../protocol/messages.ts';
import { accept, type Result, refuse } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { NewOrder, NewPush } from '../store/repositories/orders.ts';
import type { Notice } from '../store/repositories/payments.ts';
import { BoxQueues } from './box-queues.ts';
import { Confirmations } from './confirmations.ts';
import type { BoxConnection } from './connection.ts';
import { PaymentNews } from './news.ts';
import { storeReport } from './reports.ts';
import { Session, StaleSessions, sendTo } from './session.ts';
import { aliveMsFor, checkHello, dropNoticesOfMoved, type Refusal, welcomeOf } from './welcome.ts';

type NotAlive = Exclude<UpMessage, { type: 'alive' }>;
export type ShowBody = Omit<Extract<DownBody, { type: 'show' }>, 'sessionMs'>;

/** The sessions of registered boxes, for all transports. It sends messages to boxes and handles their reports. */
export class Hub {
  readonly #world: World;
  readonly #stored: Stored;
  readonly #sessions = new Map<string, Session>();
  #isClosed = false;
  readonly #queues: BoxQueues;
  readonly #confirmations = new Confirmations();
  readonly #staleSessions: StaleSessions;
  /** The rule of news, for each box. */
  readonly news: PaymentNews;

  constructor(world: World, stored: Stored) {
    this.#world = world;
    this.#stored = stored;
    this.#queues = new BoxQueues(world.log);
    this.#staleSessions = new StaleSessions(world);
    this.news = new PaymentNews(world, stored);
  }

  session(terminalCode: string): Session | undefined {
    return this.#sessions.get(terminalCode);
  }

  get sessions(): ReadonlyMap<string, Session> {
    return this.#sessions;
  }

  /**
   * Handles a message of the box that logged in as `terminalCode`; messages of one box one after the other. Settles
   * once it is handled and stored. Returns false for a message that was dropped. Never throws.
   */
  async receive(terminalCode: string, connection: BoxConnection, message: UpMessage): Promise<boolean> {
    const { type } = message;
    // Not queued: a sign of life is answered even while the store does not answer.
    if (type === 'alive') {
      const session = this.#inUse(terminalCode, connection, message);
      session?.answerAlive(message.id, aliveMsFor(this.#sessions.size));
      return true;
    }
    if (this.#queues.isFull(terminalCode)) {
      this.#world.log.warn('message-dropped', { box: terminalCode, type, reason: 'its queue is full' });
      return false;
    }
    await this.#queues.run(terminalCode, type, () => this.#handle(terminalCode, connection, message));
    return true;
  }

  /** Ends the session of a box if it has this id or connection (PROTOCOL.md, clause PRE-3). */
  disconnected(terminalCode: string, by: { sessionId: string } | { connection: BoxConnection }, why: string): void {
    // Queued: otherwise an earlier hello in the queue would register a box that is gone.
    void this.#queues.run(terminalCode, 'lost', async () => {
      const session = this.#sessions.get(terminalCode);
      if (session === undefined) return;
      if ('connection' in by ? session.connection !== by.connection : session.sessionId !== by.sessionId) return;
      this.#world.log.info('box-offline', { box: terminalCode, why });
      this.#endSession(terminalCode, session, why, `the connection to the box was lost: ${why}`);
    });
  }

  /** Ends the session of a box that may have none any more. Settles with whether the box had one and was told. */
  async expel(terminalCode: string, reason: string, disabled = false): Promise<boolean> {
    let isTold = false;
    await this.#queues.run(terminalCode, 'expel', async () => {
      const session = this.#sessions.get(terminalCode);
      if (session === undefined) return;
      isTold = true;
      session.send({ type: 'refused', code: 'NOT_REGISTERED', reason, disabled });
      this.#world.log.warn('box-expelled', { box: terminalCode, code: 'NOT_REGISTERED', reason });
      this.#endSession(terminalCode, session, reason, reason);
      session.connection.end();
    });
    return isTold;
  }

  /** Has a box say hello again, and so learn its account: it keeps its QR until the welcome (clause MSG-12). */
  async renew(terminalCode: string, reason: string): Promise<void> {
    await this.#queues.run(terminalCode, 'renew', async () => {
      const session = this.#sessions.get(terminalCode);
      if (session !== undefined) {
        this.#staleSessions.refuse(session, 'SESSION_ENDED');
        this.#endSession(terminalCode, session, reason, reason);
      }
      await dropNoticesOfMoved(terminalCode, this.#world, this.#stored);
    });
  }

  #endSession(terminalCode: string, session: Session, why: string, reason: string): void {
    this.#sessions.delete(terminalCode);
    session.end();
    this.news.lost(terminalCode);
    this.#world.trafficLog.box(terminalCode, false, why);
    this.#confirmations.settleAll(terminalCode, refuse('BOX_OFFLINE', reason));
    this.#world.changes.publish('boxes');
  }

  /**
   * Stores a push, sends it to its box and waits for the confirmation (PROTOCOL.md, clauses SND-3 to SND-6). The
   * confirmation is a report: it comes through `receive`, `#handle` and `Confirmations.settle`.
   */
  async push(push: NewPush, newOrder: NewOrder | undefined, show: ShowBody): Promise<Result<undefined>> {
    const { clock, changes } = this.#world;
    const { confirm, confirmTimeoutMs } = this.#world.config;
    const { orders } = this.#stored.store;
    const { id, terminal_code: terminalCode } = push;
    const session = this.#sessions.get(terminalCode);
    if (session === undefined) return refuse('BOX_OFFLINE', 'the box is not connected');
    const asked = { ...show, sessionMs: session.ageMs(), ...(confirm === 'displayed' && { confirm }) };
    const confirmed = this.#confirmations.wait(terminalCode, id);
    try {
      await orders.startPush(push, newOrder).catch((error: unknown) => {
        // It may be in the store all the same: the next resend ends it.
        session.needResend();
        throw error;
      });
      changes.publish('orders');
      if (this.#sessions.get(terminalCode) === session) session.send(asked);
      else this.#confirmations.settle(terminalCode, id, refuse('BOX_OFFLINE', 'the connection to the box was lost'));
      const answer = () => withDeadline(clock, confirmTimeoutMs, confirmed);
      const first = await answer();
      if (first?.ok === true) return first;
      const result = first ?? refuse('BOX_TIMEOUT', `no confirmation within ${confirmTimeoutMs} ms`);
      if (await this.#fail(push, result.code)) return result;
      // The confirmation was stored in the last moment of the wait: it counts.
      if (await orders.isConfirmed(id, confirm)) return accept(undefined);
      return first ?? (await answer()) ?? result;
    } finally {
      this.#confirmations.forget(terminalCode, id);
      changes.publish('orders');
    }
  }

  /** Withdraws a push from its box. A box that is not connected gets this after its next welcome. */
  withdrawPush(terminalCode: string, pushId: string, why: 'cancelled' | 'paid'): void {
    this.#confirmations.settle(terminalCode, pushId, refuse('WITHDRAWN', `the order was ${why}`));
    this.#sessions.get(terminalCode)?.withdraw(pushId, why);
  }

  /** Sends a payment to a registered box, later if it is busy, or after its next welcome if it is not connected. */
  sendPayment(terminalCode: string, payment: Notice): void {
    const session = this.#sessions.get(terminalCode);
    if (session?.isBusy) session.needResend();
    else session?.sendPayment(payment);
  }

  /** Makes the next resend to these boxes read the store. */
  resendFromStore(terminalCodes: readonly string[]): void {
    for (const code of terminalCodes) this.#sessions.get(code)?.needResend();
  }

  /** Ends all sessions and waits. Settles once every queued message is handled. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#confirmations.settleEverything(refuse('BOX_OFFLINE', 'the gateway is stopping'));
    for (const session of this.#sessions.values()) session.end();
    this.#sessions.clear();
    await this.#queues.idle();
  }

  /** The session of the message if it is in use. An agent in another session is refused. */
  #inUse(terminalCode: string, connection: BoxConnection, message: UpMessage): Session | undefined {
    const session = this.#sessions.get(terminalCode);
    if (session?.connection === connection && session.sessionId === message.sessionId) {
      session.heard();
      return session;
    }
    this.#staleSessions.answer(terminalCode, connection, message, session);
    return undefined;
  }

  async #handle(terminalCode: string, connection: BoxConnection, message: NotAlive): Promise<void> {
    if (message.type === 'hello') {
      await this.#welcome(terminalCode, connection, message);
      return;
    }
    const session = this.#inUse(terminalCode, connection, message);
    if (session === undefined) return;
    const isNews = message.type !== 'accepted' || !this.#awaitsScreen(terminalCode, message.pushId);
    const stored = isNews ? await storeReport(this.#world, this.#stored, session, terminalCode, message) : {};
    const { confirmed, mustWithdraw } = stored;
    // The box repeats these until they are acknowledged (PROTOCOL.md, clause MSG-6).
    if (message.type === 'ended' || message.type === 'paid') session.send({ type: 'ack', reportIds: [message.id] });
    if (message.type === 'paid') session.answered(message.transactionId);
    else if (mustWithdraw) session.withdraw(message.pushId, 'timeout');
    else session.answered(message.pushId);
    if (confirmed !== undefined && message.type !== 'paid')
      this.#confirmations.settle(terminalCode, message.pushId, confirmed);
    if (session.isReadyForResend) await this.#resend(session, terminalCode);
  }

  async #welcome(terminalCode: string, connection: BoxConnection, hello: UpOf<'hello'>): Promise<void> {
    const { clock, log, changes, trafficLog, config } = this.#world;
    const { directory, store } = this.#stored;
    const checked = checkHello(await directory.box(terminalCode), terminalCode, hello, this.#world);
    if ('refusal' in checked) return this.#refuse(terminalCode, connection, hello, checked.refusal);
    const { box } = checked;
    const { sessionId, agentVersion, display } = hello;
    const inUse = this.#sessions.get(terminalCode);
    if (hello.yields === true && inUse?.isAlive === true && inUse.sessionId !== sessionId) {
      this.#staleSessions.refuse({ connection, sessionId }, 'SUPERSEDED');
      return;
    }
    this.#supersede(terminalCode, connection, sessionId);
    const aliveMs = aliveMsFor(this.#sessions.size + 1);
    const isNews = await this.news.begin(box, inUse !== undefined);
    const session = new Session(hello, connection, { aliveMs, isNews }, this.#world);
    await store.orders.failUnfinished(clock.wallMs(), config.confirm, this.#confirmations.unawaited(terminalCode));
    await store.payments.dropForeignNotices(terminalCode, box.account ?? '', clock.wallMs());
    await store.orders.endAllExcept(hello.shownPushId, terminalCode, clock.wallMs());
    const welcome = await welcomeOf(box, aliveMs, this.#world, this.#stored);
    // Otherwise its session would outlive the store.
    if (this.#isClosed) return;
    session.send(welcome);
    // After the welcome: a box ignores what comes before it.
    this.#sessions.set(terminalCode, session);
    log.info('box-online', { box: terminalCode, transport: connection.transport, agentVersion, display });
    trafficLog.box(terminalCode, true, connection.transport);
    changes.publish('boxes');
    void session.resendRegularly(() =>
      this.#queues.run(terminalCode, 'resend', async () => {
        if (!session.isOver) await this.#resend(session, terminalCode);
      }),
    );
    await this.#resend(session, terminalCode);
  }

  #refuse(terminalCode: string, connection: BoxConnection, hello: UpOf<'hello'>, refusal: Refusal): void {
    // A box that belongs elsewhere has no session here: it would take pushes that the box does not see.
    const inUse = refusal.code === 'MOVED' ? this.#sessions.get(terminalCode) : undefined;
    if (inUse !== undefined) this.#endSession(terminalCode, inUse, refusal.reason, refusal.reason);
    sendTo({ connection, sessionId: hello.sessionId }, { type: 'refused', ...refusal }, this.#world);
  }

  /** Sends a box all that it has not answered yet, from the store (PROTOCOL.md, clauses MSG-7 and MSG-9). */
  async #resend(session: Session, terminalCode: string): Promise<void> {
    const { clock, config } = this.#world;
    const { store } = this.#stored;
    session.beginResend();
    await store.orders.failUnfinished(clock.wallMs(), config.confirm, this.#confirmations.unawaited(terminalCode));
    for (const { id, why } of await store.orders.toWithdraw(terminalCode)) session.withdraw(id, why);
    const { notices, more } = await store.payments.takeUnreported(terminalCode, clock.wallMs(), session.isNews);
    for (const payment of notices) session.sendPayment(payment);
    session.endResend(more);
  }

  /** Whether a push waits for its QR on the screen: that the box has it on its disk changes nothing, and needs no commit. */
  #awaitsScreen(terminalCode: string, pushId: string): boolean {
    return this.#world.config.confirm === 'displayed' && this.#confirmations.isAwaited(terminalCode, pushId);
  }

  /** Marks a push as failed; returns whether it was unfinished. If the store fails, the next resend does it. */
  async #fail({ id, terminal_code: terminalCode }: NewPush, code: Code): Promise<boolean> {
    try {
      const nowMs = this.#world.clock.wallMs();
      const failed = await this.#stored.store.orders.failPush(id, terminalCode, code, nowMs, false);
      if (failed) this.#sessions.get(terminalCode)?.withdraw(id, 'timeout');
      return failed;
    } catch (error) {
      // The partner gets a failure in any case, so the QR must not stay on the screen.
      this.#sessions.get(terminalCode)?.withdraw(id, 'timeout');
      this.#sessions.get(terminalCode)?.needResend();
      throw error;
    }
  }

  /** Ends the older session of a box (PROTOCOL.md, clause MSG-8). A repeated hello belongs to the same session. */
  #supersede(terminalCode: string, connection: BoxConnection, sessionId: string): void {
    const older = this.#sessions.get(terminalCode);
    older?.end();
    if (older === undefined || (older.sessionId === sessionId && older.connection === connection)) return;
    this.#sessions.delete(terminalCode);
    if (older.sessionId !== sessionId) {
      this.#world.log.warn('box-superseded', { box: terminalCode, code: 'SUPERSEDED' });
      this.#staleSessions.refuse(older, 'SUPERSEDED');
    }
    this.#confirmations.settleAll(terminalCode, refuse('BOX_OFFLINE', 'a newer session of the box took over'));
    if (older.connection !== connection) older.connection.end();
  }
}
