import { createHmac, hkdfSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  agreedSecret,
  agreementKeyOf,
  boxProof,
  ENROLMENT_CODE_BYTES,
  enrolmentCodeOf,
  enrolmentRequest,
  enrolmentUrl,
  gatewayProof,
  isProof,
  readEnrolmentCode,
} from '../../src/protocol/enrolment.ts';
import { fc } from '../support/properties.ts';

const base64url = (hex: string) => Buffer.from(hex, 'hex').toString('base64url');

/** The keys and the shared bytes of RFC 7748, section 6.1. */
const RFC7748 = {
  alice: base64url('77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a'),
  alicePublic: base64url('8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a'),
  bob: base64url('5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb'),
  bobPublic: base64url('de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f'),
  shared: '4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742',
};
const BOX = { terminalCode: 'VVB000001', serialNumber: 'VVB900001' };
const AGREEMENT = { ...BOX, boxKey: RFC7748.alicePublic, gatewayKey: RFC7748.bobPublic };
const CODE = '7K2M-Q0XA-94TZ';
/** `boxProof`, `gatewayProof` and `agreedSecret` as an independent program makes them (`openssl dgst`, `openssl kdf`). */
const KNOWN = [
  'U1xzh8Gb3qgHHCDdaPQPjuvzYz8C4OxfkBWbob7XS3Y',
  'mrRKOJ0Qs53zZ3KUaSwHRcT-g0SU7G8bD7V5Orn4x3s',
  'MUkA4bWNcUL7xoQ82yiCL-ZJBehEOtDVL8clC1ITVk4',
];

describe('a one-time code', () => {
  it('ENR-1 has 60 bits: twelve letters of five, each of the alphabet as often', () => {
    expect(enrolmentCodeOf(Uint8Array.from({ length: 12 }, (_, i) => i))).toBe('0123-4567-89AB');
    expect(enrolmentCodeOf(Uint8Array.from({ length: 12 }, (_, i) => 255 - i))).toBe('ZYXW-VTSR-QPNM');
    const letters = Array.from({ length: 256 }, (_, byte) => enrolmentCodeOf(new Uint8Array(12).fill(byte))[0]);
    const counts = new Map<string | undefined, number>();
    for (const letter of letters) counts.set(letter, (counts.get(letter) ?? 0) + 1);
    expect([counts.size, ...new Set(counts.values())]).toEqual([32, 8]);
  });

  it.each([CODE, '7k2mq0xa94tz', ' 7K2M Q0XA 94TZ ', '7K2M-QOXA-94TZ', '7k2m-qoxa-94tz\n'])(
    'ENR-1 is read as a person types it: %j',
    (typed) => expect(readEnrolmentCode(typed)).toBe(CODE),
  );

  it.each([
    '',
    '7K2M-Q0XA-94T',
    '7K2M-Q0XA-94TZZ',
    '7K2M-Q0XA-94TU',
    '7K2M-Q0XA-94T!',
    '７K2M-Q0XA-94TZ',
    'é'.repeat(12),
  ])('ENR-1 is not read from what is none: %j', (typed) => expect(readEnrolmentCode(typed)).toBeUndefined());

  it('ENR-1 is itself when read, whatever was thrown', () => {
    const bytes = fc.uint8Array({ minLength: ENROLMENT_CODE_BYTES, maxLength: ENROLMENT_CODE_BYTES });
    fc.assert(
      fc.property(bytes, (random) => {
        const code = enrolmentCodeOf(random);
        expect(readEnrolmentCode(code)).toBe(code);
        expect(readEnrolmentCode(code.toLowerCase().replaceAll('-', ''))).toBe(code);
        expect(code).toMatch(/^([0-9A-HJKMNP-TV-Z]{4}-){2}[0-9A-HJKMNP-TV-Z]{4}$/);
      }),
    );
  });

  it('ENR-1 stands in the part of the address that a browser never sends', () => {
    const url = new URL(enrolmentUrl('https://gateway.example:8443', BOX.terminalCode, CODE));
    expect([url.pathname, url.search, url.hash]).toEqual(['/', '', `#enrol/VVB000001/${CODE}`]);
  });
});

