import { type Clock, withDeadline } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import type { Code } from '../../protocol/codes.ts';
import type { DownBody, UpMessage, UpOf } from '../../protocol/messages.ts';
import type { Changes } from '../changes.ts';
import type { BoxConfig } from '../config.ts';
import type { Directory } from '../directory.ts';
import type { NewOrder, NewPush } from '../store/repositories/orders.ts';
import type { Notice } from '../store/repositories/payments.ts';
import type { Store } from '../store/store.ts';
import type { TrafficLog } from '../traffic-log.ts';
import { BoxQueues } from './box-queues.ts';
import { Confirmations, type PushResult } from './confirmations.ts';
import type { BoxConnection } from './connection.ts';
import { paymentNotice } from './notice.ts';
import { storeReport } from './reports.ts';
import { Session, sendTo } from './session.ts';
import { StaleSessions } from './stale-sessions.ts';

export interface HubDeps {
  directory: Directory;
  store: Store;
  clock: Clock;
  random: Random;
  log: Logger;
  changes: Changes;
  wire: Pick<TrafficLog, 'box'>;
  confirm: 'displayed' | 'accepted';
  confirmTimeoutMs: number;
}

type ShowBody = Omit<Extract<DownBody, { type: 'show' }>, 'sessionMs'>;
type CancelReason = 'the order was cancelled' | 'the order was paid';

/** The registered boxes, whatever their transport: who is there, what they are told and what they say. */
export class Hub {
  readonly #deps: HubDeps;
  readonly #sessions = new Map<string, Session>();
  readonly #inboxes: BoxQueues;
  readonly #confirmations = new Confirmations();
  readonly #strays: StaleSessions;

  constructor(deps: HubDeps) {
    this.#deps = deps;
    this.#inboxes = new BoxQueues(deps.log);
    this.#strays = new StaleSessions(deps);
  }

  session(terminalCode: string): Session | undefined {
    return this.#sessions.get(terminalCode);
  }

  get online(): number {
    return this.#sessions.size;
  }

  /**
   * Takes a message of the box whose credential was `terminalCode`. What happens to one box is handled one after the
   * other; settles once this message is, with all that it changes on disk: whether it was taken. Never throws.
   */
  async receive(terminalCode: string, line: BoxConnection, message: UpMessage): Promise<boolean> {
    const { type } = message;
    // At once: that the gateway hears the box does not depend on its store.
    if (type === 'alive') {
      const session = this.#inUse(terminalCode, line, message);
      session?.send({ type: 'heard', aliveId: message.id });
      return true;
    }
    if (this.#inboxes.isFull(terminalCode)) {
      this.#deps.log.warn('message-dropped', { box: terminalCode, type, reason: 'its inbox is full' });
      return false;
    }
    await this.#inboxes.run(terminalCode, type, () => this.#handle(terminalCode, line, message));
    return true;
  }

