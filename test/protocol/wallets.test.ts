import { describe, expect, it } from 'vitest';
import { decodeVietQr } from '../../src/protocol/vietqr.ts';
import wallets from '../vectors/wallet-qr.json' with { type: 'json' };
import { field, payloadOf, sealed } from './payloads.ts';

const vector = (name: string) => wallets.find((it) => it.name === name)?.payload ?? '';
const refusal = (payload: string, ids?: string[]) => {
  const decoded = decodeVietQr(payload, ids);
  return decoded.ok ? 'taken' : `${decoded.tag}: ${decoded.reason}`;
};

/** A payload of tag 26 beside an account. */
const walletQr = (inWallet: string, { bin, account }: { bin: string; account: string }, labels = '') =>
  sealed(
    field('00', '01'),
    field('01', '12'),
    field('26', inWallet),
    field(
      '38',
      field('00', 'A000000727') + field('01', field('00', bin) + field('01', account)) + field('02', 'QRIBFTTA'),
    ),
    field('53', '704'),
    field('54', '50000'),
    field('58', 'VN'),
    labels,
  );
const MOMO = { bin: '971025', account: 'PMC0000000000000000' };
const ZALOPAY = { bin: '970454', account: '99ZP00000M00000000' };
const OF_MOMO = field('00', 'vn.momo');
const OF_ZALOPAY = field('00', 'vn.zalopay');

it.each([
  ['momo-person-2025', ['MOMOW2W00000000'], { bin: '971025', account: 'PSP0000000000000000' }],
  ['momo-person-bvbank', [], { bin: '970454', account: '99MM00000M00000000' }],
  ['momo-merchant-order', [], { ...MOMO, amount: 65_000, purpose: 'Thanh toan don hang 0000' }],
  ['zalopay-person', ['aA0aA0aA0aA0aA0'], ZALOPAY],
  ['zalopay-order', ['180005'], { bin: '970454', account: '99ZP00000O00000000', amount: 50_000 }],
])('QRP-8 takes the QR of a wallet as it is today: %s', (name, ids, value) => {
  const all = wallets.find((it) => it.name === name);
  const own = name === 'zalopay-order' ? [field18(all?.payload ?? '')] : ids;
  expect(decodeVietQr(all?.payload ?? '', own)).toMatchObject({ ok: true, value });
});

/** The app of a ZaloPay order: six digits that begin with 18. */
function field18(payload: string): string {
  return /010618(\d{4})/.exec(payload)?.[0].slice(4) ?? '';
}

it.each([
  ['momo-person-2025', [], /^62-05: .*walletIds of PSP0000000000000000$/],
  ['momo-person-2025', ['MOMOW2W00000001'], /^62-05: /],
  ['zalopay-person', [], /^26-01: .*walletIds of 99ZP00000M00000000$/],
  ['zalopay-order', ['180006'], /^26-01: .*walletIds/],
  ['momo-person-msb-20-chars', ['MOMOW2W00000000'], /^38-01-01: .*is not 1 to 19 letters or digits$/],
  ['vnpay-merchant', ['00000000000'], /^26: .*VNPAY-QR is not allowed/],
])(
  'QRP-8 THR-23 refuses by name what the owner has not named, VNPAY and 20 characters: %s with %o',
  (name, ids, reason) => {
    expect(refusal(vector(name), ids)).toMatch(reason);
  },
);

describe('QRP-8 THR-23 a tag 26 with another payee', () => {
  const token = field('01', 'aA0aA0aA0aA0aA0') + field('02', '002');
  const rows: [string, string, RegExp][] = [
    ['of no wallet that is known', walletQr(field('00', 'vn.viettel'), MOMO), /^26: .*another merchant account/],
    ['in capitals', walletQr(field('00', 'VN.MOMO'), MOMO), /^26: /],
    ['without a name', walletQr(field('01', '12345'), MOMO), /^26: /],
    ['of MoMo at a bank', walletQr(OF_MOMO, { bin: '970422', account: '0123456789' }), /^26: .*does not fit/],
    ['of MoMo beside an account of that form at a bank', walletQr(OF_MOMO, { ...MOMO, bin: '970422' }), /^26: /],
    ['of MoMo beside a person', walletQr(OF_MOMO, { ...MOMO, account: 'PSP0000000000000000' }), /^26: /],
    ['of MoMo beside ZaloPay', walletQr(OF_MOMO, ZALOPAY), /^26: /],
    ['of ZaloPay beside MoMo', walletQr(OF_ZALOPAY + token, MOMO), /^26: /],
    ['of ZaloPay without a payee', walletQr(OF_ZALOPAY, ZALOPAY), /^26-01: .*missing/],
    ['of ZaloPay with one field more', walletQr(OF_ZALOPAY + token + field('04', '1'), ZALOPAY), /^26-04: /],
    [
      'of ZaloPay of a person with an order',
      walletQr(OF_ZALOPAY + token + field('03', '0'.repeat(16)), ZALOPAY),
      /^26-03: /,
    ],
    ['of MoMo with a printed number', walletQr(OF_MOMO + field('02', '12345678'), MOMO), /^26-02: .*walletIds/],
    [
      'of MoMo with a wallet in 62-05',
      walletQr(OF_MOMO, MOMO, field('62', field('05', 'MOMOW2W12345678'))),
      /^62-05: /,
    ],
    ['of MoMo with a number in 62-05', walletQr(OF_MOMO, MOMO, field('62', field('05', '0901234567'))), /^62-05: /],
    ['of MoMo and a second one', walletQr(OF_MOMO, MOMO, field('27', OF_MOMO)), /^27: /],
  ];
  it.each(rows)('is refused: %s', (_what, payload, reason) => {
    expect(refusal(payload, ['aA0aA0aA0aA0aA0'])).toMatch(reason);
  });

  it('is taken where the owner has named it', () => {
    expect(refusal(walletQr(OF_MOMO + field('02', '12345678'), MOMO), ['12345678'])).toBe('taken');
    expect(refusal(walletQr(OF_MOMO, MOMO))).toBe('taken');
    expect(refusal(walletQr(OF_ZALOPAY + token, ZALOPAY), ['aA0aA0aA0aA0aA0'])).toBe('taken');
  });
});

it('QRP-8 an id that the owner has named counts for a MoMo account in 62-05 alone', () => {
  const id = 'MOMOW2W00000000';
  expect(refusal(payloadOf({ labels: field('62', field('05', id)) }), [id])).toMatch(/^62-05: .*another account/);
  const psp = { bin: field('00', '971025'), account: field('01', 'PSP0000000000000000') };
  expect(refusal(payloadOf({ ...psp, labels: field('62', field('05', id)) }), [id])).toBe('taken');
  expect(refusal(payloadOf({ ...psp, labels: field('62', field('02', id)) }), [id])).toMatch(/^62-02: /);
  expect(refusal(payloadOf({ ...psp, labels: field('62', field('05', '0901234567')) }), ['0901234567'])).toMatch(
    /^62-05: /,
  );
});

it.each([
  ['02', 'Visa'],
  ['05', 'Mastercard'],
  ['15', 'UnionPay'],
  ['13', 'JCB'],
])('QRP-7 names the card scheme of tag %s, %s', (tag, scheme) => {
  const payload = sealed(
    field('00', '01'),
    field('01', '12'),
    field(tag, '0'.repeat(31)),
    field('53', '704'),
    field('58', 'VN'),
  );
  expect(refusal(payload)).toBe(
    `${tag}: tag ${tag}: another merchant account of ${scheme} is not allowed, a wallet might pay that one`,
  );
});
