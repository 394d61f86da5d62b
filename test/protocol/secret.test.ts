import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { isSampleSecret, isStrongSecret } from '../../src/protocol/secret.ts';

describe('a secret that is written into a file', () => {
  it.each([
    ['32 hexadecimal digits', () => randomBytes(16).toString('hex')],
    ['16 bytes in base64', () => randomBytes(16).toString('base64')],
    ['16 bytes in base64url', () => randomBytes(16).toString('base64url')],
    ['24 bytes in base64', () => randomBytes(24).toString('base64')],
    ['32 bytes in base64url, as provision and enrolment make it', () => randomBytes(32).toString('base64url')],
    ['twelve words', () => 'correct horse battery staple under seven quiet green rivers of paper'],
  ])('TOP-2 may be %s', (_what, make) => {
    // One in 50,000 of the shortest has letters of one case only.
    expect(Array.from({ length: 5 }, make).filter(isStrongSecret).length).toBeGreaterThanOrEqual(4);
  });

  it.each([
    ['a password', 'hunter2-hunter2'],
    ['four words', 'correct-horse-battery-staple'],
    ['15 bytes in hexadecimal digits', '0123456789abcdef0123456789abcd'],
    ['one digit less of base64', 'Zm9vYmFyYmF6cXV4cXV1e'],
    ['one character again and again', 'a'.repeat(100)],
    ['a short pattern again and again', 'aB1'.repeat(40)],
    ['words written as one', 'Congtytnhhmotthanhvienthuongmai1'],
    ['a number', '12345678901234567890'],
    ['nothing', ''],
  ])('TOP-2 is refused when it is %s', (_what, secret) => {
    expect(isStrongSecret(secret)).toBe(false);
  });

  it('is known as a sample by its first word', () => {
    expect(['Sample-box-secret-known-to-all', 'sample-x', 'x-sample'].map(isSampleSecret)).toEqual([true, true, false]);
  });
});
