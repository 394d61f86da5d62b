import { expect, it } from 'vitest';
import { DIALECT_CHECKS } from '../../src/bench/judges/dialect/checks/all.ts';
import { seen, stage, titles } from './dialect-firmware-fixture.ts';
import { dialectVerdicts } from './dialect-fixture.ts';

it('DIA-10 a box that was written from the facts about firmware holds what the service asks, and differs where it is known to', async () => {
  const results = await dialectVerdicts(await stage({}, seen), DIALECT_CHECKS, false);
  expect(titles(results, 'failed')).toEqual([]);
  expect(titles(results, 'missing')).toEqual([]);
  expect(titles(results, 'skipped')).toEqual([]);
  expect(titles(results, 'differs').sort()).toEqual([
    'DIA-1 asks again while nobody answers',
    "DIA-1 listens for the answer's topic in both spellings, in a clean session",
    'DIA-4 shows no static QR of another account than the one named',
    'DIA-5 shows no QR of another amount than the one named',
    'DIA-5 shows no QR to another account than its own',
    'DIA-6 after a payment of another amount the QR comes back',
    'DIA-6 says a payment once that it is told twice',
    'DIA-7 without a connection it shows no static QR, and a dynamic one stays',
    'DIA-8 a retained message changes nothing',
  ]);
}, 240_000);
