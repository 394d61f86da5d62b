import type { Clock } from '../lib/clock.ts';
import { type Decoded, decodeDown, decodeUp, encode } from './codec.ts';
import { type ReadJws, readJws, type SealHead, writeJws } from './jws.ts';
import { isProven, proofOf, type SigningKey, type VerifyingKey, verifyingKeyOf } from './keys.ts';
import type { DownMessage, UpMessage } from './messages.ts';

/** Age at which a box refuses a message of the gateway (PROTOCOL.md, clause SIG-4). */
export const MESSAGE_LIFETIME_MS = 60_000;

/** The session remembers this many skipped numbers, to distinguish late messages from repeated ones. */
const SKIPPED_MAX = 1_000;

/** The reason for refusing a message (PROTOCOL.md, clause SIG-3). */
export const SEAL_REFUSALS = [
  'MESSAGE_ILLEGAL',
  'WRONG_BOX',
  'WRONG_SESSION',
  'KEY_UNKNOWN',
  'KEY_RETIRED',
  'SIGNATURE_INVALID',
  'MESSAGE_REPLAYED',
  'MESSAGE_REORDERED',
  'MESSAGE_EXPIRED',
] as const;
export type SealRefusal = (typeof SEAL_REFUSALS)[number];

/** A verified message, or the reason of its refusal. */
export type Opened<T> = { ok: true; value: T } | Refused;
type Refused = { ok: false; code: SealRefusal; reason: string };

/** A message of the right shape, for the right box. Its sender is not verified yet. */
export interface ReadMessage<T> {
  jws: ReadJws;
  message: T;
}

/** A box and its secret. */
export interface SealedBox {
  terminalCode: string;
  secret: string;
}

/** A session of a box. */
export interface SealedSession extends SealedBox {
  sessionId: string;
}

/** Signs and verifies the messages of a session, at the box (PROTOCOL.md, clause SIG). */
export class BoxSeal {
  readonly #session: SealedSession;
  readonly #key: SigningKey;
  readonly #clock: Clock;
  readonly #received = new Sequence();
  readonly #retired = new Set<string>();
  #gatewayKey: VerifyingKey | undefined;
  #sent = 0;
  #helloAtMs = 0;

  constructor(session: SealedSession, key: SigningKey, clock: Clock) {
    this.#session = session;
    this.#key = key;
    this.#clock = clock;
  }

