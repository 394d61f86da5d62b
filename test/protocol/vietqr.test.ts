import { expect, it } from 'vitest';
import { PayboxError } from '../../src/lib/errors.ts';
import { crc16 } from '../../src/protocol/crc16.ts';
import { decodeVietQr, encodeVietQr, type VietQr } from '../../src/protocol/vietqr.ts';
import { field, PARTS, payloadOf, sealed, vectors } from './payloads.ts';

const ORDER: VietQr = {
  bin: '970422',
  account: '0123456789',
  service: 'account',
  initiation: 'dynamic',
  amount: 50_000,
  purpose: 'DH001',
};

function refusal(payload: string): { tag: string; reason: string } {
  const decoded = decodeVietQr(payload);
  if (decoded.ok) throw new Error(`accepted: ${payload}`);
  expect(decoded.reason).toContain(decoded.tag);
  expect(decoded.reason).not.toContain('\n');
  return { tag: decoded.tag, reason: decoded.reason };
}

function encodeError(fields: VietQr): PayboxError {
  try {
    encodeVietQr(fields);
  } catch (error) {
    if (error instanceof PayboxError) return error;
    throw error;
  }
  throw new Error('encoded');
}

it.each(vectors.valid)('QRP-2 QRP-3 decodes and encodes the public payload: $name', (vector) => {
  const decoded = decodeVietQr(vector.payload);
  if (!decoded.ok) throw new Error(decoded.reason);
  expect(decoded.value).toMatchObject({ bin: vector.bin, account: vector.account });
  expect(decoded.value.amount).toBe(vector.amount === undefined ? undefined : Number(vector.amount));
  expect(decoded.value.bill).toBe(vector.bill);
  expect(decoded.value.purpose).toBe(vector.purpose);
  expect(decoded.value.service).toBe(vector.service === 'QRIBFTTC' ? 'card' : 'account');
  expect(encodeVietQr(decoded.value)).toBe(vector.payload);
});

it.each(vectors.invalid)('QRP-4 refuses the public payload with $name', (vector) => {
  expect(refusal(vector.payload).tag).toBe('62');
});

it('QRP-1 QRP-2 writes the tags in order, byte for byte', () => {
  const all = { ...ORDER, bill: 'B', reference: 'R', terminal: 'T', purpose: 'P' };
  const named = { ...all, categoryCode: '5812', merchantName: 'NGUYEN VAN A', merchantCity: 'HA NOI' };
  const covered =
    '000201' +
    '010212' +
    '38540010A000000727012400069704220110012345678' +
    '90208QRIBFTTA' +
    '52045812' +
    '5303704' +
    '540550000' +
    '5802VN' +
    '5912NGUYEN VAN A' +
    '6006HA NOI' +
    '62200101B0501R0701T0801P' +
    '6304';
  expect(encodeVietQr(named)).toBe(covered + crc16(covered));
});

it('QRP-2 leaves absent fields out of the payload and of the decoded value', () => {
  const { purpose: _, ...bare } = { ...ORDER, initiation: 'static' as const, amount: undefined };
  const payload = encodeVietQr(bare);
  expect(payload).toMatch(/^00020101021138.*53037045802VN6304....$/);
  const decoded = decodeVietQr(payload);
  expect(decoded).toStrictEqual({ ok: true, value: bare });
});

it.each([25, 26, 95])('QRP-2 QRP-6 reads a purpose of %i characters, and writes none of more than 25', (length) => {
  const purpose = 'P'.repeat(length);
  const payload = payloadOf({ labels: field('62', field('08', purpose)) });
  expect(decodeVietQr(payload)).toMatchObject({ ok: true, value: { purpose } });
  const write = () => encodeVietQr({ ...ORDER, purpose });
  if (length <= 25) expect(write()).toContain(purpose);
  else expect(write).toThrow('at most 25');
});

it('QRP-2 reads the tags in any order between 00 and 63', () => {
  const provider = field('38', PARTS.guid + field('01', PARTS.account + PARTS.bin) + PARTS.service);
  const payload = sealed(
    PARTS.version,
    PARTS.labels,
    PARTS.country,
    PARTS.amount,
    provider,
    PARTS.currency,
    PARTS.initiation,
  );
  expect(decodeVietQr(payload)).toStrictEqual({ ok: true, value: ORDER });
});

it.each([
  ['static', '11', PARTS.amount],
  ['static', '11', ''],
  ['dynamic', '12', PARTS.amount],
  ['dynamic', '12', ''],
])('QRP-2 accepts point of initiation %s (%s) with the amount field "%s"', (initiation, code, amount) => {
  const decoded = decodeVietQr(payloadOf({ initiation: field('01', code), amount }));
  expect(decoded).toMatchObject({ ok: true, value: { initiation, amount: amount === '' ? undefined : 50_000 } });
});

