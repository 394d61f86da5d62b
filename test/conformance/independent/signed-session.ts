import {
  createHash,
  createHmac,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomUUID,
  sign,
  verify,
} from 'node:crypto';

/*
 * Signed messages, written from PROTOCOL.md (clauses SIG and TOP-2) alone, like all files of this folder: they import
 * nothing from src, so that judge and box cannot share a mistake.
 */

export type Json = Record<string, unknown>;

export interface Identity {
  terminalCode: string;
  serialNumber: string;
  secret: string;
}

export interface BoxClock {
  monotonicMs(): number;
  wallMs(): number;
  sleep(ms: number): Promise<void>;
}

const MESSAGE_BYTES_MAX = 16_384;

/** HMAC-SHA256 over lines, in base64url. */
export function proof(secret: string, ...lines: string[]): string {
  return createHmac('sha256', secret).update(lines.join('\n')).digest('base64url');
}

/** The key of a box, made at each start. */
export class BoxKey {
  readonly #keys = generateKeyPairSync('ed25519');
  readonly x = String(this.#keys.publicKey.export({ format: 'jwk' }).x);
  readonly kid = thumbprint(this.x);

  sign(text: string): string {
    return sign(null, Buffer.from(text), this.#keys.privateKey).toString('base64url');
  }
}

function thumbprint(x: string): string {
  return createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest('base64url');
}

/** The box's side of one session. */
export class SignedSession {
  readonly id = randomUUID();
  readonly #identity: Identity;
  readonly #key: BoxKey;
  readonly #clock: BoxClock;
  readonly #retired = new Set<string>();
  #gateway: { kid: string; key: KeyObject } | undefined;
  #said = 0;
  #heard = 0;
  #helloAtMs = 0;

  constructor(identity: Identity, key: BoxKey, clock: BoxClock) {
    this.#identity = identity;
    this.#key = key;
    this.#clock = clock;
  }

  get helloAtMs(): number {
    return this.#helloAtMs;
  }

  /** The hello answers a challenge. */
  sign(body: Json, challenge?: string): string {
    const nowMs = this.#clock.monotonicMs();
    if (challenge !== undefined) this.#helloAtMs = nowMs;
    const { terminalCode, secret } = this.#identity;
    const { kid, x } = this.#key;
    this.#said += 1;
    const introduction = challenge !== undefined && {
      helloMs: Math.floor(nowMs),
      jwk: { kty: 'OKP', crv: 'Ed25519', x },
      challenge,
      proof: proof(secret, 'paybox/v1 key', 'box', terminalCode, this.id, challenge, kid),
    };
    const sessionMs = Math.floor(nowMs - this.#helloAtMs);
    const head = { alg: 'EdDSA', kid, terminalCode, seq: this.#said, sessionMs, ...introduction };
    const message = { v: 1, id: randomUUID(), sentAtMs: this.#clock.wallMs(), sessionId: this.id, ...body };
    const text = [head, message].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
    return `${text}.${this.#key.sign(text)}`;
  }

  /** The message, if it is genuine and `isLegal`; `expired` ends the session, anything else changes nothing. */
  open(bytes: Buffer, isLegal: (message: Json) => boolean): Json | 'expired' | undefined {
    const parts = bytes.length > MESSAGE_BYTES_MAX ? [] : bytes.toString('latin1').split('.');
    const [head, message] = parts.slice(0, 2).map(parsed);
    if (parts.length !== 3 || head === undefined || message === undefined) return undefined;
    const { alg, crit, terminalCode, kid, seq, expiresMs } = head;
    if (alg !== 'EdDSA' || crit !== undefined || terminalCode !== this.#identity.terminalCode) return undefined;
    if (message.sessionId !== this.id || message.v !== 1 || !isLegal(message)) return undefined;
    const key = this.#keyOf(String(kid), head);
    if (key === undefined) return undefined;
    const signature = Buffer.from(parts[2] ?? '', 'base64url');
    if (!verify(null, Buffer.from(`${parts[0]}.${parts[1]}`), key, signature)) return undefined;
    if (typeof seq !== 'number' || seq <= this.#heard) return undefined;
    if (Number(expiresMs) < this.#clock.monotonicMs() - this.#helloAtMs) return 'expired';
    if (this.#gateway !== undefined && this.#gateway.kid !== kid) this.#retired.add(this.#gateway.kid);
    this.#gateway = { kid: String(kid), key };
    this.#heard = seq;
    return message;
  }

  #keyOf(kid: string, { jwk, proof: shown }: Json): KeyObject | undefined {
    if (this.#retired.has(kid)) return undefined;
    if (this.#gateway?.kid === kid) return this.#gateway.key;
    const x = String((jwk as Json | undefined)?.x);
    const { terminalCode, secret } = this.#identity;
    // The gateway answers no challenge: its line is empty.
    const expected = proof(secret, 'paybox/v1 key', 'gateway', terminalCode, this.id, '', kid);
    if (shown !== expected || thumbprint(x) !== kid) return undefined;
    return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  }
}

function parsed(encoded: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(encoded, 'base64url').toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Json) : undefined;
  } catch {
    return undefined;
  }
}
