import { createHmac, createPrivateKey, createPublicKey, diffieHellman, hkdfSync, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import { equalSecrets } from './checksum.ts';
import type { BoxName } from './fields.ts';
import { boxCode } from './fields.ts';

/** Validity of a one-time code (PROTOCOL.md, clause ENR-1). */
export const ENROLMENT_LIFETIME_MS = 600_000;
/** Interval at which a box asks for the result. */
export const ENROLMENT_POLL_MS = 2_000;
/** Random bytes of a code; five bits of each are used. */
export const ENROLMENT_CODE_BYTES = 12;

/** Crockford's base 32, without letters that look like digits. */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const GROUP = 4;

/** Header of a PKCS #8 X25519 private key (RFC 8410, section 7); the 32 bytes of the key follow. */
const PKCS8_HEAD = Buffer.from('302e020100300506032b656e04220420', 'hex');

const bytes32 = z.string().regex(/^[A-Za-z0-9_-]{43}$/, 'expected 32 bytes in base64url');

/** The request of a box. The code itself is never sent (PROTOCOL.md, clause ENR-2). */
export const enrolmentRequest = z.object({
  terminalCode: boxCode,
  serialNumber: boxCode,
  publicKey: bytes32.describe('X25519'),
  proof: bytes32,
});
export type EnrolmentRequest = z.infer<typeof enrolmentRequest>;

export const enrolmentCreated = z.object({ id: z.uuid() });

/** The answer to a box that asks for the state of its request (PROTOCOL.md, clause ENR-4). */
export const enrolmentState = z.discriminatedUnion('state', [
  z.object({ state: z.literal('pending') }),
  z.object({ state: z.literal('rejected') }),
  z.object({
    state: z.literal('accepted'),
    how: z.enum(['code', 'open']).describe('open: nobody was asked, and the code of the proof is empty'),
    publicKey: bytes32.describe('X25519'),
    proof: bytes32,
  }),
]);
export type EnrolmentState = z.infer<typeof enrolmentState>;

/** Paths of enrolment (PROTOCOL.md, clause ENR-2), relative to the gateway's origin. */
export const ENROLMENTS_PATH = '/box/v1/enrolments';

/** Makes a code from random bytes: 60 bits in three groups, as `7K2M-Q0XA-94TZ`. */
export function enrolmentCodeOf(random: Uint8Array): string {
  const letters = [...random.subarray(0, ENROLMENT_CODE_BYTES)].map((byte) => ALPHABET[byte % ALPHABET.length]);
  return grouped(letters.join(''));
}

/**
 * Reads a code as a person types it: small letters, missing or other dashes, O for 0, I and L for 1. Returns
 * `undefined` if it is not a code.
 */
export function readEnrolmentCode(text: string): string | undefined {
  const letters = text.toUpperCase().replaceAll(/[\s-]/g, '').replaceAll('O', '0').replaceAll(/[IL]/g, '1');
  const isCode = letters.length === ENROLMENT_CODE_BYTES && [...letters].every((it) => ALPHABET.includes(it));
  return isCode ? grouped(letters) : undefined;
}

function grouped(letters: string): string {
  return [0, GROUP, 2 * GROUP].map((at) => letters.slice(at, at + GROUP)).join('-');
}

/**
 * Returns the URL in the QR of an enrolling box: the console, with the code in the fragment, which browsers never send.
 */
export function enrolmentUrl(origin: string, terminalCode: string, code: string): string {
  return `${origin}/#enrol/${terminalCode}/${code}`;
}

/** The key of one side for an agreement. */
export interface AgreementKey {
  /** The 32 bytes of the X25519 public key, in base64url. */
  readonly publicKey: string;
  /**
   * Returns the bytes that both sides share, from the other side's public key; `undefined` for a key that is not
   * usable.
   */
  agree(publicKey: string): Buffer | undefined;
}

/**
 * Returns the key made from 32 random bytes in base64url. The same bytes give the same key. Throws RangeError for other
 * input.
 */
export function agreementKeyOf(seed: string): AgreementKey {
  const bytes = Buffer.from(seed, 'base64url');
  if (bytes.length !== 32) throw new RangeError('an X25519 key is made of 32 bytes');
  const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, bytes]), format: 'der', type: 'pkcs8' });
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' });
  return { publicKey: bytes32.parse(x), agree: (publicKey) => sharedOf(privateKey, publicKey) };
}

function sharedOf(privateKey: KeyObject, x: string): Buffer | undefined {
  try {
    const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x }, format: 'jwk' });
    return diffieHellman({ privateKey, publicKey });
  } catch {
    // A point of small order: the result would not depend on the private key (RFC 7748, section 6.1).
    return undefined;
  }
}

/** A box that enrols, and its public key. */
export interface EnrollingBox extends BoxName {
  boxKey: string;
}

/** The enrolling box and the public keys of both sides. */
export interface Agreement extends EnrollingBox {
  gatewayKey: string;
}

/** Proves that the sender of the box's key knows the code on its screen (PROTOCOL.md, clause ENR-2). */
export function boxProof(code: string, { terminalCode, serialNumber, boxKey }: EnrollingBox): string {
  return mac(code, 'paybox/v1 enrol box', terminalCode, serialNumber, boxKey);
}

/**
 * Proves that the sender of the gateway's key was given the code, and has received this key of the box (clause ENR-4).
 */
export function gatewayProof(code: string, { terminalCode, serialNumber, boxKey, gatewayKey }: Agreement): string {
  return mac(code, 'paybox/v1 enrol gateway', terminalCode, serialNumber, boxKey, gatewayKey);
}

/** Returns whether a proof is right. The time of the comparison does not depend on the place of a difference. */
export function isProof(proof: string, expected: string): boolean {
  return equalSecrets(proof, expected);
}

/**
 * Returns the secret of the box, 32 bytes in base64url, derived from what both sides share (PROTOCOL.md, clause ENR-5).
 */
export function agreedSecret(shared: Uint8Array, code: string, agreement: Agreement): string {
  const { terminalCode, serialNumber, boxKey, gatewayKey } = agreement;
  const info = ['paybox/v1 secret', terminalCode, serialNumber, boxKey, gatewayKey].join('\n');
  return Buffer.from(hkdfSync('sha256', shared, code, info, 32)).toString('base64url');
}

/** Returns an HMAC-SHA256 in base64url. The parts are joined by line feeds, so they must not contain one. */
function mac(code: string, ...parts: string[]): string {
  return createHmac('sha256', code).update(parts.join('\n'), 'utf8').digest('base64url');
}