it.each<[string, Partial<typeof PARTS>, string]>([
  ['another version', { version: field('00', '02') }, '00'],
  ['no point of initiation', { initiation: '' }, '01'],
  ['point of initiation 13', { initiation: field('01', '13') }, '01'],
  ['another provider', { guid: field('00', 'A000000775') }, '38-00'],
  ['a provider in lower case', { guid: field('00', 'a000000727') }, '38-00'],
  ['no provider', { guid: '' }, '38-00'],
  ['no BIN', { bin: '' }, '38-01-00'],
  ['a BIN of five digits', { bin: field('00', '97042') }, '38-01-00'],
  ['a BIN with a letter', { bin: field('00', '97042A') }, '38-01-00'],
  ['no account', { account: '' }, '38-01-01'],
  ['an account of 20 characters', { account: field('01', '01234567890123456789') }, '38-01-01'],
  ['an account with a space', { account: field('01', '0123 456') }, '38-01-01'],
  ['an account with an underscore', { account: field('01', '0123_456') }, '38-01-01'],
  ['an account with a hyphen', { account: field('01', '0123-456') }, '38-01-01'],
  ['another tag beside the account', { account: PARTS.account + field('02', '1') }, '38-01-02'],
  ['no service', { service: '' }, '38-02'],
  ['an unknown service', { service: field('02', 'QRPUSH') }, '38-02'],
  ['another tag beside the service', { service: PARTS.service + field('03', '1') }, '38-03'],
  ['a category of three digits', { category: field('52', '581') }, '52'],
  ['another currency', { currency: field('53', '840') }, '53'],
  ['no currency', { currency: '' }, '53'],
  ['an amount of zero', { amount: field('54', '0') }, '54'],
  ['an amount with a leading zero', { amount: field('54', '050000') }, '54'],
  ['an amount with a fraction', { amount: field('54', '50000.00') }, '54'],
  ['a negative amount', { amount: field('54', '-5') }, '54'],
  ['an amount in scientific notation', { amount: field('54', '5e4') }, '54'],
  ['an amount with a thousands separator', { amount: field('54', '50,000') }, '54'],
  ['an amount of 14 digits', { amount: field('54', '10000000000000') }, '54'],
  ['another country', { country: field('58', 'LA') }, '58'],
  ['no country', { country: '' }, '58'],
  ['a merchant name of 26 characters', { merchantName: field('59', 'N'.repeat(26)) }, '59'],
  ['a city of 16 characters', { merchantCity: field('60', 'C'.repeat(16)) }, '60'],
  ['a bill of 26 characters', { labels: field('62', field('01', 'B'.repeat(26))) }, '62-01'],
  ['a reference of 26 characters', { labels: field('62', field('05', 'R'.repeat(26))) }, '62-05'],
  ['a terminal of 26 characters', { labels: field('62', field('07', 'T'.repeat(26))) }, '62-07'],
  ['an empty purpose', { labels: field('62', '0800') }, '62-08'],
  ['a purpose longer than its template', { labels: field('62', '0809DH001') }, '62-08'],
  ['a purpose shorter than its template', { labels: field('62', '0803DH001') }, '62-08'],
  ['empty labels', { labels: '6200' }, '62'],
  ['a doubled purpose', { labels: field('62', field('08', 'A') + field('08', 'A')) }, '62-08'],
  ['a doubled account', { account: PARTS.account + PARTS.account }, '38-01-01'],
  ['a doubled provider', { guid: PARTS.guid + PARTS.guid }, '38-00'],
  ['a doubled amount', { amount: PARTS.amount + field('54', '1') }, '54'],
  ['a doubled version', { initiation: PARTS.initiation + PARTS.version }, '00'],
  ['labels that are no template', { labels: field('62', 'DH001') }, '62'],
  ['a length that is not a number', { country: '58+2VN' }, '54'],
  ['something before 00', { version: PARTS.initiation, initiation: PARTS.version }, '00'],
])('QRP-2 QRP-4 refuses %s', (_, changed, tag) => {
  expect(refusal(payloadOf(changed)).tag).toBe(tag);
});

it('QRP-2 accepts every field at its longest', () => {
  const labels = field('62', field('05', 'R'.repeat(25)) + field('07', 'T'.repeat(25)) + field('08', 'P'.repeat(25)));
  const changed = { merchantName: field('59', 'N'.repeat(25)), merchantCity: field('60', 'C'.repeat(15)), labels };
  const account = field('01', 'Abcdefghij012345678');
  const decoded = decodeVietQr(payloadOf({ ...changed, account, amount: field('54', '9999999999999') }));
  expect(decoded).toMatchObject({ ok: true, value: { account: 'Abcdefghij012345678', amount: 9_999_999_999_999 } });
});

