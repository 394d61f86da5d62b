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

/** Header of a PKCS #8 Ed25519 private key (RFC 8410, section 7); the 32 bytes of the key follow. */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');

/** Verifies signatures. */
export interface VerifyingKey {
  /** SHA-256 thumbprint of the key (RFC 7638), in base64url. */
  readonly kid: string;
  readonly jwk: Ed25519Jwk;
  verifies(data: string, signature: Uint8Array): boolean;
}

export interface SigningKey extends VerifyingKey {
  /** Returns the 64 bytes of an Ed25519 signature (RFC 8032). */
  sign(data: string): Buffer;
}

/**
 * Returns the key made from 32 random bytes in base64url. The same bytes give the same key. Throws RangeError for other
 * input.
 */
export function signingKeyOf(seed: string): SigningKey {
  const bytes = Buffer.from(seed, 'base64url');
  if (bytes.length !== 32) throw new RangeError('an Ed25519 key is made of 32 bytes');
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, bytes]), format: 'der', type: 'pkcs8' });
  const publicKey = createPublicKey(key);
  const jwk = ed25519Jwk.parse(publicKey.export({ format: 'jwk' }));
  return { ...verifying(publicKey, jwk), sign: (data) => sign(null, Buffer.from(data, 'utf8'), key) };
}

/** Returns the key of a JWK; `undefined` if its bytes are not a point of the curve. */
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
 * Returns the password of a box at broker and gateway (PROTOCOL.md, clause TOP-2). It is derived, so that the owner of
 * the broker does not learn the secret that introduces keys.
 */
export function loginOf(secret: string): string {
  return mac(secret, 'paybox/v1 login');
}

/** Brokers need not accept client ids of more than 23 characters (MQTT 3.1.1, section 3.1.3.1). */
const CLIENT_ID_CHARS_MAX = 23;

/**
 * Returns the client id of a box at a broker (PROTOCOL.md, clause TOP-6). At most brokers a second connection with the
 * same id ends the first, so the id is derived from the session with the secret: the session itself is in every
 * message.
 */
export function clientIdOf(
  { secret, terminalCode }: { secret: string; terminalCode: string },
  sessionId: string,
): string {
  const made = Buffer.from(mac(secret, 'paybox/v1 client', terminalCode, sessionId), 'base64url').toString('hex');
  return `${terminalCode}-${made}`.slice(0, CLIENT_ID_CHARS_MAX);
}

/** The sender of a key, and its session. */
export interface Introduction {
  from: 'box' | 'gateway';
  terminalCode: string;
  sessionId: string;
  /** Set only in the answer to a hello. */
  challenge?: string | undefined;
  kid: string;
}

/** Proves a key for one session to the other side, which has the same secret (PROTOCOL.md, clause SIG-2). */
export function proofOf(secret: string, { from, terminalCode, sessionId, challenge = '', kid }: Introduction): string {
  return mac(secret, 'paybox/v1 key', from, terminalCode, sessionId, challenge, kid);
}

/** Returns whether a proof is right. The time of the comparison does not depend on the place of a difference. */
export function isProven(secret: string, introduction: Introduction, proof: string | undefined): boolean {
  return proof !== undefined && equalSecrets(proof, proofOf(secret, introduction));
}

/** Returns the proof in a last will that a box has gone (PROTOCOL.md, clause PRE-1), for others who have the secret. */
export function goneProofOf(secret: string, terminalCode: string, sessionId: string): string {
  return mac(secret, 'paybox/v1 gone', terminalCode, sessionId);
}

/** Returns an HMAC-SHA256 in base64url. The parts are joined by line feeds, so they must not contain one. */
function mac(secret: string, ...parts: string[]): string {
  return createHmac('sha256', secret).update(parts.join('\n'), 'utf8').digest('base64url');
}
