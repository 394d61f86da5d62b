import { storable } from '../../lib/text.ts';
import { CODES } from '../../protocol/codes.ts';
import { LIMITS } from '../../protocol/fields.ts';
import {
  type DownBody,
  type DownMessage,
  type LinkedAccount,
  MESSAGE_VERSION,
  type UpMessage,
  type UpOf,
  unheardMaxMs,
} from '../../protocol/messages.ts';
import type { HeldSession, OrderedHello } from '../common/place.ts';
import type { World } from '../common/world.ts';
import type { IsNews, Notice } from '../store/repositories/payments.ts';
import type { BoxConnection } from './connection.ts';
import { namedAliveMs } from './welcome.ts';

/** The wait before an unanswered payment or withdrawal is sent again (PROTOCOL.md, clauses MSG-7 and MSG-9). */
const RESEND_MS = 10_000;
/** How many payments and withdrawals may be unanswered. More are sent when these are answered (clause MSG-7). */
const UNANSWERED_MAX = 100;
/** The shortest time between two refusals of a stale session, so that not each of its messages is answered. */
const REFUSE_AGAIN_MS = 5_000;
/** How many refused sessions are remembered. The one refused first is then forgotten. */
const REFUSED_MAX = 1_000;

/** Represents a session of a registered box (PROTOCOL.md, clause MSG-4) with the messages that the box has not answered. */
export class Session {
  readonly sessionId: string;
  /** The session as other gateways and admins see it. */
  readonly held: HeldSession;
  readonly connection: BoxConnection;
  /** Decides which of the payments for the box are news to it. */
  readonly isNews: IsNews;
  /** The account in the welcome of this session. */
  link: LinkedAccount | null = null;
  readonly #helloAtMs: number;
  #heardAtMs: number;
  #aliveMs: number;
  readonly #world: World;
  /** Ids of payments and pushes. */
  readonly #unanswered = new Set<string>();
  /** Ids of payments that were sent as late. A box lists them and does not announce them. */
  readonly #late = new Set<string>();
  readonly #over = new AbortController();
  /** True if the store may have more for the box, or could not be read. */
  #hasMore = true;
  /** True if the store has changed since it was last read for this box. */
  #hasChanged = false;

  constructor(
    hello: UpOf<'hello'>,
    connection: BoxConnection,
    { aliveMs, isNews }: { aliveMs: number; isNews: IsNews },
    world: World,
  ) {
    this.sessionId = hello.sessionId;
    this.held = heldBy(hello, connection, world);
    this.connection = connection;
    this.isNews = isNews;
    this.#helloAtMs = world.clock.monotonicMs();
    this.#heardAtMs = this.#helloAtMs;
    this.#aliveMs = aliveMs;
    this.#world = world;
  }