  /** Signs the next message. The first one, a hello, contains the gateway's `challenge`. */
  seal(message: UpMessage, challenge: string): string {
    const { terminalCode } = this.#session;
    const isHello = message.type === 'hello';
    if (isHello) this.#helloAtMs = this.#clock.monotonicMs();
    this.#sent += 1;
    const head = { terminalCode, seq: this.#sent, sessionMs: this.#ageMs() };
    const introduction = isHello ? introduce('box', this.#session, this.#key, challenge) : {};
    const begun = isHello ? { helloMs: Math.floor(this.#helloAtMs) } : {};
    return writeJws(this.#key, { ...head, ...begun, ...introduction }, encode(message));
  }

  /** Verifies bytes for the box. A refused message changes nothing. Never throws. */
  open(bytes: Uint8Array | string): Opened<DownMessage> {
    const read = readFor(this.#session.terminalCode, bytes, decodeDown);
    if (!read.ok) return read;
    const { jws, message } = read.value;
    if (message.sessionId !== this.#session.sessionId) {
      return refused('WRONG_SESSION', 'it is of another session than the one in use');
    }
    const key = this.#keyOf(jws.head);
    if ('code' in key) return key;
    const refusal = refusalOf(jws, key, this.#received) ?? this.#expiry(jws.head);
    if (refusal !== undefined) return refusal;
    this.#received.take(jws.head.seq);
    if (this.#gatewayKey !== undefined && this.#gatewayKey.kid !== key.kid) this.#retired.add(this.#gatewayKey.kid);
    this.#gatewayKey = key;
    return { ok: true, value: message };
  }

  /** Returns the session's key, or a new one that is introduced to replace it. */
  #keyOf(head: SealHead): VerifyingKey | Refused {
    if (this.#retired.has(head.kid)) return refused('KEY_RETIRED', 'the gateway has another key in this session');
    if (this.#gatewayKey?.kid === head.kid) return this.#gatewayKey;
    return introduced('gateway', this.#session, head);
  }

  #expiry({ expiresMs = 0 }: SealHead): Refused | undefined {
    const lateMs = this.#ageMs() - expiresMs;
    return lateMs > 0 ? refused('MESSAGE_EXPIRED', `it expired ${Math.ceil(lateMs)} ms ago`) : undefined;
  }

  #ageMs(): number {
    return Math.floor(this.#clock.monotonicMs() - this.#helloAtMs);
  }
}

/** Signs and verifies the messages of a session, at the gateway (PROTOCOL.md, clause SIG). */
export class GatewaySeal {
  readonly #session: SealedSession;
  readonly #clock: Clock;
  readonly #boxKey: VerifyingKey;
  readonly #helloAtMs: number;
  readonly #received = new Sequence();
  /** The first key of the session. */
  #firstKid: string | undefined;
  #sent = 0;

  private constructor(session: SealedSession, boxKey: VerifyingKey, clock: Clock) {
    this.#session = session;
    this.#boxKey = boxKey;
    this.#clock = clock;
    this.#helloAtMs = clock.monotonicMs();
  }

  /**
   * Verifies the hello of a new session: its key is introduced under the box's secret, and it contains this challenge.
   * Never throws.
   */
  static greet(
    box: SealedBox,
    challenge: string,
    { jws, message: hello }: ReadMessage<UpMessage>,
    clock: Clock,
  ): Opened<{ seal: GatewaySeal; hello: UpMessage & { type: 'hello' } }> {
    if (hello.type !== 'hello') return refused('WRONG_SESSION', 'its session has not begun with a hello');
    if (jws.head.challenge !== challenge) return refused('MESSAGE_REPLAYED', 'the hello answers another challenge');
    const session = { ...box, sessionId: hello.sessionId };
    const key = introduced('box', session, jws.head);
    if ('code' in key) return key;
    const seal = new GatewaySeal(session, key, clock);
    const refusal = refusalOf(jws, key, seal.#received);
    if (refusal !== undefined) return refusal;
    seal.#received.take(jws.head.seq);
    return { ok: true, value: { seal, hello } };
  }

  /**
   * Signs the next message to the box. The first message introduces its key, because without it there is no session.
   * Every message introduces a later key, so that a box that misses one can still verify the others.
   */
  seal(message: DownMessage, key: SigningKey): string {
    const sessionMs = Math.floor(this.#clock.monotonicMs() - this.#helloAtMs);
    this.#sent += 1;
    const { terminalCode } = this.#session;
    const head = { terminalCode, seq: this.#sent, sessionMs, expiresMs: sessionMs + MESSAGE_LIFETIME_MS };
    const introduction = this.#firstKid === key.kid ? {} : introduce('gateway', this.#session, key);
    this.#firstKid ??= key.kid;
    return writeJws(key, { ...head, ...introduction }, encode(message));
  }

  /** Verifies a message of the box in this session. A refused message changes nothing. Never throws. */
  open({ jws, message }: ReadMessage<UpMessage>): Opened<UpMessage> {
    if (jws.head.kid !== this.#boxKey.kid) return refused('KEY_UNKNOWN', 'the session began with another key');
    const refusal = refusalOf(jws, this.#boxKey, this.#received);
    if (refusal !== undefined) return refusal;
    this.#received.take(jws.head.seq);
    return { ok: true, value: message };
  }
}

/** Numbers of the messages of one direction: the last one, and those that were skipped. */
class Sequence {
  readonly #skipped = new Set<number>();
  #last = 0;

  problem(seq: number): Refused | undefined {
    if (seq > this.#last) return undefined;
    if (this.#skipped.has(seq)) return refused('MESSAGE_REORDERED', `number ${seq} comes after ${this.#last}`);
    return refused('MESSAGE_REPLAYED', `number ${seq} has come before`);
  }

  take(seq: number): void {
    for (let left = Math.max(this.#last + 1, seq - SKIPPED_MAX); left < seq; left += 1) this.#skipped.add(left);
    for (const oldest of this.#skipped) {
      if (this.#skipped.size <= SKIPPED_MAX) break;
      this.#skipped.delete(oldest);
    }
    this.#last = seq;
  }
}

/** Reads a message that claims to be from a box, with its session. Never throws. */
export function readUp(terminalCode: string, bytes: Uint8Array | string): Opened<ReadMessage<UpMessage>> {
  return readFor(terminalCode, bytes, decodeUp);
}

function readFor<T extends UpMessage | DownMessage>(
  terminalCode: string,
  bytes: Uint8Array | string,
  decode: (payload: string) => Decoded<T>,
): Opened<ReadMessage<T>> {
  const jws = readJws(bytes);
  if (typeof jws === 'string') return refused('MESSAGE_ILLEGAL', jws);
  if (jws.head.terminalCode !== terminalCode) return refused('WRONG_BOX', `it is for ${jws.head.terminalCode}`);
  const decoded = decode(jws.payload);
  if (!decoded.ok) return refused('MESSAGE_ILLEGAL', decoded.reason);
  return { ok: true, value: { jws, message: decoded.value } };
}

function refusalOf(jws: ReadJws, key: VerifyingKey, received: Sequence): Refused | undefined {
  if (!jws.verifies(key)) return refused('SIGNATURE_INVALID', 'its signature is not that of its key');
  return received.problem(jws.head.seq);
}

function introduce(from: 'box' | 'gateway', session: SealedSession, { kid, jwk }: SigningKey, challenge?: string) {
  const { secret, ...where } = session;
  return { jwk, proof: proofOf(secret, { from, ...where, challenge, kid }), ...(challenge && { challenge }) };
}

function introduced(from: 'box' | 'gateway', session: SealedSession, head: SealHead): VerifyingKey | Refused {
  const { secret, ...where } = session;
  const key = head.jwk && verifyingKeyOf(head.jwk);
  if (key === undefined || key.kid !== head.kid) return refused('KEY_UNKNOWN', 'its key is not introduced');
  if (!isProven(secret, { from, ...where, challenge: head.challenge, kid: key.kid }, head.proof)) {
    return refused('KEY_UNKNOWN', 'its key is not introduced under the secret of this box');
  }
  return key;
}

function refused(code: SealRefusal, reason: string): Refused {
  return { ok: false, code, reason };
}
