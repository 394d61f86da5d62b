import { type Clock, withDeadline } from '../../../lib/clock.ts';
import { PayboxError } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Random } from '../../../lib/random.ts';
import type { BoxName } from '../../../protocol/fields.ts';
import type { SigningKey } from '../../../protocol/keys.ts';
import { BOX_ALIVE_MS } from '../../../protocol/messages.ts';
import type { BoxEvent, QrCheck } from '../../box/state.ts';
import type { Connection, InboundMessage, SessionIo } from '../contract.ts';
import type { BoxSecret } from '../enrolment/secret.ts';

/**
 * Returns the answer to the hello; undefined if none arrives in time. It ignores other messages before the answer
 * (PROTOCOL.md, clause MSG-4). Throws PayboxError when the connection ends without one.
 */
export async function answerWithin(
  clock: Clock,
  withinMs: number,
  messages: AsyncIterator<InboundMessage>,
  sessionId: string,
) {
  const answer = async () => {
    for (;;) {
      const next = await messages.next();
      if (next.done) throw noWelcome(withinMs);
      const message = next.value;
      if ((message.type === 'welcome' || message.type === 'refused') && message.sessionId === sessionId) return message;
    }
  };
  return withDeadline(clock, withinMs, answer());
}

export function noWelcome(withinMs: number): PayboxError {
  return new PayboxError('PEER_MISSING', `the gateway did not answer the hello within ${withinMs} ms`, {
    severity: 'retryable',
    fix: 'check that the gateway runs and that the box is in its configuration',
  });
}

/**
 * Returns the box event for a message of the gateway; undefined for a type that is not allowed within a session.
 * `sessionMs` of a push counts from the hello, sent at `helloAtMs` of the monotonic clock (PROTOCOL.md, clause SIG-4).
 */
export function messageEvent(
  message: InboundMessage,
  helloAtMs: number,
  checkQr: (qrCode: string) => QrCheck,
): BoxEvent | undefined {
  switch (message.type) {
    case 'show':
      return {
        type: 'push',
        push: message,
        bornAtMs: helloAtMs + message.sessionMs,
        qrCheck: checkQr(message.qrCode),
      };
    case 'linked':
      return { type: 'linked', account: message.account, pictures: message.pictures };
    case 'overtaken':
      return { type: 'overtaken', pushId: message.pushId };
    case 'withdraw':
      return { type: 'withdraw', pushId: message.pushId, why: message.why };
    case 'payment':
      return { type: 'payment', payment: message };
    case 'ack':
      return { type: 'acked', ids: message.reportIds };
    default:
      return undefined;
  }
}

/**
 * All times of a session count from its hello (PROTOCOL.md, clause SIG-4), and two clocks drift apart by seconds a day.
 * So the link renews a session after this time, once no QR is on the screen.
 */
const SESSION_MAX_MS = 86_400_000;
const RENEWAL_RETRY_MS = 60_000;

/** Settles once the session should be renewed, or `signal` aborts. */
export async function untilRenewal(clock: Clock, isShowing: () => boolean, signal: AbortSignal): Promise<void> {
  await clock.sleep(SESSION_MAX_MS, signal);
  while (!signal.aborted && isShowing()) await clock.sleep(RENEWAL_RETRY_MS, signal);
}

/**
 * Asks the gateway regularly whether it receives the box's messages, because an open connection may still lose them
 * (PROTOCOL.md, clause MSG-11).
 */
export class Heartbeat {
  readonly #deps: { clock: Clock; random: Random };
  /** The id of the unanswered heartbeat. */
  #unanswered: string | undefined;
  #everyMs = BOX_ALIVE_MS;

  constructor(deps: { clock: Clock; random: Random }) {
    this.#deps = deps;
  }

  /** Returns milliseconds between two heartbeats. */
  get everyMs(): number {
    return this.#everyMs;
  }

  /** Sets the interval that the gateway sent. The default is `BOX_ALIVE_MS`. */
  every(aliveMs = BOX_ALIVE_MS): void {
    this.#everyMs = aliveMs;
  }

  answered(aliveId: string, aliveMs?: number): void {
    if (aliveId !== this.#unanswered) return;
    this.#unanswered = undefined;
    this.every(aliveMs);
  }

  /** Sends heartbeats. Settles when the next one is due and the last was not answered, or `signal` aborts. */
  async untilUnanswered(send: (aliveId: string) => void, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#deps;
    for (;;) {
      const sentMs = clock.monotonicMs();
      const leftMs = () => sentMs + this.#everyMs - clock.monotonicMs();
      // The box sleeps for short times, because the interval may change meanwhile. It is never shorter than
      // `BOX_ALIVE_MS`.
      while (!signal.aborted && leftMs() > 0) await clock.sleep(Math.min(leftMs(), BOX_ALIVE_MS), signal);
      if (signal.aborted || this.#unanswered !== undefined) return;
      const aliveId = random.uuid();
      this.#unanswered = aliveId;
      send(aliveId);
    }
  }
}

/** The parts of a box that its link works with. */
export interface LinkDeps {
  clock: Clock;
  random: Random;
  log: Logger;
  identity: BoxName;
  secret: BoxSecret;
  /** The box's signing key. */
  key: SigningKey;
  agentVersion: string;
  /** The name of the display in the hello. */
  display: string;
  open(io: SessionIo, signal: AbortSignal): Promise<Connection>;
  /** Returns whether the display can show this QR. */
  checkQr(qrCode: string): QrCheck;
  /** The push on the screen; null if none. */
  shownPushId(): string | null;
  /** Hands an event to the box. With a promise, the next message waits until the box has processed this one. */
  emit(event: BoxEvent): void | Promise<void>;
}

/** Describes a session that waits for its welcome. The link ends it `withinMs` after the hello. */
export interface Registering {
  sessionId: string;
  /** The box sent its hello at this monotonic time. */
  helloAtMs: number;
  withinMs: number;
  heartbeat: Heartbeat;
}
