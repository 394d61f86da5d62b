import { createHash, createHmac, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { z } from 'zod';
import { equalSecrets } from './checksum.ts';

/** An Ed25519 public key as a JSON Web Key (RFC 8037, section 2). */
export const ed25519Jwk = z.object({
  kty: z.literal('OKP'),
  crv: z.literal('Ed25519'),
  x: z.string().regex(/^[A-Za-z0-9_-]{43}$/, 'expected 32 bytes in base64url'),
});
export type Ed25519Jwk = z.infer<typeof ed25519Jwk>;

/** The header of a PKCS #8 Ed25519 private key (RFC 8410, section 7), which its 32 bytes follow. */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');

/** A key that a signature is checked with. */
export interface VerifyingKey {
  /** The key's SHA-256 thumbprint (RFC 7638), in base64url. */
  readonly kid: string;
  readonly jwk: Ed25519Jwk;
  verifies(data: string, signature: Uint8Array): boolean;
}

export interface SigningKey extends VerifyingKey {
  /** The 64 bytes of an Ed25519 signature (RFC 8032). */
  sign(data: string): Buffer;
}

/** The key that 32 random bytes in base64url make, always the same one. Throws RangeError for anything else. */
export function signingKeyOf(seed: string): SigningKey {
  const bytes = Buffer.from(seed, 'base64url');
  if (bytes.length !== 32) throw new RangeError('an Ed25519 key is made of 32 bytes');
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, bytes]), format: 'der', type: 'pkcs8' });
  const publicKey = createPublicKey(key);
  const jwk = ed25519Jwk.parse(publicKey.export({ format: 'jwk' }));
  return { ...verifying(publicKey, jwk), sign: (data) => sign(null, Buffer.from(data, 'utf8'), key) };
}

/** The key of a JWK; `undefined` when its bytes are no point of the curve. */
export function verifyingKeyOf(jwk: Ed25519Jwk): VerifyingKey | undefined {
  try {
    return verifying(createPublicKey({ key: jwk, format: 'jwk' }), jwk);
  } catch {
    return undefined;
  }
}

function verifying(key: KeyObject, { kty, crv, x }: Ed25519Jwk): VerifyingKey {
  return {
    kid: createHash('sha256').update(`{"crv":"${crv}","kty":"${kty}","x":"${x}"}`, 'utf8').digest('base64url'),
    jwk: { kty, crv, x },
    verifies: (data, signature) => verify(null, Buffer.from(data, 'utf8'), key, signature),
  };
}

/**
 * The password with which a box logs in at broker and gateway (PROTOCOL.md, clause TOP-2). Derived, so that whoever
 * runs the broker, and is told it, does not learn the secret that keys are introduced with.
 */
export function loginOf(secret: string): string {
  return mac(secret, 'paybox/v1 login');
}

/** Brokers need not take client ids of more than 23 characters (MQTT 3.1.1, section 3.1.3.1). */
const CLIENT_ID_CHARS_MAX = 23;

/**
 * The client id of a box at a broker (PROTOCOL.md, clause TOP-6). Another connection under the same one ends the first
 * at most brokers: only who knows the secret can tell it from a session, which stands in every message.
 */
export function clientIdOf(
  { secret, terminalCode }: { secret: string; terminalCode: string },
  sessionId: string,
): string {
  const made = Buffer.from(mac(secret, 'paybox/v1 client', terminalCode, sessionId), 'base64url').toString('hex');
  return `${terminalCode}-${made}`.slice(0, CLIENT_ID_CHARS_MAX);
}

/** Whose key is introduced, and where. */
export interface Introduction {
  from: 'box' | 'gateway';
  terminalCode: string;
  sessionId: string;
  /** Only in an answer to a hello. */
  challenge?: string | undefined;
  kid: string;
}

/** Proves a key to whoever shares the secret, for one session (PROTOCOL.md, clause SIG-2). */
export function proofOf(secret: string, { from, terminalCode, sessionId, challenge = '', kid }: Introduction): string {
  return mac(secret, 'paybox/v1 key', from, terminalCode, sessionId, challenge, kid);
}

/** Whether the proof is the right one, in a time that does not tell where it is not. */
export function isProven(secret: string, introduction: Introduction, proof: string | undefined): boolean {
  return proof !== undefined && equalSecrets(proof, proofOf(secret, introduction));
}

/** Proves that a box is gone, as its last will says (PROTOCOL.md, clause PRE-1), to whoever shares the secret. */
export function goneProofOf(secret: string, terminalCode: string, sessionId: string): string {
  return mac(secret, 'paybox/v1 gone', terminalCode, sessionId);
}

/** HMAC-SHA256 in base64url; none of the parts may hold a line feed, which is between them. */
function mac(secret: string, ...parts: string[]): string {
  return createHmac('sha256', secret).update(parts.join('\n'), 'utf8').digest('base64url');
}
