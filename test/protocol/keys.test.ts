import { calculateJwkThumbprint } from 'jose';
import { describe, expect, it } from 'vitest';
import { isProven, loginOf, proofOf, signingKeyOf, verifyingKeyOf } from '../../src/protocol/keys.ts';

const hex = (text: string) => Buffer.from(text, 'hex');
const INTRODUCTION = {
  from: 'box',
  terminalCode: 'VVB000001',
  sessionId: '3b241101-e2bb-4255-8caf-4136c566a962',
  challenge: '9f2c6b1e-52a1-4c0e-8f3a-0d6f7c1f2a3b',
  kid: 'kid',
} as const;

describe('a signing key', () => {
  // RFC 8032, section 7.1, tests 1 and 2.
  it.each([
    [
      '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
      'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
      '',
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
    ],
    [
      '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
      '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
      'r',
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
    ],
  ])('SIG-1 signs as RFC 8032 does: %s', (seed, publicKey, data, signature) => {
    const key = signingKeyOf(hex(seed).toString('base64url'));
    expect(Buffer.from(key.jwk.x, 'base64url').toString('hex')).toBe(publicKey);
    expect(key.sign(data).toString('hex')).toBe(signature);
    expect(verifyingKeyOf(key.jwk)?.verifies(data, hex(signature))).toBe(true);
    expect(verifyingKeyOf(key.jwk)?.verifies(`${data} `, hex(signature))).toBe(false);
  });

  it('SIG-1 is named by its thumbprint (RFC 7638)', async () => {
    const { jwk, kid } = signingKeyOf(Buffer.alloc(32, 7).toString('base64url'));
    expect(kid).toBe(await calculateJwkThumbprint(jwk));
  });

  it.each(['', 'AAAA', Buffer.alloc(33).toString('base64url')])('is not made of "%s"', (seed) => {
    expect(() => signingKeyOf(seed)).toThrow(RangeError);
  });
});

describe('a proof', () => {
  it('SIG-2 is that of one secret, one side, one box, one session, one challenge and one key', () => {
    const proof = proofOf('sample-secret', INTRODUCTION);
    expect(isProven('sample-secret', INTRODUCTION, proof)).toBe(true);
    expect(isProven('sample-secret', INTRODUCTION, undefined)).toBe(false);
    expect(isProven('another-secret', INTRODUCTION, proof)).toBe(false);
    const others = {
      ...INTRODUCTION,
      from: 'gateway',
      terminalCode: 'VVB000002',
      sessionId: 'x',
      challenge: '',
      kid: 'l',
    };
    for (const [name, value] of Object.entries(others).filter(([, value]) => typeof value === 'string')) {
      const changed = { ...INTRODUCTION, [name]: value };
      const isSame = JSON.stringify(changed) === JSON.stringify(INTRODUCTION);
      expect(isProven('sample-secret', changed, proof), name).toBe(isSame);
    }
  });

  it('TOP-2 is no login, and neither tells the secret', () => {
    const [login, other] = [loginOf('sample-secret'), loginOf('sample-secre')];
    expect(login).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(login).not.toBe(other);
    expect(login).not.toContain('sample');
  });
});
