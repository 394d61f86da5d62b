import { expect, it } from 'vitest';
import { checkSum, equalSecrets } from '../../src/protocol/checksum.ts';

const FIELDS = { bankAccount: '0123456789', amount: '50000', bankCode: 'MB' };

it('SUM-1 is the MD5 of password, account, amount and bank code', () => {
  expect(checkSum('pw123', FIELDS)).toBe('9424a5f96092ad5e4b16d625ad094dc0');
});

it('SUM-1 covers every field in its order', () => {
  const sums = [
    checkSum('pw123', FIELDS),
    checkSum('pw124', FIELDS),
    checkSum('pw123', { ...FIELDS, bankAccount: '0123456788' }),
    checkSum('pw123', { ...FIELDS, amount: '50001' }),
    checkSum('pw123', { ...FIELDS, bankCode: 'mb' }),
    checkSum('pw123', { ...FIELDS, bankCode: FIELDS.amount, amount: FIELDS.bankCode }),
  ];
  expect(new Set(sums).size).toBe(sums.length);
});

it('SUM-1 takes the amount as sent and the password as UTF-8', () => {
  expect(checkSum('pw123', { ...FIELDS, amount: '050000' })).not.toBe(checkSum('pw123', FIELDS));
  // printf 'mật khẩu012345678950000MB' | md5sum
  expect(checkSum('mật khẩu', FIELDS)).toBe('a246d9ff05c1bbfe9fff243c48abd96b');
});

it('SUM-1 compares sums as sent: case and length count', () => {
  const sum = checkSum('pw123', FIELDS);
  expect(equalSecrets(sum, '9424a5f96092ad5e4b16d625ad094dc0')).toBe(true);
  expect(equalSecrets(sum, sum.toUpperCase())).toBe(false);
  expect(equalSecrets(sum, `${sum} `)).toBe(false);
  expect(equalSecrets(sum, '')).toBe(false);
});
