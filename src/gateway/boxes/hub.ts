import type { UpMessage, UpOf } from '../../protocol/messages.ts';
import type { Box } from '../common/directory.ts';
import type { HeldSession } from '../common/place.ts';
import { type Result, refuse } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { Notice } from '../store/repositories/payments.ts';
import { BoxQueues } from './box-queues.ts';
import { Confirmations } from './confirmations.ts';
import type { BoxConnection } from './connection.ts';
import { Deliveries } from './deliveries.ts';
import { PaymentNews } from './news.ts';
import { Pushes, STOPPING } from './pushes.ts';
import { storeReport } from './reports.ts';
import { isAnotherAlive, onlineOf, seenOf } from './seen.ts';
import { heldBy, Session, StaleSessions, sendTo } from './session.ts';
import { SessionEnds } from './session-ends.ts';
import { aliveMsFor, checkHello, type Refusal, welcomeOf } from './welcome.ts';
import { Whereabouts } from './whereabouts.ts';

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
  readonly #whereabouts: Whereabouts;
  readonly #deliveries: Deliveries;
  readonly #staleSessions: StaleSessions;
  readonly news: PaymentNews;
  readonly pushes: Pushes;
  /** Ends sessions of boxes. */
  readonly ends: SessionEnds;

  constructor(world: World, stored: Stored) {
    this.#world = world;
    this.#stored = stored;
    this.#queues = new BoxQueues(world.log);
    this.#whereabouts = new Whereabouts(world, this.#sessions);
    const parts = { sessions: this.#sessions, confirmations: this.#confirmations, whereabouts: this.#whereabouts };
    this.pushes = new Pushes(world, stored, parts);
    this.#deliveries = new Deliveries(world, stored, this.#sessions, this.pushes);
    this.#staleSessions = new StaleSessions(world);
    this.news = new PaymentNews(world, stored);
    const held = { ...parts, queues: this.#queues, staleSessions: this.#staleSessions, news: this.news };
    this.ends = new SessionEnds(world, stored, held);
  }

  /** Returns the session of a box that this gateway has. */
  session(terminalCode: string): Session | undefined {
    return this.#sessions.get(terminalCode);
  }

  get sessions(): ReadonlyMap<string, Session> {
    return this.#sessions;
  }

  /** Returns the sessions of these boxes, here or at another gateway. */
  seen(terminalCodes: readonly string[]): Promise<ReadonlyMap<string, HeldSession>> {
    return seenOf(terminalCodes, this.#sessions, this.#world.place);
  }

  /** Returns whether a box is connected, here or at another gateway. */
  async online(terminalCode: string): Promise<boolean> {
    return this.#sessions.has(terminalCode) || (await this.#world.place.elsewhere(terminalCode)) !== undefined;
  }

  /** Returns whether a push to a box is worth a try. Its gateway may know better (see `Place.holder`). */
  reachable(terminalCode: string): Promise<boolean> {
    return this.#whereabouts.isReachable(terminalCode);
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
    this.ends.disconnected(terminalCode, by, why);
  }

  /** Sends the box of this connection to another lane. Settles with whether it goes. */
  move(terminalCode: string, to: { connection: BoxConnection; lane: number }): Promise<boolean> {
    return this.ends.move(terminalCode, to);
  }

  /** Pushes an order to its box (PROTOCOL.md, clauses SND-3 to SND-6). */
  push(...args: Parameters<Pushes['push']>): Promise<Result<undefined>> {
    return this.pushes.push(...args);
  }

  /** Withdraws a push from its box. A box that is not connected receives this after its next welcome. */
  withdrawPush(terminalCode: string, pushId: string, why: 'cancelled' | 'paid'): void {
    this.pushes.withdraw(terminalCode, pushId, why);
  }

  /** Sends a payment to a box. A busy box receives it later, and a disconnected one after its next welcome. */
  sendPayment(terminalCode: string, payment: Notice): void {
    this.#deliveries.sendPayment(terminalCode, payment);
  }

  /** Makes the next resend to these boxes read the store. */
  resendFromStore(terminalCodes: readonly string[]): void {
    this.#deliveries.resendFromStore(terminalCodes);
  }

  /** Sends those of these boxes that are here what another gateway has stored for them. */
  deliver(terminalCodes: Iterable<string>): void {
    for (const code of terminalCodes) {
      if (!this.#sessions.has(code) || this.#queues.isFull(code)) continue;
      void this.#queues.run(code, 'deliver', async () => {
        const session = this.#sessions.get(code);
        if (session !== undefined) await this.#deliveries.sendRest(session, code);
      });
    }
  }

  /** Ends all sessions and waits. Settles once every queued message is handled. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const [code, session] of this.#sessions) {
      this.#confirmations.settleAll(code, STOPPING);
      session.end();
      this.#world.place.release(code, session.sessionId, true);
    }
    this.#sessions.clear();
    await this.pushes.close();
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
      await this.#welcome(terminalCode, connection, message).catch((error: unknown) => {
        // A box over HTTP would wait 5 s for a welcome. At another gateway, or here, it may get one at once.
        if (this.#world.place.sharing !== undefined) connection.end();
        throw error;
      });
      return;
    }
    const session = this.#inUse(terminalCode, connection, message);
    if (session === undefined) return;
    const isNews = message.type !== 'accepted' || !this.pushes.awaitsScreen(terminalCode, message.pushId);
    const stored = isNews ? await storeReport(this.#world, this.#stored, session, terminalCode, message) : {};
    const { confirmed, mustWithdraw } = stored;
    if (message.type === 'ended' || message.type === 'paid') session.send({ type: 'ack', reportIds: [message.id] });
    if (message.type === 'paid') session.answered(message.transactionId);
    else if (mustWithdraw) session.withdraw(message.pushId, 'timeout');
    else session.answered(message.pushId);
    if (confirmed !== undefined && message.type !== 'paid')
      this.#confirmations.settle(terminalCode, message.pushId, confirmed);
    if (session.isReadyForResend) await this.#deliveries.resend(session, terminalCode);
  }

  async #welcome(terminalCode: string, connection: BoxConnection, hello: UpOf<'hello'>): Promise<void> {
    const { place, log } = this.#world;
    const checked = checkHello(await this.#stored.directory.box(terminalCode), terminalCode, hello, this.#world);
    if ('refusal' in checked) return this.#refuse(connection, hello, checked.refusal);
    const { sessionId } = hello;
    if (hello.yields === true && (await isAnotherAlive(terminalCode, sessionId, this.#sessions, place))) {
      this.#staleSessions.refuse({ connection, sessionId }, 'SUPERSEDED');
      return;
    }
    const claimed = await place.claim(heldBy(hello, connection, this.#world));
    if (claimed === undefined) {
      log.warn('hello-late', { box: terminalCode, reason: 'a later session of the box has begun at another gateway' });
      return;
    }
    const { before } = claimed;
    try {
      const isMoved = before !== undefined && before !== place.run;
      await this.#begin(checked.box, connection, hello, isMoved || this.#sessions.has(terminalCode));
    } finally {
      if (this.#sessions.get(terminalCode)?.sessionId !== sessionId) place.release(terminalCode, sessionId);
    }
  }

  /** Begins the session of a box that this gateway has claimed. `isHere`: an older session has not ended. */
  async #begin(box: Box, connection: BoxConnection, hello: UpOf<'hello'>, isHere: boolean): Promise<void> {
    const { clock, log, changes, trafficLog, config, place } = this.#world;
    const { store } = this.#stored;
    const { terminalCode } = box;
    const { sessionId, agentVersion, display } = hello;
    this.#supersede(terminalCode, connection, sessionId);
    const aliveMs = aliveMsFor(this.#sessions.size + 1);
    const isNews = await this.news.begin(box, isHere);
    const session = new Session(hello, connection, { aliveMs, isNews }, this.#world);
    await store.orders.failUnfinished(clock.wallMs(), config.confirm, this.#confirmations.unawaited(terminalCode));
    await store.payments.dropForeignNotices(terminalCode, clock.wallMs());
    const isHeld = place.heldBy(terminalCode, sessionId);
    if (!(await store.orders.endAllExcept(hello.shownPushId, terminalCode, clock.wallMs(), isHeld))) return;
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
        if (!session.isOver) await this.#deliveries.resend(session, terminalCode);
      }),
    );
    await this.#deliveries.resend(session, terminalCode);
  }

  #refuse(connection: BoxConnection, hello: UpOf<'hello'>, refusal: Refusal): void {
    sendTo({ connection, sessionId: hello.sessionId }, { type: 'refused', ...refusal }, this.#world);
  }

  /** Ends the older session of a box (PROTOCOL.md, clause MSG-8). A repeated hello belongs to the same session. */
  #supersede(terminalCode: string, connection: BoxConnection, sessionId: string): void {
    const older = this.#sessions.get(terminalCode);
    older?.end();
    const isSame = older?.sessionId === sessionId && older.connection === connection;
    if (isSame) return;
    // A push that waits for the answer of another gateway was for an older session, too.
    this.#confirmations.settleAll(terminalCode, refuse('BOX_OFFLINE', 'a newer session of the box took over'));
    if (older === undefined) return;
    this.#sessions.delete(terminalCode);
    if (older.sessionId !== sessionId) {
      this.#world.log.warn('box-superseded', { box: terminalCode, code: 'SUPERSEDED' });
      this.#staleSessions.refuse(older, 'SUPERSEDED');
    }
    if (older.connection !== connection) older.connection.end();
  }
}
