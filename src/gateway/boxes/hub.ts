import { CODES } from '../../protocol/codes.ts';
import type { ShowBody, UpMessage, UpOf } from '../../protocol/messages.ts';
import { type Result, refuse } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { Notice } from '../store/repositories/payments.ts';
import type { NewOrder, NewPush } from '../store/schema/tables.ts';
import { BoxQueues } from './box-queues.ts';
import { Confirmations } from './confirmations.ts';
import type { BoxConnection } from './connection.ts';
import { PaymentNews } from './news.ts';
import { Pushes } from './pushes.ts';
import { storeReport } from './reports.ts';
import { onlineOf, type SeenSession, seenOf } from './seen.ts';
import { Session, StaleSessions, sendTo } from './session.ts';
import { aliveMsFor, checkHello, type Refusal, welcomeOf } from './welcome.ts';

type NotAlive = Exclude<UpMessage, { type: 'alive' }>;

/**
 * Holds the sessions of registered boxes for all transports. It sends messages to boxes and stores their reports.
 *
 * The store holds what a box still has to receive. Each resend reads it again, so a lost message loses nothing.
 * The queue of a box runs hellos, reports, losses and resends in sequence; signs of life bypass it, because the store may
 * hang. A report is acknowledged after it is stored; the box repeats it until then. If a push fails for its partner, its
 * QR leaves the screen, even if the store fails. A session is registered after its welcome: a box ignores earlier messages.
 */
export class Hub {
  readonly #world: World;
  readonly #stored: Stored;
  readonly #sessions = new Map<string, Session>();
  #isClosed = false;
  readonly #queues: BoxQueues;
  readonly #confirmations = new Confirmations();
  readonly #pushes: Pushes;
  readonly #staleSessions: StaleSessions;
  readonly news: PaymentNews;

  constructor(world: World, stored: Stored) {
    this.#world = world;
    this.#stored = stored;
    this.#queues = new BoxQueues(world.log);
    this.#pushes = new Pushes(world, stored, this.#sessions, this.#confirmations);
    this.#staleSessions = new StaleSessions(world);
    this.news = new PaymentNews(world, stored);
  }

  /** Returns the session of a box that this gateway has. */
  session(terminalCode: string): Session | undefined {
    return this.#sessions.get(terminalCode);
  }

  get sessions(): ReadonlyMap<string, Session> {
    return this.#sessions;
  }

  /** Returns the sessions of these boxes, here or at another gateway. */
  seen(terminalCodes: readonly string[]): Promise<ReadonlyMap<string, SeenSession>> {
    return seenOf(terminalCodes, this.#sessions, this.#world.place);
  }

  /** Returns whether a box is connected, here or at another gateway. */
  async online(terminalCode: string): Promise<boolean> {
    return this.#sessions.has(terminalCode) || (await this.#world.place.elsewhere(terminalCode)) !== undefined;
  }

  /** Returns the codes of connected boxes, at most `limit`. With `among`, only of these. */
  onlineCodes(limit: number, among?: readonly string[]): Promise<string[]> {
    return onlineOf(limit, among, this.#sessions, this.#world.place);
  }

  /**
   * Handles a message of the box that logged in as `terminalCode`; messages of one box run in sequence. Settles once
   * the message is handled and stored. Returns false for a dropped message. Never throws.
   */
  async receive(terminalCode: string, connection: BoxConnection, message: UpMessage): Promise<boolean> {
    const { type } = message;
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
    void this.#queues.run(terminalCode, 'lost', async () => {
      const session = this.#sessions.get(terminalCode);
      if (session === undefined) return;
      if ('connection' in by ? session.connection !== by.connection : session.sessionId !== by.sessionId) return;
      this.#world.log.info('box-disconnected', { box: terminalCode, why });
      this.#endSession(terminalCode, session, why, `the connection to the box was lost: ${why}`);
    });
  }

  /** Refuses and ends the session of a box that lost its right to one. Settles with whether the box had a session. */
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

