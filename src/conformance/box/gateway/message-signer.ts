import type { Clock } from '../../../lib/clock.ts';
import { type SealHead, writeJws } from '../../../protocol/jws.ts';
import { proofOf, type SigningKey } from '../../../protocol/keys.ts';
import { MESSAGE_LIFETIME_MS, type SealedSession } from '../../../protocol/seal.ts';

/** What is wrong with a message, on purpose; what is left out is as it should be. */
export interface Defects {
  key?: SigningKey;
  /** What is not the last number plus one. */
  seq?: number;
  /** Milliseconds since the hello. */
  expiresMs?: number;
  /** The secret that the key is introduced under; false: it is not introduced. */
  proof?: string | false;
  /** Put over the header as it is, whatever the protocol says. */
  head?: Record<string, unknown>;
}

/**
 * Seals what a gateway says in one session (PROTOCOL.md, clauses SIG-1 and SIG-2), and what nobody may say in it:
 * GatewaySeal seals nothing that is wrong.
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

  /** Milliseconds since the gateway took the hello. */
  get ageMs(): number {
    return Math.floor(this.#clock.monotonicMs() - this.#helloAtMs);
  }

  /** Another key from here on, as after a rotation. */
  rotate(key: SigningKey): void {
    this.#key = key;
  }

  /** The next message. */
  sign(payload: string): string {
    this.#seq += 1;
    const sealed = this.#write(payload, { seq: this.#seq });
    this.#firstKid ??= this.#key.kid;
    return sealed;
  }

  /** A message that does not count: the next one has the number that it would have had. */
  forge(payload: string, twist: Defects): string {
    return this.#write(payload, { seq: this.#seq + 1, ...twist });
  }

  #write(payload: string, { key = this.#key, seq = 0, expiresMs, proof, head = {} }: Defects): string {
    const { terminalCode } = this.#session;
    const sessionMs = this.ageMs;
    const times = { sessionMs, expiresMs: expiresMs ?? sessionMs + MESSAGE_LIFETIME_MS };
    const right = { terminalCode, seq, ...times, ...this.#introduction(key, proof) };
    return writeJws(key, { ...right, ...head } as Omit<SealHead, 'alg' | 'kid'>, payload);
  }

  /** The session's first key is introduced once, a later one with every message. */
  #introduction({ kid, jwk }: SigningKey, proof: string | false | undefined) {
    if (proof === false || (proof === undefined && kid === this.#firstKid)) return {};
    const { secret, ...where } = this.#session;
    return { jwk, proof: proofOf(proof ?? secret, { from: 'gateway', ...where, kid }) };
  }
}