  /** The box is gone, if this is still its session or line (PROTOCOL.md, clause PRE-3). */
  disconnected(terminalCode: string, by: { sessionId: string } | { line: BoxConnection }, why: string): void {
    // In its turn, or a hello that came before would register a box that is gone.
    void this.#inboxes.run(terminalCode, 'lost', async () => {
      const session = this.#sessions.get(terminalCode);
      if (session === undefined) return;
      if ('line' in by ? session.connection !== by.line : session.sessionId !== by.sessionId) return;
      this.#sessions.delete(terminalCode);
      session.end();
      this.#deps.log.info('box-offline', { box: terminalCode, why });
      this.#deps.wire.box(terminalCode, false, why);
      this.#confirmations.settleAll(terminalCode, failure('BOX_OFFLINE', `the box was lost: ${why}`));
      this.#deps.changes.publish('boxes');
    });
  }

  /**
   * Pushes to a registered box and settles with its confirmation or the reason why there is none
   * (PROTOCOL.md, clauses SND-3 to SND-6).
   */
  async push(push: NewPush, newOrder: NewOrder | undefined, show: ShowBody): Promise<PushResult> {
    const { clock, store, changes, confirmTimeoutMs } = this.#deps;
    const { id, terminal_code: terminalCode } = push;
    const session = this.#sessions.get(terminalCode);
    if (session === undefined) return failure('BOX_OFFLINE', 'the box is not connected');
    const sessionMs = session.ageMs();
    const confirmed = this.#confirmations.wait(id, terminalCode);
    try {
      await store.orders.startPush(push, newOrder);
      changes.publish('orders');
      if (this.#sessions.get(terminalCode) === session) session.send({ ...show, sessionMs });
      else this.#confirmations.settle(id, failure('BOX_OFFLINE', 'the box was lost'));
      const answer = () => withDeadline(clock, confirmTimeoutMs, confirmed);
      const first = await answer();
      if (first?.ok === true) return first;
      const result = first ?? failure('BOX_TIMEOUT', `no confirmation within ${confirmTimeoutMs} ms`);
      if (await this.#fail(push, result.code)) return result;
      // Something else was stored of it at the very end of the wait: that is what happened.
      if (await store.orders.isConfirmed(id, this.#deps.confirm)) return { ok: true };
      return first ?? (await answer()) ?? result;
    } finally {
      this.#confirmations.forget(id);
      changes.publish('orders');
    }
  }

  /** Takes a cancelled push back from its box, or has it taken back at the next welcome. */
  withdrawPush(terminalCode: string, pushId: string, why: CancelReason): void {
    this.#confirmations.settle(pushId, failure('WITHDRAWN', why));
    this.#withdraw(terminalCode, pushId, why === 'the order was paid' ? 'paid' : 'cancelled');
  }

  /** Tells a registered box of a payment, once it is less busy; one that is not there hears of it in its next welcome. */
  sendPayment(terminalCode: string, payment: Notice): void {
    const session = this.#sessions.get(terminalCode);
    if (session?.isBusy) session.resendFromStore();
    else session?.sendUntilAnswered(payment.id, paymentNotice(payment));
  }

  /** Has these boxes told again what the store holds for them: whether it has kept something new is not known. */
  resendFromStore(terminalCodes: readonly string[]): void {
    for (const code of terminalCodes) this.#sessions.get(code)?.resendFromStore();
  }

  /** Ends the session of a box whose secret is not good any more. */
  expel(terminalCode: string, reason: string): void {
    void this.#inboxes.run(terminalCode, 'expel', async () => {
      const session = this.#sessions.get(terminalCode);
      if (session === undefined) return;
      this.#sessions.delete(terminalCode);
      session.send({ type: 'refused', code: 'NOT_REGISTERED', reason });
      session.end();
      session.connection.end();
      this.#deps.log.warn('box-expelled', { box: terminalCode, code: 'NOT_REGISTERED', reason });
      this.#deps.wire.box(terminalCode, false, reason);
      this.#confirmations.settleAll(terminalCode, failure('BOX_OFFLINE', reason));
      this.#deps.changes.publish('boxes');
    });
  }

  /** Settles what is awaited, and what is being handled. */
  async close(): Promise<void> {
    this.#confirmations.settleAll(undefined, failure('BOX_OFFLINE', 'the gateway is stopping'));
    for (const session of this.#sessions.values()) session.end();
    this.#sessions.clear();
    await this.#inboxes.idle();
  }

  /** The session of the message, if it is the one in use; who speaks in another one is told so. */
  #inUse(terminalCode: string, line: BoxConnection, message: UpMessage): Session | undefined {
    const session = this.#sessions.get(terminalCode);
    if (session?.connection === line && session.sessionId === message.sessionId) {
      session.heard();
      return session;
    }
    this.#strays.answer(terminalCode, line, message, session);
    return undefined;
  }

  async #handle(
    terminalCode: string,
    line: BoxConnection,
    message: Exclude<UpMessage, { type: 'alive' }>,
  ): Promise<void> {
    if (message.type === 'hello') {
      await this.#welcome(terminalCode, line, message);
      return;
    }
    const session = this.#inUse(terminalCode, line, message);
    if (session === undefined) return;
    const {
      isAcknowledged: acked,
      confirmed,
      isShownInVain: isOver,
    } = await storeReport(this.#deps, terminalCode, message);
    if (isOver && 'pushId' in message) this.#withdraw(terminalCode, message.pushId, 'timeout');
    if (acked) session.send({ type: 'ack', reportIds: [message.id] });
    if (confirmed !== undefined && 'pushId' in message) this.#confirmations.settle(message.pushId, confirmed);
    if (!isOver) session.answered('pushId' in message ? message.pushId : message.transactionId);
    if (session.isReadyForResend) await this.#tellAll(session, terminalCode);
  }

  async #welcome(terminalCode: string, line: BoxConnection, hello: UpOf<'hello'>): Promise<void> {
    const { directory, store, clock, log, changes, wire, confirm } = this.#deps;
    const box = directory.box(terminalCode);
    const { sessionId, agentVersion, display } = hello;
    if (!isThisBox(box, hello)) {
      const reason = 'terminalCode and serialNumber are not those of a box in the system';
      log.warn('box-refused', { box: terminalCode, code: 'NOT_REGISTERED', reason, saidToBe: hello.terminalCode });
      sendTo({ connection: line, sessionId }, { type: 'refused', code: 'NOT_REGISTERED', reason }, this.#deps);
      return;
    }
    const inUse = this.#sessions.get(terminalCode);
    if (hello.yields === true && inUse?.isAlive === true && inUse.sessionId !== sessionId) {
      this.#strays.refuse({ connection: line, sessionId }, 'SUPERSEDED');
      return;
    }
    this.#supersede(terminalCode, line, sessionId);
    const session = new Session(hello, line, this.#deps);
    await store.orders.failUnfinished(clock.wallMs(), confirm, this.#unawaited(terminalCode));
    await store.orders.endAllExcept(hello.shownPushId, terminalCode, clock.wallMs());
    session.send({
      type: 'welcome',
      link: directory.accountOf(box),
      openPushIds: await store.orders.openPushIds(terminalCode),
    });
    // Not before the welcome, without which nothing counts.
    this.#sessions.set(terminalCode, session);
    log.info('box-online', { box: terminalCode, transport: line.transport, agentVersion, display });
    wire.box(terminalCode, true, line.transport);
    changes.publish('boxes');
    void session.resendRegularly(() =>
      this.#inboxes.run(terminalCode, 'remind', async () => {
        if (!session.isOver) await this.#tellAll(session, terminalCode);
      }),
    );
    await this.#tellAll(session, terminalCode);
  }

  /** Tells a box what it has not answered yet, as the store knows it (PROTOCOL.md, clauses MSG-7 and MSG-9). */
  async #tellAll(session: Session, terminalCode: string): Promise<void> {
    const { store, clock, confirm } = this.#deps;
    session.beginResend();
    await store.orders.failUnfinished(clock.wallMs(), confirm, this.#unawaited(terminalCode));
    for (const { id, why } of await store.orders.toWithdraw(terminalCode)) {
      session.sendUntilAnswered(id, { type: 'withdraw', pushId: id, why });
    }
    const { notices, more } = await store.payments.takeUnreported(terminalCode, clock.wallMs());
    for (const payment of notices) session.sendUntilAnswered(payment.id, paymentNotice(payment));
    session.endResend(more);
  }

  #unawaited(terminalCode: string): { terminalCode: string; except: string[] } {
    return { terminalCode, except: this.#confirmations.awaited(terminalCode) };
  }

  /** Whether the push was unfinished, so that this failed it; one that the store cannot fail is failed as soon as it can. */
  async #fail({ id, terminal_code: terminalCode }: NewPush, code: Code): Promise<boolean> {
    const { store, clock } = this.#deps;
    try {
      const failed = await store.orders.failPush(id, terminalCode, code, clock.wallMs(), false);
      if (failed) this.#withdraw(terminalCode, id, 'timeout');
      return failed;
    } catch (error) {
      // Its partner is told of a failure all the same: the QR must not stay for as long as the store is away.
      this.#withdraw(terminalCode, id, 'timeout');
      this.#sessions.get(terminalCode)?.resendFromStore();
      throw error;
    }
  }

  /** Ends the older session of a box (PROTOCOL.md, clause MSG-8); a repeated hello of the same one is none. */
  #supersede(terminalCode: string, line: BoxConnection, sessionId: string): void {
    const older = this.#sessions.get(terminalCode);
    older?.end();
    if (older === undefined || (older.sessionId === sessionId && older.connection === line)) return;
    this.#sessions.delete(terminalCode);
    if (older.sessionId !== sessionId) {
      this.#deps.log.warn('box-superseded', { box: terminalCode, code: 'SUPERSEDED' });
      this.#strays.refuse(older, 'SUPERSEDED');
    }
    this.#confirmations.settleAll(terminalCode, failure('BOX_OFFLINE', 'a newer session of the box took over'));
    if (older.connection !== line) older.connection.end();
  }

  #withdraw(terminalCode: string, pushId: string, why: 'timeout' | 'cancelled' | 'paid'): void {
    const session = this.#sessions.get(terminalCode);
    session?.sendUntilAnswered(pushId, { type: 'withdraw', pushId, why });
  }
}

function isThisBox(box: BoxConfig | undefined, hello: UpOf<'hello'>): box is BoxConfig {
  return box?.terminalCode === hello.terminalCode && box.serialNumber === hello.serialNumber;
}

function failure(code: Code, reason: string): PushResult & { ok: false } {
  return { ok: false, code, reason };
}
