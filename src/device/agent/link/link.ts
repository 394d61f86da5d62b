import { withAbortAfter } from '../../../lib/clock.ts';
import { PayboxError, reasonOf } from '../../../lib/errors.ts';
import { type DownOf, MESSAGE_VERSION, REASON_CHARS_MAX, type UpMessage } from '../../../protocol/messages.ts';
import { BoxSeal } from '../../../protocol/seal.ts';
import type { Send } from '../../box/state.ts';
import type { Connection, InboundMessage, SessionIo } from '../contract.ts';
import { DISABLED_RETRY_MS } from '../enrolment/enroller.ts';
import { HomeLane } from './lane.ts';
import {
  answerWithin,
  Heartbeat,
  type LinkDeps,
  messageEvent,
  noWelcome,
  type Registering,
  untilRenewal,
} from './session.ts';

/*
 * Keeps the box connected to its gateway, over any transport.
 *
 * Theory. A session is one connection, from hello to end. The link runs one session after another and turns messages
 * into events. It never repairs a session: whatever goes wrong ends it, and the next one starts from a new hello.
 *
 * Invariants. Only a welcome resets the backoff (house rule 6), because an open connection proves nothing. Every message
 * has the id of its session, and the link ignores other ones. Times of a session count from its hello, which the box
 * reads before it sends. Sending never waits for the peer, so messages keep their order.
 *
 * Tried and failed. An open connection may lose the box's messages without an error, so a heartbeat needs an answer from
 * the gateway itself. A gateway that forgot the box cannot sign a refusal, so unanswered hellos count as one. Two agents
 * of one box threw each other out forever, so a superseded agent waits and then yields.
 */

export const WELCOME_TIMEOUT_MS = 5_000;
export const OPEN_TIMEOUT_MS = 10_000;
/**
 * A gateway that does not know the secret cannot sign a refusal that the box accepts (PROTOCOL.md, clause ENR-6). So
 * the secret counts as refused after this many unanswered hellos in a row.
 */
const UNANSWERED_MAX = 10;
/** A program without any session so far redials after this time, because a gateway that starts beside it is ready soon. */
const REDIAL_AT_START_MS = 50;
export const REDIAL_FIRST_MS = 250;
export const REDIAL_MAX_MS = 30_000;
/** A superseded agent waits this long before it asks whether the newer one is gone (PROTOCOL.md, clause MSG-8). */
const SUPERSEDED_RETRY_MS = 60_000;
/**
 * A slow session has at most this many unsent messages. One more ends the session, and the box sends its reports again
 * after the next welcome.
 */
const OUTGOING_MAX = 500;
/**
 * From this many unsent messages on, the box reads nothing more that needs an answer. The number is larger than that of
 * unacknowledged reports can be.
 */
const OUTGOING_BUSY = 200;

/** The state of the link, for `/status`. */
export interface LinkStatus {
  connectedAtMs: number | undefined;
  reason: string | undefined;
}

/** Keeps the box connected: dials, sends the hello, turns messages into events, and redials with jittered backoff. */
export class Link {
  readonly #deps: LinkDeps;
  readonly #stop = new AbortController();
  #welcomed: { connection: Connection; sessionId: string } | undefined;
  #underWay = 0;
  #unanswered = 0;
  #isSuperseded = false;
  #isDisabled = false;
  readonly #home: HomeLane;
  #whyGivenUp: string | undefined;
  /** The wait for which the gateway asked when it refused the last session. */
  #toldMs: number | undefined;
  #oneArrived = Promise.withResolvers<void>();
  #running: Promise<void> = Promise.resolve();
  #status: LinkStatus = { connectedAtMs: undefined, reason: 'not connected yet' };

  constructor(deps: LinkDeps) {
    this.#deps = deps;
    this.#home = new HomeLane(deps.random);
  }

  start(): void {
    this.#running = this.#run();
  }

  status(): LinkStatus {
    return this.#status;
  }

  /** Sends messages in the welcomed session, if there is one. Reports are repeated after the next welcome. */
  send(sends: readonly Send[]): void {
    for (const send of sends) {
      const welcomed = this.#welcomed;
      if (welcomed === undefined) return;
      const { connection, sessionId } = welcomed;
      if (this.#underWay >= OUTGOING_MAX) this.#giveUp(connection, `${OUTGOING_MAX} messages wait to be sent`);
      else void this.#sendOn(connection, this.#stamp(send, sessionId));
    }
  }

  /**
   * Sends a message. The connection keeps the order, so nothing may wait for the peer here, or messages could overtake
   * each other.
   */
  async #sendOn(connection: Connection, message: UpMessage): Promise<void> {
    this.#underWay += 1;
    try {
      await connection.send(message);
    } catch (error) {
      this.#giveUp(connection, reasonOf(error));
    } finally {
      this.#underWay -= 1;
      this.#oneArrived.resolve();
      this.#oneArrived = Promise.withResolvers();
    }
  }

