import { expect, it } from 'vitest';
import { BOX_REFUSALS, CODES } from '../../src/protocol/codes.ts';
import { SEAL_REFUSALS } from '../../src/protocol/seal.ts';
import { generatedFile, readProtocol } from './document.ts';

/** Upper-case words of PROTOCOL.md that are values of other fields, and methods of HTTP. */
const OTHER_VALUES: readonly string[] = ['QRIBFTTA', 'QRIBFTTC', 'VVB', 'VQR', 'PB', 'VN', 'GET', 'DELETE'];

const PUBLIC_CODE = /^(E\d{2}|\d{3})$/;

/** Codes of the public service that paybox does not answer a partner, or not by a clause. */
const IN_NO_CLAUSE = ['E67'];

const HEAD = `# Codes

What \`message\` says in an answer \`{"status":"FAILED","message":"<code>"}\` ([PROTOCOL.md](PROTOCOL.md), clause ERR-1). This file is generated
from \`codes.ts\`:

    UPDATE_CLAUSES=1 npm test -- test/protocol/codes.test.ts
`;

it('ERR-6 CODES.md lists every code with its meaning (UPDATE_CLAUSES=1 writes it)', () => {
  const rows = Object.entries(CODES).map(([code, meaning]) => `| \`${code}\` | ${meaning} |`);
  const expected = [HEAD, '| code | meaning |', '| --- | --- |', ...rows.sort(), ''].join('\n');
  expect(generatedFile('codes', expected)).toBe(expected);
});

it('ERR-6 every code that PROTOCOL.md names exists', () => {
  const document = readProtocol();
  const publicCodes = [...document.matchAll(/\bE\d{2}\b|`0\d\d`/g)].map(([code]) => code.replaceAll('`', ''));
  const ownCodes = [...document.matchAll(/`([A-Z]+(?:_[A-Z]+)*)`/g)].map((match) => match[1] ?? '');
  const named = [...publicCodes, ...ownCodes].filter((code) => ![...OTHER_VALUES, ...SEAL_REFUSALS].includes(code));
  expect(named.length).toBeGreaterThan(60);
  expect(named.filter((code) => !Object.hasOwn(CODES, code))).toEqual([]);
});

it('ERR-6 PROTOCOL.md says when each code is answered', () => {
  const document = readProtocol();
  const unnamed = Object.keys(CODES).filter((code) => !new RegExp(`\\b${code}\\b`).test(document));
  expect(unnamed).toEqual(IN_NO_CLAUSE);
});

it('ERR-6 a meaning is one plain line of its own', () => {
  const meanings = Object.values(CODES);
  for (const meaning of meanings) expect(meaning).toMatch(/^[^\n|.]+$/);
});

it('ERR-1 codes are those of the service or upper-case names', () => {
  expect(Object.keys(CODES).filter((code) => !PUBLIC_CODE.test(code) && !/^[A-Z]+(_[A-Z]+)*$/.test(code))).toEqual([]);
});

it('SND-6 AGT-1 AGT-2 a box can refuse with each code that the clauses name', () => {
  for (const code of [
    'QR_INVALID',
    'QR_MISMATCH',
    'QR_TOO_DENSE',
    'STORAGE_FAULT',
    'DISPLAY_FAULT',
    'WITHDRAWN',
  ] as const) {
    expect(BOX_REFUSALS).toContain(code);
  }
});
