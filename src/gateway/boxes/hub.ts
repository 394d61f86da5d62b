import { type Clock, withDeadline } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import type { Code } from '../../protocol/codes.ts';
import {
  type DownBody,
  type DownMessage,
  MESSAGE_VERSION,
  type UpMessage,
  type UpOf,
} from '../../protocol/messages.ts';
import type { Changes } from '../changes.ts';
import type { BoxConfig } from '../config.ts';
import type { Directory } from '../directory.ts';
import type { NewOrder, NewPush } from '../store/orders.ts';
import type { Notice } from '../store/payments.ts';
import type { Store } from '../store/store.ts';
import { Confirmations, type PushResult } from './confirmations.ts';
import type { Line } from './line.ts';
import { keepReport } from './reports.ts';

/** Messages of one box that wait for the one before them; more are dropped, and durable ones come again. */
const INBOX_MAX = 1000;

export interface HubDeps {
  directory: Directory;
  store: Store;
  clock: Clock;
  random: Random;
  log: Logger;
  changes: Changes;
  confirm: 'displayed' | 'accepted';
  confirmTimeoutMs: number;
}

/** What a box owes an answer to is said again after this (PROTOCOL.md, clauses MSG-7 and MSG-9). */
const RESEND_MS = 10_000;

/** A registered box (PROTOCOL.md, clause MSG-4). */
export interface Session {
  sessionId: string;
  line: Line;
  sinceMs: number;
  agentVersion: string;
  display: string;
}

interface LiveSession extends Session {
  /** When its hello was taken, by the monotonic clock. */
  helloAtMs: number;
  /** Payments and withdrawals that it was told and has not answered. */
  unanswered: Set<string>;
  /** The store may hold more to tell than it was told at a time, or could not be read. */
  moreWaits: boolean;
  over: AbortController;
}

type ShowBody = Omit<Extract<DownBody, { type: 'show' }>, 'sessionMs'>;
type CancelReason = 'the order was cancelled' | 'the order was paid';

/** The registered boxes, whatever their transport: who is there, what they are told and what they say. */
export class Hub {
  readonly #deps: HubDeps;
  readonly #sessions = new Map<string, LiveSession>();
  readonly #inboxes = new Map<string, { last: Promise<void>; size: number }>();
  readonly #confirmations = new Confirmations();

  constructor(deps: HubDeps) {
    this.#deps = deps;
  }

  session(terminalCode: string): Session | undefined {
    return this.#sessions.get(terminalCode);
  }

  get online(): number {
    return this.#sessions.size;
  }