  /** Closes a session that cannot send. That also ends reading. */
  #giveUp(connection: Connection, reason: string): void {
    if (this.#welcomed?.connection !== connection) return;
    this.#welcomed = undefined;
    this.#whyGivenUp = reason;
    void connection.close();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  #stamp(send: Send, sessionId: string): UpMessage {
    const { random, clock } = this.#deps;
    const cut = 'reason' in send ? { reason: send.reason.slice(0, REASON_CHARS_MAX) } : {};
    const head = { v: MESSAGE_VERSION, sentAtMs: clock.wallMs(), sessionId } as const;
    return { ...head, ...send, ...cut, id: send.id ?? random.uuid() };
  }

  async #run(): Promise<void> {
    const { clock, random, log, emit } = this.#deps;
    const { signal } = this.#stop;
    let waitMs = REDIAL_AT_START_MS;
    while (!signal.aborted) {
      emit({ type: 'connecting' });
      const reason = await this.#oneSession(() => {
        waitMs = REDIAL_FIRST_MS;
        this.#home.welcomed();
      });
      if (signal.aborted) break;
      if (this.#home.takeMove()) {
        log.info('link-moved', { reason });
        continue;
      }
      if (this.#status.reason !== reason) log.warn('link-lost', { reason });
      this.#status = { connectedAtMs: undefined, reason };
      const askedMs = this.#isDisabled ? DISABLED_RETRY_MS : Math.min(this.#toldMs ?? waitMs, REDIAL_MAX_MS);
      await clock.sleep((this.#isSuperseded ? SUPERSEDED_RETRY_MS : askedMs) * (0.5 + random.fraction() / 2), signal);
      if (this.#toldMs === undefined) waitMs = Math.min(waitMs * 2, REDIAL_MAX_MS);
    }
  }

  /** Runs one session from dial to end. Returns why it ended. Never throws. */
  async #oneSession(onWelcome: () => void): Promise<string> {
    const { clock, random, log, key } = this.#deps;
    const secret = await this.#deps.secret.get(this.#stop.signal);
    if (secret === undefined) return 'the box is not enrolled';
    const identity = { ...this.#deps.identity, secret };
    this.#toldMs = undefined;
    const sessionId = random.uuid();
    const seal = new BoxSeal({ ...identity, sessionId }, key, clock);
    const over = new AbortController();
    const heartbeat = new Heartbeat({ clock, random });
    const heard: SessionIo['heard'] = (id, aliveMs) => heartbeat.answered(id, aliveMs);
    const io = { clock, log, identity, lane: this.#home.lane, noLane: () => this.#home.lost(), sessionId, seal, heard };
    let connection: Connection | undefined;
    try {
      connection = await withAbortAfter(clock, OPEN_TIMEOUT_MS, this.#stop.signal, (signal) =>
        this.#deps.open(io, signal),
      );
      const opened = connection;
      this.#stop.signal.addEventListener('abort', () => void opened.close(), { signal: over.signal });
      const messages = connection.incoming[Symbol.asyncIterator]();
      const waitMs = this.#home.helloWaitMs(connection.spreadMs ?? 0);
      if (waitMs > 0) await clock.sleep(waitMs, this.#stop.signal);
      // The time is read before the gateway can receive the hello, so times counted from here are never too late.
      const helloAtMs = clock.monotonicMs();
      const registering = { sessionId, helloAtMs, heartbeat, withinMs: WELCOME_TIMEOUT_MS };
      const refused = await this.#register(connection, messages, registering);
      if (refused !== undefined) return refused;
      onWelcome();
      void this.#renewInTime(opened, over.signal);
      void this.#endUnanswered(opened, heartbeat, sessionId, over.signal);
      return await this.#serve(messages, sessionId, helloAtMs);
    } catch (error) {
      if (error instanceof PayboxError && error.code === 'NOT_REGISTERED') this.#deps.secret.refused();
      const { fix = '', retryAfterMs } = error instanceof PayboxError ? error : {};
      this.#toldMs = retryAfterMs;
      return `${reasonOf(error)}${fix === '' ? '' : `; ${fix}`}`;
    } finally {
      over.abort();
      this.#welcomed = undefined;
      await connection?.close();
    }
  }

  /** Ends a session whose connection is open but in which the gateway does not receive the box's messages. */
  async #endUnanswered(
    connection: Connection,
    heartbeat: Heartbeat,
    sessionId: string,
    signal: AbortSignal,
  ): Promise<void> {
    const send = (id: string) => void this.#sendOn(connection, this.#stamp({ type: 'alive', id }, sessionId));
    await heartbeat.untilUnanswered(send, signal);
    if (!signal.aborted)
      this.#giveUp(connection, `the gateway has not answered a heartbeat for ${heartbeat.everyMs} ms`);
  }

  async #renewInTime(connection: Connection, signal: AbortSignal): Promise<void> {
    await untilRenewal(this.#deps.clock, () => this.#deps.shownPushId() !== null, signal);
    if (!signal.aborted) await connection.close();
  }

  async #register(
    connection: Connection,
    messages: AsyncIterator<InboundMessage>,
    { sessionId, helloAtMs, heartbeat, withinMs }: Registering,
  ): Promise<string | undefined> {
    const { clock, identity, agentVersion, display, emit, log } = this.#deps;
    const { terminalCode, serialNumber } = identity;
    const names = { terminalCode, serialNumber, agentVersion, display };
    const hello = {
      type: 'hello',
      ...names,
      shownPushId: this.#deps.shownPushId(),
      yields: this.#isSuperseded,
    } as const;
    await connection.send(this.#stamp(hello, sessionId));
    const answer = await answerWithin(clock, withinMs, messages, sessionId);
    if (answer === undefined) {
      this.#unanswered += 1;
      if (this.#unanswered >= UNANSWERED_MAX) this.#deps.secret.refused();
      throw noWelcome(withinMs);
    }
    this.#unanswered = 0;
    if (answer.type === 'refused') return this.#refused(answer);
    this.#welcomed = { connection, sessionId };
    heartbeat.every(answer.aliveMs);
    this.#isSuperseded = false;
    this.#isDisabled = false;
    this.#whyGivenUp = undefined;
    this.#status = { connectedAtMs: clock.wallMs(), reason: undefined };
    const { link, openPushIds, pictures, isOwnTime } = answer;
    const sandbox = answer.mode === 'sandbox';
    const sandboxMark = sandbox && answer.sandboxMark === true;
    log.info('registered', { terminalCode, account: link?.bankAccount ?? null });
    // The welcome has travelled for at most the time since the hello.
    const gatewayMs = Math.ceil(answer.sentAtMs + clock.monotonicMs() - helloAtMs);
    const time = { gatewayMs, isOwnTime };
    emit({ type: 'registered', account: link, ...time, openPushIds, sandbox, sandboxMark, pictures });
    return undefined;
  }

  /**
   * Processes the messages of a session. It ignores messages of another session: they are late, or for another agent on
   * this box's topic (clause MSG-4).
   */
  async #serve(messages: AsyncIterator<InboundMessage>, sessionId: string, helloAtMs: number): Promise<string> {
    const { emit, checkQr, log } = this.#deps;
    for (;;) {
      const next = await messages.next();
      if (next.done) return this.#whyGivenUp ?? 'the gateway closed the connection';
      const message = next.value;
      if (message.sessionId !== sessionId) {
        log.warn('message-session-mismatched', { type: message.type });
      } else if (message.type === 'refused') {
        return this.#refused(message);
      } else {
        const event = messageEvent(message, helloAtMs, checkQr);
        if (event === undefined) log.warn('message-unexpected', { type: message.type });
        else await emit(event);
        while (this.#underWay >= OUTGOING_BUSY) await this.#oneArrived.promise;
      }
    }
  }

  #refused({ code: told, reason, disabled = false, shard }: DownOf<'refused'>): string {
    this.#isDisabled = told === 'NOT_REGISTERED' && disabled;
    const code = this.#isDisabled ? 'BOX_DISABLED' : told;
    // These two codes need no action by a person, because the next hello follows.
    if (code !== 'SESSION_ENDED' && code !== 'MOVED') this.#deps.emit({ type: 'refused', code, reason });
    if (code === 'NOT_REGISTERED') this.#deps.secret.refused();
    if (code === 'MOVED') this.#home.moved(shard);
    if (code === 'SUPERSEDED') this.#isSuperseded = true;
    return `${code}: ${reason}`;
  }
}