  /** Returns the time since the hello, in whole milliseconds of the monotonic clock. */
  ageMs(): number {
    return Math.floor(this.#world.clock.monotonicMs() - this.#helloAtMs);
  }

  /** Records a message of the agent in this session. */
  heard(): void {
    this.#heardAtMs = this.#world.clock.monotonicMs();
  }

  /** Returns the interval of the signs of life, in milliseconds. */
  get aliveMs(): number {
    return this.#aliveMs;
  }

  /** Returns whether the agent may still be there, by its signs of life (PROTOCOL.md, clause MSG-11). */
  get isAlive(): boolean {
    return this.#world.clock.monotonicMs() - this.#heardAtMs < unheardMaxMs(this.#aliveMs);
  }

  get isOver(): boolean {
    return this.#over.signal.aborted;
  }

  send(body: DownBody): void {
    if (body.type === 'welcome') this.link = body.link;
    sendTo(this, body, this.#world);
  }

  /** Answers a sign of life with the interval until the next ones. */
  answerAlive(aliveId: string, aliveMs: number): void {
    this.#aliveMs = aliveMs;
    this.send({ type: 'heard', aliveId, ...namedAliveMs(aliveMs) });
  }

  /** Sends a notice of a payment. The box must answer it (PROTOCOL.md, clause MSG-7). */
  sendPayment(payment: Notice): void {
    this.#unanswered.add(payment.id);
    if (payment.late) this.#late.add(payment.id);
    this.send({
      type: 'payment',
      transactionId: payment.id,
      pushId: payment.push_id,
      orderId: payment.order_id,
      amount: payment.amount,
      content: payment.content.slice(0, LIMITS.pushContentMax).toWellFormed(),
      bankAccount: payment.bank_account,
      bankCode: payment.bank_code,
      paidAtMs: payment.paid_at_ms,
      repeated: payment.repeated,
      late: payment.late,
      due: payment.due,
    });
  }

  /** Withdraws a push. The box must answer this (PROTOCOL.md, clause MSG-9). */
  withdraw(pushId: string, why: 'timeout' | 'cancelled' | 'paid'): void {
    this.#unanswered.add(pushId);
    this.send({ type: 'withdraw', pushId, why });
  }

  /** Returns whether this payment was sent as late in this session. */
  wasLate(transactionId: string): boolean {
    return this.#late.has(transactionId);
  }

  /** Records that the box has answered for this payment or push. */
  answered(id: string): void {
    this.#unanswered.delete(id);
    this.#late.delete(id);
  }

  /** Returns whether this payment or withdrawal was sent and is unanswered. */
  isUnanswered(id: string): boolean {
    return this.#unanswered.has(id);
  }

  /** Returns whether too much is unanswered. Further payments then wait in the store. */
  get isBusy(): boolean {
    return this.#unanswered.size >= UNANSWERED_MAX;
  }

  /** Returns whether the box has answered everything while the store may hold more. */
  get isReadyForResend(): boolean {
    return this.#hasMore && this.#unanswered.size === 0;
  }

  /** Forgets what is unanswered. The caller then sends it again from the store, and calls `endResend`. */
  beginResend(): void {
    this.#unanswered.clear();
    this.#hasMore = true;
    this.#hasChanged = false;
  }

  /** Ends a resend, after the store was read. `hasMore`: the store has more than is sent at once. */
  endResend(hasMore: boolean): void {
    this.#hasMore = hasMore || this.#hasChanged;
  }

  /** Records that the store has more for this box, or could not store a report of it. */
  needResend(): void {
    this.#hasMore = true;
    this.#hasChanged = true;
  }

  /** Calls `resend` every `RESEND_MS` while an answer is missing, until the session ends. */
  async resendRegularly(resend: () => Promise<void>): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      await this.#world.clock.sleep(RESEND_MS, signal);
      if (!signal.aborted && (this.#hasMore || this.#unanswered.size > 0)) await resend();
    }
  }

  end(): void {
    this.#over.abort();
  }
}

/** Returns the session that a box begins by this hello, in texts that the database of several gateways can hold. */
export function heldBy(hello: OrderedHello, { transport }: BoxConnection, { clock }: World): HeldSession {
  const { terminalCode, sessionId, serialNumber, order } = hello;
  const [agentVersion, display] = [storable(hello.agentVersion), storable(hello.display)];
  return { terminalCode, sessionId, serialNumber, agentVersion, display, transport, sinceMs: clock.wallMs(), order };
}

/** The refusal of a session that is over: a newer one replaced it, or it has just ended. */
export type LostBy = 'SUPERSEDED' | 'SESSION_ENDED';

/** An agent in its session, registered or not. */
interface Agent {
  connection: BoxConnection;
  sessionId: string;
}

/** Sends a message to the agent in this session. */
export function sendTo({ connection, sessionId }: Agent, body: DownBody, { clock, random }: World): void {
  const head = { v: MESSAGE_VERSION, id: random.uuid(), sentAtMs: clock.wallMs(), sessionId } as const;
  connection.send({ ...head, ...body } satisfies DownMessage);
}

/**
 * Refuses agents whose session is not in use (PROTOCOL.md, clauses MSG-8 and MSG-12). It must get only verified
 * messages, so that a stranger cannot have a box refused.
 */
export class StaleSessions {
  readonly #world: World;
  /** The time of the last refusal, by box and session, oldest first. */
  readonly #refusedMs = new Map<string, number>();
  /** Sessions that a newer one at another gateway has replaced, by box and session, oldest first. */
  readonly #replaced = new Set<string>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Answers a message of a session that is not `inUse`. */
  answer(
    terminalCode: string,
    connection: BoxConnection,
    { type, sessionId }: UpMessage,
    inUse: Session | undefined,
  ): void {
    const { log, clock } = this.#world;
    log.warn('message-refused', { box: terminalCode, type, reason: 'not of the session in use' });
    const [key, nowMs] = [keyOf(terminalCode, sessionId), clock.monotonicMs()];
    if (nowMs - (this.#refusedMs.get(key) ?? Number.NEGATIVE_INFINITY) < REFUSE_AGAIN_MS) return;
    this.#refusedMs.delete(key);
    this.#refusedMs.set(key, nowMs);
    const [first] = this.#refusedMs.keys();
    if (this.#refusedMs.size > REFUSED_MAX && first !== undefined) this.#refusedMs.delete(first);
    const isSuperseded = inUse === undefined ? this.#replaced.has(key) : inUse.sessionId !== sessionId;
    this.refuse({ connection, sessionId }, isSuperseded ? 'SUPERSEDED' : 'SESSION_ENDED');
  }

  /** Refuses a session whose box another gateway has, or nobody. The same is said while it goes on sending. */
  lost(terminalCode: string, agent: Agent, by: LostBy): void {
    if (by === 'SUPERSEDED') this.#replaced.add(keyOf(terminalCode, agent.sessionId));
    const [first] = this.#replaced;
    if (this.#replaced.size > REFUSED_MAX && first !== undefined) this.#replaced.delete(first);
    this.refuse(agent, by);
  }

  refuse(agent: Agent, code: LostBy): void {
    const cure = code === 'SUPERSEDED' ? ': end that one, and this one comes back by itself' : '';
    sendTo(agent, { type: 'refused', code, reason: `${CODES[code]}${cure}` }, this.#world);
  }
}

function keyOf(terminalCode: string, sessionId: string): string {
  return `${terminalCode} ${sessionId}`;
}
