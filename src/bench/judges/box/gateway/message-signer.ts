import type { Clock } from '../../../../lib/clock.ts';
import { type SealHead, writeJws } from '../../../../protocol/jws.ts';
import { proofOf, type SigningKey } from '../../../../protocol/keys.ts';
import { MESSAGE_LIFETIME_MS, type SealedSession } from '../../../../protocol/seal.ts';

/** Defects of a forged message. All other parts are right. */
export interface Defects {
  key?: SigningKey;
  /** Another sequence number than the next one. */
  seq?: number;
  /** Milliseconds since the hello. */
  expiresMs?: number;
  /** Secret under which the key is introduced; false: it is not introduced. */
  proof?: string | false;
  /** Replaces fields of the header. */
  head?: Record<string, unknown>;
}

/**
 * Signs the messages of a gateway in one session (PROTOCOL.md, clauses SIG-1 and SIG-2), and forges wrong ones, which
 * the code of the real gateway cannot make.
 */
export class MessageSigner {
  readonly #session: SealedSession;
  readonly #clock: Clock;
  readonly #helloAtMs: number;
  #key: SigningKey;
  #firstKid: string | undefined;
  #seq = 0;

  constructor(session: SealedSession, key: SigningKey, clock: Clock) {
    this.#session = session;
    this.#clock = clock;
    this.#key = key;
    this.#helloAtMs = clock.monotonicMs();
  }

  /** Milliseconds since the gateway accepted the hello. */
  get ageMs(): number {
    return Math.floor(this.#clock.monotonicMs() - this.#helloAtMs);
  }

  rotate(key: SigningKey): void {
    this.#key = key;
  }

  /**
   * Signs the next message. Before the welcome each one introduces the key, because a box may ignore them all
   * (PROTOCOL.md, clause MSG-4).
   */
  sign(payload: string, isWelcomed = true): string {
    this.#seq += 1;
    const signed = this.#write(payload, { seq: this.#seq });
    if (isWelcomed) this.#firstKid ??= this.#key.kid;
    return signed;
  }

  /** Returns a forged message. It uses up no number: the next message gets the same one. */
  forge(payload: string, defects: Defects): string {
    return this.#write(payload, { seq: this.#seq + 1, ...defects });
  }

  #write(payload: string, { key = this.#key, seq = 0, expiresMs, proof, head = {} }: Defects): string {
    const { terminalCode } = this.#session;
    const sessionMs = this.ageMs;
    const times = { sessionMs, expiresMs: expiresMs ?? sessionMs + MESSAGE_LIFETIME_MS };
    const right = { terminalCode, seq, ...times, ...this.#introduction(key, proof) };
    return writeJws(key, { ...right, ...head } as Omit<SealHead, 'alg' | 'kid'>, payload);
  }

  /** Introduces a key: the first one of a session once, a later one in every message. */
  #introduction({ kid, jwk }: SigningKey, proof: string | false | undefined) {
    if (proof === false || (proof === undefined && kid === this.#firstKid)) return {};
    const { secret, ...where } = this.#session;
    return { jwk, proof: proofOf(proof ?? secret, { from: 'gateway', ...where, kid }) };
  }
}