  /**
   * Takes a message of the box whose credential was `terminalCode`. What happens to one box is handled one after the
   * other; settles once this message is, with all that it changes on disk. Never throws.
   */
  async receive(terminalCode: string, line: Line, message: UpMessage): Promise<void> {
    const { type } = message;
    if ((this.#inboxes.get(terminalCode)?.size ?? 0) >= INBOX_MAX) {
      this.#deps.log.warn('message-dropped', { box: terminalCode, type, reason: 'its inbox is full' });
      return;
    }
    await this.#inTurn(terminalCode, type, () => this.#handle(terminalCode, line, message));
  }

  /** The box is gone, if this is still its session or line (PROTOCOL.md, clause PRE-3). */
  lost(terminalCode: string, by: { sessionId: string } | { line: Line }, why: string): void {
    // In its turn, or a hello that came before would register a box that is gone.
    void this.#inTurn(terminalCode, 'lost', async () => {
      const session = this.#sessions.get(terminalCode);
      if (session === undefined) return;
      if ('line' in by ? session.line !== by.line : session.sessionId !== by.sessionId) return;
      this.#sessions.delete(terminalCode);
      session.over.abort();
      this.#deps.log.info('box-offline', { box: terminalCode, why });
      this.#confirmations.settleAll(terminalCode, failure('BOX_OFFLINE', `the box was lost: ${why}`));
      this.#deps.changes.notify('boxes');
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
    const sessionMs = Math.floor(clock.monotonicMs() - session.helloAtMs);
    await store.orders.startPush(push, newOrder);
    changes.notify('orders');
    const confirmed = this.#confirmations.wait(id, terminalCode);
    if (this.#sessions.get(terminalCode) === session) this.#send(session, { ...show, sessionMs });
    else this.#confirmations.settle(id, failure('BOX_OFFLINE', 'the box was lost'));

    const answer = () => withDeadline(clock, confirmTimeoutMs, confirmed);
    const timeout = failure('BOX_TIMEOUT', `no confirmation within ${confirmTimeoutMs} ms`);
    const first = await answer();
    let result = first ?? timeout;
    if (!result.ok) {
      const failed = await store.orders.failPush(id, terminalCode, result.code, clock.wallMs(), false);
      if (failed) this.#withdraw(terminalCode, id, 'timeout');
      // Something else was stored of it at the very end of the wait: that is what happened, and it settles next.
      else if (first === undefined) result = (await answer()) ?? timeout;
    }
    this.#confirmations.settle(id, result);
    changes.notify('orders');
    return result;
  }

  /** Takes a cancelled push back from its box, or has it taken back at the next welcome. */
  cancelled(terminalCode: string, pushId: string, why: CancelReason): void {
    this.#confirmations.settle(pushId, failure('WITHDRAWN', why));
    this.#withdraw(terminalCode, pushId, why === 'the order was paid' ? 'paid' : 'cancelled');
  }

  /** Tells a registered box of a payment; one that is not there hears of it in its next welcome. */
  tell(terminalCode: string, payment: Notice): void {
    const session = this.#sessions.get(terminalCode);
    if (session !== undefined) this.#ask(session, payment.id, noticeOf(payment));
  }

  /** Settles what is awaited, and what is being handled. */
  async close(): Promise<void> {
    this.#confirmations.settleAll(undefined, failure('BOX_OFFLINE', 'the gateway is stopping'));
    for (const { over } of this.#sessions.values()) over.abort();
    this.#sessions.clear();
    await Promise.all([...this.#inboxes.values()].map((it) => it.last));
  }

  async #inTurn(terminalCode: string, what: string, work: () => Promise<void>): Promise<void> {
    const inbox = this.#inboxes.get(terminalCode) ?? { last: Promise.resolve(), size: 0 };
    this.#inboxes.set(terminalCode, inbox);
    inbox.size += 1;
    inbox.last = inbox.last.then(async () => {
      try {
        await work();
      } catch (error) {
        this.#deps.log.error('message-failed', { box: terminalCode, type: what, reason: reasonOf(error) });
      } finally {
        inbox.size -= 1;
        if (inbox.size === 0) this.#inboxes.delete(terminalCode);
      }
    });
    await inbox.last;
  }

  async #handle(terminalCode: string, line: Line, message: UpMessage): Promise<void> {
    if (message.type === 'hello') {
      await this.#welcome(terminalCode, line, message);
      return;
    }
    const session = this.#sessions.get(terminalCode);
    if (session?.line !== line || session.sessionId !== message.sessionId) {
      const { log } = this.#deps;
      log.warn('message-refused', { box: terminalCode, type: message.type, reason: 'not of the session in use' });
      return;
    }
    const { acked, confirmed } = await keepReport(this.#deps, terminalCode, message);
    if (acked) this.#send(session, { type: 'ack', reportIds: [message.id] });
    if (confirmed !== undefined && 'pushId' in message) this.#confirmations.settle(message.pushId, confirmed);
    session.unanswered.delete('pushId' in message ? message.pushId : message.transactionId);
    if (session.moreWaits && session.unanswered.size === 0) await this.#tellAll(session, terminalCode);
  }

  async #welcome(terminalCode: string, line: Line, hello: UpOf<'hello'>): Promise<void> {
    const { directory, clock, log, changes } = this.#deps;
    const box = directory.box(terminalCode);
    const { sessionId, agentVersion, display } = hello;
    if (!isThisBox(box, hello)) {
      const reason = 'terminalCode and serialNumber are not those of a box in the system';
      log.warn('box-refused', { box: terminalCode, code: 'NOT_REGISTERED', reason, saidToBe: hello.terminalCode });
      this.#send({ line, sessionId }, { type: 'refused', code: 'NOT_REGISTERED', reason });
      return;
    }
    this.#sessions.get(terminalCode)?.over.abort();
    this.#supersede(terminalCode, line, sessionId);
    const session: LiveSession = {
      ...{ sessionId, agentVersion, display, line, sinceMs: clock.wallMs(), helloAtMs: clock.monotonicMs() },
      ...{ unanswered: new Set(), moreWaits: true, over: new AbortController() },
    };
    this.#sessions.set(terminalCode, session);
    this.#send(session, { type: 'welcome', link: directory.linkOf(box) });
    log.info('box-online', { box: terminalCode, transport: line.transport, agentVersion, display });
    changes.notify('boxes');
    void this.#remind(session, terminalCode);
    await this.#tellAll(session, terminalCode);
  }

  /** Tells a box what it has not answered yet, as the store knows it (PROTOCOL.md, clauses MSG-7 and MSG-9). */
  async #tellAll(session: LiveSession, terminalCode: string): Promise<void> {
    const { store } = this.#deps;
    const withdrawals = await store.orders.toWithdraw(terminalCode);
    const { notices, more } = await store.payments.unreported(terminalCode);
    session.unanswered.clear();
    session.moreWaits = more;
    for (const { id, why } of withdrawals) this.#ask(session, id, { type: 'withdraw', pushId: id, why });
    for (const payment of notices) this.#ask(session, payment.id, noticeOf(payment));
  }

  /** Sends what wants an answer and is said again until there is one. */
  #ask(session: LiveSession, id: string, body: DownBody): void {
    session.unanswered.add(id);
    this.#send(session, body);
  }

  async #remind(session: LiveSession, terminalCode: string): Promise<void> {
    const { signal } = session.over;
    while (!signal.aborted) {
      await this.#deps.clock.sleep(RESEND_MS, signal);
      if (signal.aborted || (session.unanswered.size === 0 && !session.moreWaits)) continue;
      await this.#inTurn(terminalCode, 'remind', async () => {
        if (!signal.aborted) await this.#tellAll(session, terminalCode);
      });
    }
  }

  /** Ends the older session of a box (PROTOCOL.md, clause MSG-8); a repeated hello of the same one is none. */
  #supersede(terminalCode: string, line: Line, sessionId: string): void {
    const older = this.#sessions.get(terminalCode);
    if (older === undefined || (older.sessionId === sessionId && older.line === line)) return;
    const reason = 'another agent registered with the identity of this box';
    if (older.sessionId !== sessionId) {
      this.#deps.log.warn('box-superseded', { box: terminalCode, code: 'SUPERSEDED', reason });
      this.#send(older, { type: 'refused', code: 'SUPERSEDED', reason });
    }
    this.#confirmations.settleAll(terminalCode, failure('BOX_OFFLINE', 'a newer session of the box took over'));
    if (older.line !== line) older.line.end();
  }

  #withdraw(terminalCode: string, pushId: string, why: 'timeout' | 'cancelled' | 'paid'): void {
    const session = this.#sessions.get(terminalCode);
    if (session !== undefined) this.#ask(session, pushId, { type: 'withdraw', pushId, why });
  }

  #send({ line, sessionId }: Pick<Session, 'line' | 'sessionId'>, body: DownBody): void {
    const { random, clock } = this.#deps;
    const head = { v: MESSAGE_VERSION, id: random.uuid(), sentAtMs: clock.wallMs(), sessionId } as const;
    line.send({ ...head, ...body } satisfies DownMessage);
  }
}

function isThisBox(box: BoxConfig | undefined, hello: UpOf<'hello'>): box is BoxConfig {
  return box?.terminalCode === hello.terminalCode && box.serialNumber === hello.serialNumber;
}

function failure(code: Code, reason: string): PushResult {
  return { ok: false, code, reason };
}

function noticeOf(payment: Notice): DownBody {
  return {
    type: 'payment',
    transactionId: payment.id,
    pushId: payment.push_id,
    orderId: payment.order_id,
    amount: payment.amount,
    content: payment.content,
    bankAccount: payment.bank_account,
    bankCode: payment.bank_code,
    paidAtMs: payment.paid_at_ms,
  };
}