  /** Makes a box say hello again and so receive its account. It shows its QR until the welcome (clause MSG-12). */
  async renew(terminalCode: string, reason: string): Promise<void> {
    await this.#queues.run(terminalCode, 'renew', async () => {
      const session = this.#sessions.get(terminalCode);
      if (session !== undefined) {
        this.#staleSessions.refuse(session, 'SESSION_ENDED');
        this.#endSession(terminalCode, session, reason, reason);
      }
    });
  }

  /** Ends all sessions, because others take over their boxes. A box over HTTP then finds another gateway. */
  sendAway(why: string): void {
    for (const [terminalCode, session] of this.#sessions) {
      void this.#queues.run(terminalCode, 'away', async () => {
        if (this.#sessions.get(terminalCode) !== session) return;
        this.#endSession(terminalCode, session, why, why);
        session.connection.end();
      });
    }
  }

  /**
   * Sends the box of this connection to another lane (PROTOCOL.md, clause SHA-2), unless a push is open on it. Settles
   * with whether it goes.
   */
  async move(terminalCode: string, to: { connection: BoxConnection; lane: number }): Promise<boolean> {
    let goes = false;
    await this.#queues.run(terminalCode, 'move', async () => {
      const session = this.#sessions.get(terminalCode);
      if (session?.connection !== to.connection) return;
      if ((await this.#stored.store.orders.openPushIds(terminalCode)).length > 0) return;
      // A push may have begun meanwhile, whose row was not there yet.
      if (this.#confirmations.unawaited(terminalCode).except.length > 0) return;
      goes = true;
      session.send({ type: 'refused', code: 'MOVED', reason: CODES.MOVED, shard: to.lane });
      this.#endSession(terminalCode, session, CODES.MOVED, CODES.MOVED);
    });
    return goes;
  }

  #endSession(terminalCode: string, session: Session, why: string, reason: string): void {
    this.#sessions.delete(terminalCode);
    session.end();
    this.news.lost(terminalCode);
    this.#world.trafficLog.box(terminalCode, false, why);
    this.#confirmations.settleAll(terminalCode, refuse('BOX_OFFLINE', reason));
    this.#world.changes.publish('boxes');
  }

  /** Pushes an order to its box (PROTOCOL.md, clauses SND-3 to SND-6). */
  push(push: NewPush, newOrder: NewOrder | undefined, show: ShowBody): Promise<Result<undefined>> {
    return this.#pushes.push(push, newOrder, show);
  }

  /** Withdraws a push from its box. A box that is not connected receives this after its next welcome. */
  withdrawPush(terminalCode: string, pushId: string, why: 'cancelled' | 'paid'): void {
    this.#pushes.withdraw(terminalCode, pushId, why);
  }

  /** Sends a payment to a box. A busy box receives it later, and a disconnected one after its next welcome. */
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

  /** Returns the session of the message if it is in use. An agent in another session is refused. */
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
    if ('refusal' in checked) return this.#refuse(connection, hello, checked.refusal);
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
    // Without this, the session would outlive the store.
    if (this.#isClosed) return;
    session.send(welcome);
    this.#sessions.set(terminalCode, session);
    log.info('box-connected', { box: terminalCode, transport: connection.transport, agentVersion, display });
    trafficLog.box(terminalCode, true, connection.transport);
    changes.publish('boxes');
    void session.resendRegularly(() =>
      this.#queues.run(terminalCode, 'resend', async () => {
        if (!session.isOver) await this.#resend(session, terminalCode);
      }),
    );
    await this.#resend(session, terminalCode);
  }

  #refuse(connection: BoxConnection, hello: UpOf<'hello'>, refusal: Refusal): void {
    sendTo({ connection, sessionId: hello.sessionId }, { type: 'refused', ...refusal }, this.#world);
  }

  /** Sends a box everything unanswered from the store (PROTOCOL.md, clauses MSG-7 and MSG-9). */
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

  /** Returns whether a push waits for its QR on the screen. A report that the box stored it then needs no commit. */
  #awaitsScreen(terminalCode: string, pushId: string): boolean {
    return this.#world.config.confirm === 'displayed' && this.#confirmations.isAwaited(terminalCode, pushId);
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