describe('the keys', () => {
  it('ENR-5 agree as in RFC 7748', () => {
    const [alice, bob] = [agreementKeyOf(RFC7748.alice), agreementKeyOf(RFC7748.bob)];
    expect([alice.publicKey, bob.publicKey]).toEqual([RFC7748.alicePublic, RFC7748.bobPublic]);
    expect(alice.agree(bob.publicKey)?.toString('hex')).toBe(RFC7748.shared);
    expect(bob.agree(alice.publicKey)?.toString('hex')).toBe(RFC7748.shared);
  });

  it.each([0, 1])('ENR-5 agree on nothing with the point %i, which gives the same bytes to everybody', (point) => {
    const low = Buffer.alloc(32);
    low[0] = point;
    expect(agreementKeyOf(RFC7748.alice).agree(low.toString('base64url'))).toBeUndefined();
  });

  it.each(['', 'AAAA', 'A'.repeat(44)])('are made of 32 bytes and nothing else: %j', (seed) => {
    expect(() => agreementKeyOf(seed)).toThrow(RangeError);
  });
});

describe('the proofs and the secret', () => {
  const hmac = (text: string) => createHmac('sha256', CODE).update(text).digest('base64url');

  it('ENR-2 ENR-4 ENR-5 are those of the clauses, spelled out', () => {
    const keys = `${AGREEMENT.boxKey}\n${AGREEMENT.gatewayKey}`;
    expect(boxProof(CODE, AGREEMENT)).toBe(hmac(`paybox/v1 enrol box\nVVB000001\nVVB900001\n${AGREEMENT.boxKey}`));
    expect(gatewayProof(CODE, AGREEMENT)).toBe(hmac(`paybox/v1 enrol gateway\nVVB000001\nVVB900001\n${keys}`));
    const shared = Buffer.from(RFC7748.shared, 'hex');
    const info = `paybox/v1 secret\nVVB000001\nVVB900001\n${keys}`;
    const expected = Buffer.from(hkdfSync('sha256', shared, CODE, info, 32)).toString('base64url');
    expect(agreedSecret(shared, CODE, AGREEMENT)).toBe(expected);
    expect([boxProof(CODE, AGREEMENT), gatewayProof(CODE, AGREEMENT), expected]).toEqual(KNOWN);
  });

  it('ENR-2 ENR-4 ENR-5 are others for whatever is another', () => {
    const other = agreementKeyOf(Buffer.alloc(32, 7).toString('base64url')).publicKey;
    const shared = Buffer.from(RFC7748.shared, 'hex');
    const changes = [
      { terminalCode: 'VVB000002' },
      { serialNumber: 'VVB900002' },
      { boxKey: other },
      { gatewayKey: other },
    ].map((change) => ({ ...AGREEMENT, ...change }));
    const proofs = [AGREEMENT, ...changes].map((it) => gatewayProof(CODE, it));
    const secrets = [AGREEMENT, ...changes].map((it) => agreedSecret(shared, CODE, it));
    const others = [gatewayProof('', AGREEMENT), agreedSecret(shared, '', AGREEMENT), boxProof(CODE, AGREEMENT)];
    expect(new Set([...proofs, ...secrets, ...others, boxProof('', AGREEMENT)]).size).toBe(14);
    expect(isProof(proofs[0] ?? '', gatewayProof(CODE, AGREEMENT))).toBe(true);
    expect(isProof(proofs[1] ?? '', gatewayProof(CODE, AGREEMENT))).toBe(false);
  });

  it.each([
    ['a key of 31 bytes', { publicKey: 'A'.repeat(42) }],
    ['a key in other base64', { publicKey: `${'A'.repeat(42)}+` }],
    ['no box code', { terminalCode: 'VVB1' }],
    ['the code itself in place of a proof', { proof: CODE }],
  ])('ENR-2 a request with %s is none', (_what, change) => {
    const request = { ...BOX, publicKey: RFC7748.alicePublic, proof: boxProof(CODE, AGREEMENT) };
    expect(enrolmentRequest.safeParse(request).success).toBe(true);
    expect(enrolmentRequest.safeParse({ ...request, ...change }).success).toBe(false);
  });
});