it.each(Array.from({ length: 50 }, (_, index) => String(index + 2).padStart(2, '0')).filter((tag) => tag !== '38'))(
  'QRP-7 refuses another merchant account in tag %s, before and after the own one',
  (tag) => {
    const other = field(tag, field('00', 'A000000775') + field('01', '0312345678'));
    expect(refusal(payloadOf({ initiation: PARTS.initiation + other })).tag).toBe(tag);
    expect(refusal(payloadOf({ labels: PARTS.labels + other })).tag).toBe(tag);
  },
);

it.each(['55', '56', '57'])('QRP-7 refuses a tip or fee in tag %s', (tag) => {
  expect(refusal(payloadOf({ amount: PARTS.amount + field(tag, '01') })).tag).toBe(tag);
});

it.each([
  ['a postal code', { merchantCity: PARTS.merchantCity + field('61', '100000') }],
  ['a language', { labels: PARTS.labels + field('64', '00VI') }],
  ['a reserved tag', { labels: PARTS.labels + field('65', 'X') + field('79', 'X') }],
  ['a tag of a wallet', { labels: PARTS.labels + field('80', '046') + field('99', 'X') }],
  ['a further label', { labels: field('62', field('03', 'STORE') + field('08', 'DH001')) }],
])('QRP-7 skips %s', (_, changed) => {
  expect(decodeVietQr(payloadOf(changed))).toStrictEqual(decodeVietQr(payloadOf()));
});

/** As published by wallets and banks: 62-05 and 80, or 83, say the account of 38 again. */
const MOMO = field('01', '99MM24011M34875080');
const TECHCOMBANK = field('01', 'MS00T06433099944571');

it.each([
  ['of MoMo', { account: MOMO, labels: field('62', field('05', 'MOMOW2W34875080')) + field('80', '046') }],
  ['of a bank', { account: TECHCOMBANK, labels: PARTS.labels + field('83', 'T06433099944571') }],
  ['with its own account in a tag', { labels: PARTS.labels + field('99', '0123456789') }],
  ['with a reference that is no account', { labels: field('62', field('05', 'DH00001')) }],
])('QRP-7 takes a public code %s', (_, changed) => {
  expect(decodeVietQr(payloadOf(changed))).toMatchObject({ ok: true });
});

it.each([
  ['62-05', 'a wallet', { labels: field('62', field('05', 'MOMOW2W34875080')) }],
  ['62-05', 'another wallet', { account: MOMO, labels: field('62', field('05', 'MOMOW2W34875081')) }],
  ['62-05', 'a wallet with the end of an account', { labels: field('62', field('05', 'MOMOW2W456789')) }],
  ['62-05', 'an account', { labels: field('62', field('05', '99MM24011M34875080')) }],
  ['62-05', 'a telephone number', { labels: field('62', field('05', '+84 90 123 45 67')) }],
  ['62-02', 'a telephone number', { labels: field('62', field('02', '0901234567')) }],
  ['62-50', 'a template', { labels: field('62', field('50', field('00', 'vn.momo') + field('01', 'ABC'))) }],
  ['64', 'an account', { labels: PARTS.labels + field('64', '0002VI01100312345678') }],
  ['65', 'an account', { labels: PARTS.labels + field('65', '0312345678') }],
  ['80', 'a template', { labels: PARTS.labels + field('80', '0010vn.zalopay0105ABCDE') }],
  ['62-05', 'an alias of a wallet', { labels: field('62', field('05', 'momow2wALIAS')) }],
  ['80', 'an alias', { labels: PARTS.labels + field('80', '@OTHER.MOMO') }],
  ['80', 'a telephone number', { labels: PARTS.labels + field('80', '0312345678') }],
  ['83', 'the end of an account', { labels: PARTS.labels + field('83', '56789012') }],
  ['99', 'a template with an alias', { labels: PARTS.labels + field('99', '0003MOM0110NGUYENVANB') }],
])('QRP-7 refuses in tag %s %s that a wallet could pay instead', (tag, _, changed) => {
  expect(refusal(payloadOf(changed))).toMatchObject({ tag, reason: expect.stringContaining('another account') });
});

it('QRP-7 refuses more than a postal code in tag 61', () => {
  expect(refusal(payloadOf({ merchantCity: PARTS.merchantCity + field('61', '0010A000000727') })).tag).toBe('61');
});

it('QRP-7 refuses a skipped tag that is empty or has a wrong length', () => {
  expect(refusal(payloadOf({ labels: `${PARTS.labels}8000` })).tag).toBe('80');
  expect(refusal(payloadOf({ labels: `${PARTS.labels}80990` })).tag).toBe('80');
});

