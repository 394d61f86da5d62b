import { QRPay } from 'vietnam-qr-pay';
import type { VietQr } from '../../src/protocol/vietqr.ts';
import { fc } from '../support/properties.ts';
import vectors from '../vectors/emv-qr.json' with { type: 'json' };

export { vectors };

/** One field with its true length. */
export function field(tag: string, value: string): string {
  return tag + String(value.length).padStart(2, '0') + value;
}

/** The fields with a CRC computed by an independent implementation. */
export function sealed(...fields: string[]): string {
  const covered = `${fields.join('')}6304`;
  return covered + QRPay.genCRCCode(covered);
}

/** The parts of a valid payload, to be replaced one by one. */
export const PARTS = {
  version: field('00', '01'),
  initiation: field('01', '12'),
  guid: field('00', 'A000000727'),
  bin: field('00', '970422'),
  account: field('01', '0123456789'),
  service: field('02', 'QRIBFTTA'),
  category: field('52', '5812'),
  currency: field('53', '704'),
  amount: field('54', '50000'),
  country: field('58', 'VN'),
  merchantName: field('59', 'NGUYEN VAN A'),
  merchantCity: field('60', 'HA NOI'),
  labels: field('62', field('08', 'DH001')),
};

/** A payload of the parts, some of them replaced; lengths and CRC are right. */
export function payloadOf(changed: Partial<typeof PARTS> = {}): string {
  const part = { ...PARTS, ...changed };
  const provider = part.guid + field('01', part.bin + part.account) + part.service;
  return sealed(
    part.version,
    part.initiation,
    field('38', provider),
    part.category,
    part.currency,
    part.amount,
    part.country,
    part.merchantName,
    part.merchantCity,
    part.labels,
  );
}

const LETTERS_AND_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

export const digits = (length: number) => characters('0123456789', length, length);

export const accounts = characters(LETTERS_AND_DIGITS, 1, 19);

/** Printable ASCII, also such text as looks like tags, lengths and CRCs. */
export const printable = (maxLength: number) =>
  fc.oneof(
    fc.string({ minLength: 1, maxLength, unit: 'grapheme-ascii' }),
    characters('0123456789AF', 1, maxLength),
    fc.constantFrom('6304', '63041234', '0802', '380', '***').filter((text) => text.length <= maxLength),
  );

/** Printable ASCII with too few digits for an account. */
export const unlikeAccounts = (maxLength: number) =>
  printable(maxLength).filter((text) => text.replaceAll(/\D/g, '').length <= 5);

/** Whatever the encoder takes. */
export const vietQrs: fc.Arbitrary<VietQr> = fc
  .record(
    {
      bin: digits(6),
      account: accounts,
      service: fc.constantFrom('account', 'card'),
      initiation: fc.constantFrom('static', 'dynamic'),
      amount: fc.option(fc.integer({ min: 1, max: 9_999_999_999_999 }), { nil: undefined }),
      categoryCode: digits(4),
      merchantName: printable(25),
      merchantCity: printable(15),
      bill: printable(25),
      reference: unlikeAccounts(25),
      terminal: printable(25),
      purpose: printable(25),
    },
    { requiredKeys: ['bin', 'account', 'service', 'initiation', 'amount'], noNullPrototype: true },
  )
  .filter((fields) => labelsLength(fields) <= 99);

/** How many characters tag 62 would have. */
function labelsLength(fields: Pick<Partial<VietQr>, 'bill' | 'reference' | 'terminal' | 'purpose'>): number {
  return [fields.bill, fields.reference, fields.terminal, fields.purpose]
    .map((label) => (label === undefined ? 0 : label.length + 4))
    .reduce((sum, length) => sum + length, 0);
}

export function characters(alphabet: string, minLength: number, maxLength: number): fc.Arbitrary<string> {
  return fc.string({ unit: fc.constantFrom(...alphabet), minLength, maxLength });
}
