import { Banks } from 'vietnam-qr-pay';
import { expect, it } from 'vitest';
import { BANKS, findBank } from '../../src/protocol/banks.ts';

it('GEN-3 finds the published short names and BINs', () => {
  const published = {
    MB: '970422',
    VCB: '970436',
    BIDV: '970418',
    ICB: '970415',
    VBA: '970405',
    TCB: '970407',
    VPB: '970432',
    ACB: '970416',
    TPB: '970423',
    STB: '970403',
    ABB: '970425',
  };
  for (const [code, bin] of Object.entries(published)) {
    expect(findBank(code)).toMatchObject({ code, bin });
    expect(findBank(bin)).toBe(findBank(code));
  }
});

it('GEN-3 finds every bank by its short name and by its BIN', () => {
  for (const bank of BANKS) {
    expect(bank.bin).toMatch(/^\d{6}$/);
    expect(bank.name).not.toBe('');
    expect(findBank(bank.code)).toBe(bank);
    expect(findBank(bank.bin)).toBe(bank);
  }
  expect(new Set(BANKS.flatMap((bank) => [bank.code, bank.bin])).size).toBe(BANKS.length * 2);
});

it('GEN-3 knows every BIN of an independent table', () => {
  const known = new Set(BANKS.map((bank) => bank.bin));
  expect(Banks.filter((bank) => bank.bin !== '' && !known.has(bank.bin)).map((bank) => bank.name)).toEqual([]);
});

it('GEN-3 gives a short name the BIN that an independent table gives it', () => {
  const theirs = new Map<string, string>(Banks.map((bank) => [bank.code, bank.bin]));
  // Theirs is the stock ticker of Bản Việt; in the table of VietQR the same letters are Bảo Việt.
  const otherBank = ['BVB'];
  const differing = BANKS.filter(({ code, bin }) => (theirs.get(code) ?? bin) !== bin).map(({ code }) => code);
  expect(differing).toEqual(otherBank);
  expect(BANKS.filter(({ code }) => theirs.has(code)).length).toBeGreaterThan(25);
});

it('GEN-3 takes a six-digit BIN that no table has', () => {
  expect(findBank('970499')).toStrictEqual({ code: '970499', bin: '970499', name: '970499' });
});

it('GEN-3 knows no other bankCode', () => {
  const wrong = [
    '',
    'mb',
    'Mb',
    ' MB',
    'MB ',
    'XYZ',
    '97042',
    '9704222',
    '97042A',
    '٩٧٠٤٢٢',
    'constructor',
    '__proto__',
  ];
  expect(wrong.filter((code) => findBank(code) !== undefined)).toEqual([]);
});
