import { z } from 'zod';
import { boxCode, LIMITS } from './fields.ts';
import { ed25519Jwk, type SigningKey, type VerifyingKey } from './keys.ts';

const sha256 = z.string().regex(/^[A-Za-z0-9_-]{43}$/, 'expected 32 bytes in base64url');

/** Protected header of every message between gateway and box (PROTOCOL.md, clause SIG-1). */
export const sealHead = z.object({
  alg: z.literal('EdDSA'),
  kid: sha256,
  /** Extensions that must be understood (RFC 7515, section 4.1.11): none are allowed. */
  crit: z.undefined().optional(),
  terminalCode: boxCode,
  /** Counts the messages of one session in one direction, from 1. */
  seq: z.int().min(1),
  /** Time of signing, in milliseconds since the session's hello, by the signer's monotonic clock. */
  sessionMs: z.int().min(0),
  /** Hello only: time of signing, in milliseconds of that clock since the key was made, or earlier. */
  helloMs: z.int().min(0).optional(),
  /** Messages to a box only: time at which the message is too old, on that clock. */
  expiresMs: z.int().min(0).optional(),
  jwk: ed25519Jwk.optional(),
  proof: sha256.optional(),
  challenge: z.uuid().optional(),
});
export type SealHead = z.infer<typeof sealHead>;

/** A JWS as received. Its contents are not trusted before `verifies`. */
export interface ReadJws {
  head: SealHead;
  payload: string;
  verifies(key: VerifyingKey): boolean;
}

/**
 * Writes a JWS in compact serialization (RFC 7515, section 7.1), signed with Ed25519 (RFC 8037). The tests verify it by `jose`, which
 * does not sign here: it works asynchronously, so every session would need a queue that keeps the order of its messages, and
 * every box a limit for bytes that nobody has verified yet.
 */
export function writeJws(key: SigningKey, head: Omit<SealHead, 'alg' | 'kid'>, payload: string): string {
  const input = `${base64url(JSON.stringify({ alg: 'EdDSA', kid: key.kid, ...head }))}.${base64url(payload)}`;
  return `${input}.${key.sign(input).toString('base64url')}`;
}

/** Reads a JWS without checking its signature. A string is the reason why it is not one. Never throws. */
export function readJws(bytes: Uint8Array | string): ReadJws | string {
  const size = typeof bytes === 'string' ? Buffer.byteLength(bytes) : bytes.byteLength;
  if (size > LIMITS.messageBytesMax) return `message of ${size} bytes, the limit is ${LIMITS.messageBytesMax}`;
  const text = typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('latin1');
  const parts = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{86})$/.exec(text);
  const [, encodedHead = '', encodedPayload = '', encodedSignature = ''] = parts ?? [];
  if (parts === null) return 'message is no compact JWS with an Ed25519 signature';
  const head = sealHead.safeParse(parsed(utf8(encodedHead)));
  const payload = utf8(encodedPayload);
  if (!head.success || payload === undefined) return 'its header or payload is none of the protocol';
  const signature = Buffer.from(encodedSignature, 'base64url');
  return { head: head.data, payload, verifies: (key) => key.verifies(`${encodedHead}.${encodedPayload}`, signature) };
}

function base64url(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url');
}

function utf8(encoded: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(encoded, 'base64url'));
  } catch {
    return undefined;
  }
}

function parsed(json: string | undefined): unknown {
  try {
    return JSON.parse(json ?? '');
  } catch {
    return undefined;
  }
}