it('QRP-3 refuses a wrong, a lower-case and a missing CRC', () => {
  const payload = payloadOf();
  const withLetters = [1, 2, 3, 4, 5, 6]
    .map((amount) => payloadOf({ amount: field('54', String(amount)) }))
    .find((text) => /[A-F]/.test(text.slice(-4)));
  if (withLetters === undefined) throw new Error('no CRC with a letter');
  expect(refusal(withLetters.slice(0, -4) + withLetters.slice(-4).toLowerCase())).toMatchObject({
    tag: '63',
    reason: expect.stringContaining('upper-case'),
  });
  expect(refusal(`${payload.slice(0, -4)}0000`)).toMatchObject({ tag: '63', reason: expect.stringContaining('0000') });
  expect(refusal(payload.slice(0, -8)).tag).toBe('63');
  expect(refusal(sealed(payload.slice(0, -8), '6304ABCD')).tag).toBe('63');
});

it('QRP-4 refuses anything after the CRC', () => {
  const payload = payloadOf();
  for (const tail of [' ', '\n', '0', field('64', 'X'), payload]) {
    expect(refusal(payload + tail).tag).toMatch(/^(63|00)$/);
  }
  expect(refusal(payload + field('64', 'X')).reason).toBe('tag 63: tag 64 stands after it');
});

it('QRP-1 refuses other than printable ASCII, by its tag', () => {
  for (const odd of ['é', '\t', '\u0000', '\u007f', '\ud800', 'Đ']) {
    expect(refusal(payloadOf({ merchantName: field('59', `A${odd}`) }))).toMatchObject({
      tag: '59',
      reason: expect.stringContaining('character 2'),
    });
  }
});

it('QRP-1 refuses more than 512 characters and takes as many', () => {
  const wallets = Array.from({ length: 35 }, (_, index) => field(`${65 + index}`, 'xxxxx')).join('');
  const labels = (purpose: string) => field('62', field('08', 'x'.repeat(25)) + purpose) + wallets;
  const base = payloadOf({ labels: labels('') });
  const fill = (length: number) => payloadOf({ labels: labels(field('03', 'x'.repeat(length - base.length - 4))) });
  expect(fill(512)).toHaveLength(512);
  expect(decodeVietQr(fill(512)).ok).toBe(true);
  expect(refusal(fill(513)).reason).toContain('513');
});

it.each<[string, Partial<VietQr>, string]>([
  ['a BIN of five digits', { bin: '97042' }, '38-01-00'],
  ['an empty account', { account: '' }, '38-01-01'],
  ['an account of 20 characters', { account: '0'.repeat(20) }, '38-01-01'],
  ['an account of 100 characters', { account: '0'.repeat(100) }, '38-01-01'],
  ['an accent in the account', { account: '01234é' }, '38-01-01'],
  ['an amount of zero', { amount: 0 }, '54'],
  ['a negative amount', { amount: -5 }, '54'],
  ['a fraction', { amount: 0.5 }, '54'],
  ['an amount that is no number', { amount: Number.NaN }, '54'],
  ['an infinite amount', { amount: Number.POSITIVE_INFINITY }, '54'],
  ['an amount of 14 digits', { amount: 10_000_000_000_000 }, '54'],
  ['an amount beyond all digits', { amount: 1e21 }, '54'],
  ['a category of five digits', { categoryCode: '58120' }, '52'],
  ['an empty merchant name', { merchantName: '' }, '59'],
  ['a merchant name of 26 characters', { merchantName: 'N'.repeat(26) }, '59'],
  ['an accent in the merchant name', { merchantName: 'NGUYỄN' }, '59'],
  ['a city of 16 characters', { merchantCity: 'C'.repeat(16) }, '60'],
  ['an empty purpose', { purpose: '' }, '62-08'],
  ['a purpose of 26 characters', { purpose: 'P'.repeat(26) }, '62-08'],
  ['a purpose of 100 characters', { purpose: 'P'.repeat(100) }, '62-08'],
  ['an accent in the purpose', { purpose: 'thanh toán' }, '62-08'],
  ['a line break in the bill', { bill: 'A\nB' }, '62-01'],
])('QRP-6 the encoder refuses %s', (_, changed, tag) => {
  const error = encodeError({ ...ORDER, ...changed });
  expect(error).toMatchObject({ code: 'QR_INVALID', severity: 'fatal' });
  expect(error.message).toContain(`tag ${tag}:`);
  expect(error.fix).toContain(tag);
});

it('QRP-6 the encoder refuses labels that do not fit into tag 62 together', () => {
  const full = 'X'.repeat(25);
  const error = encodeError({ ...ORDER, bill: full, reference: full, terminal: full, purpose: full });
  expect(error.message).toContain('tag 62:');
});
