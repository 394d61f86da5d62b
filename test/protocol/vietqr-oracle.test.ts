import { QRPay, VietQRService } from 'vietnam-qr-pay';
import { expect, it } from 'vitest';
import { decodeVietQr, encodeVietQr } from '../../src/protocol/vietqr.ts';
import { fc } from '../support/properties.ts';
import { accounts, characters, digits, printable, unlikeAccounts, vietQrs } from './payloads.ts';

it('QRP-2 QRP-3 an independent parser reads what the encoder writes', () => {
  fc.assert(
    fc.property(vietQrs, (fields) => {
      const read = new QRPay(encodeVietQr(fields));
      expect(read.isValid).toBe(true);
      expect({
        version: read.version,
        initiation: read.initMethod,
        provider: read.provider.guid,
        service: read.provider.service,
        bin: read.consumer.bankBin,
        account: read.consumer.bankNumber,
        category: read.category,
        currency: read.currency,
        amount: read.amount,
        nation: read.nation,
        name: read.merchant.name,
        city: read.city,
        bill: read.additionalData.billNumber,
        reference: read.additionalData.reference,
        terminal: read.additionalData.terminal,
        purpose: read.additionalData.purpose,
      }).toStrictEqual({
        version: '01',
        initiation: fields.initiation === 'static' ? '11' : '12',
        provider: 'A000000727',
        service: fields.service === 'card' ? VietQRService.BY_CARD_NUMBER : VietQRService.BY_ACCOUNT_NUMBER,
        bin: fields.bin,
        account: fields.account,
        category: fields.categoryCode,
        currency: '704',
        amount: fields.amount === undefined ? undefined : String(fields.amount),
        nation: 'VN',
        name: fields.merchantName,
        city: fields.merchantCity,
        bill: fields.bill,
        reference: fields.reference,
        terminal: fields.terminal,
        purpose: fields.purpose,
      });
    }),
    { numRuns: 3000 },
  );
});

/** What the other library is asked to build: mostly right, with each field wrong now and then. It checks nothing. */
const requests = fc.record(
  {
    bin: mostly(digits(6), fc.constantFrom('97042', '97042A', '9704220')),
    account: mostly(accounts, fc.constantFrom('0123 456', 'a-b', '0'.repeat(20), 'é1')),
    service: mostly(fc.constantFrom('QRIBFTTA', 'QRIBFTTC'), fc.constantFrom('QRPUSH', 'QRIBFTTB')),
    initiation: mostly(fc.constantFrom('11', '12'), fc.constantFrom('10', '1', '21')),
    category: mostly(digits(4), characters('12a', 1, 6)),
    currency: mostly(fc.constant('704'), fc.constantFrom('840', 'VND')),
    amount: mostly(
      fc.integer({ min: 1, max: 9_999_999_999_999 }).map(String),
      fc.constantFrom('-5', '0', '007', '1.5', '1e3', '10000000000000', '50,000'),
    ),
    tip: fc.constantFrom('01', '02'),
    nation: mostly(fc.constant('VN'), fc.constantFrom('LA', 'V')),
    name: mostly(printable(25), printable(40)),
    city: mostly(printable(15), printable(25)),
    postalCode: digits(6),
    bill: mostly(printable(12), printable(40)),
    store: printable(12),
    reference: mostly(unlikeAccounts(12), printable(40)),
    terminal: mostly(printable(12), printable(40)),
    purpose: mostly(printable(12), fc.oneof(printable(120), fc.constantFrom('thanh toán', ''))),
    unreserved: mostly(printable(5), digits(10)),
  },
  { requiredKeys: ['bin', 'account', 'service', 'initiation', 'nation', 'currency'] },
);

type Request = typeof requests extends fc.Arbitrary<infer T> ? T : never;

function mostly<T>(right: fc.Arbitrary<T>, wrong: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc.oneof({ weight: 24, arbitrary: right }, { weight: 1, arbitrary: wrong });
}

function builtElsewhere(request: Request): string {
  const qr = QRPay.initVietQR({ bankBin: request.bin, bankNumber: request.account, initMethod: request.initiation });
  Object.assign(qr, {
    category: request.category,
    currency: request.currency,
    amount: request.amount,
    tipAndFeeType: request.tip,
    nation: request.nation,
    city: request.city,
    zipCode: request.postalCode,
  });
  Object.assign(qr.provider, { service: request.service });
  Object.assign(qr.merchant, { name: request.name });
  Object.assign(qr.additionalData, {
    billNumber: request.bill,
    store: request.store,
    reference: request.reference,
    terminal: request.terminal,
    purpose: request.purpose,
  });
  if (request.unreserved !== undefined) qr.setUnreservedField('80', request.unreserved);
  return qr.build();
}

/** The tags for which the clauses QRP-1, QRP-2 and QRP-7 refuse the request; the other library builds it all the same. */
function brokenTags(request: Request): Set<string> {
  const broken = new Set<string>();
  const rule = (tag: string, value: string | undefined, pattern: RegExp) => {
    if (value !== undefined && value !== '' && !pattern.test(value)) broken.add(tag);
  };
  rule('38-01-00', request.bin, /^\d{6}$/);
  rule('38-01-01', request.account, /^[A-Za-z0-9]{1,19}$/);
  rule('38', request.account, /^[ -~]*$/);
  rule('38-02', request.service, /^QRIBFTT[AC]$/);
  rule('01', request.initiation, /^1[12]$/);
  rule('52', request.category, /^\d{4}$/);
  rule('53', request.currency, /^704$/);
  rule('54', request.amount, /^[1-9]\d{0,12}$/);
  rule('55', request.tip, /^$/);
  rule('58', request.nation, /^VN$/);
  rule('59', request.name, /^.{1,25}$/);
  rule('60', request.city, /^.{1,15}$/);
  rule('62-01', request.bill, /^.{1,25}$/);
  rule('62-05', request.reference, /^(?!(.*\d){6}).{1,25}$/);
  rule('80', request.unreserved, /^.{1,5}$/);
  rule('62-07', request.terminal, /^.{1,25}$/);
  rule('62-08', request.purpose, /^.{1,25}$/);
  rule('62', request.purpose, /^[ -~]*$/);
  return broken;
}

/** Whether tag 62 is longer than its two-digit length can say, which corrupts what the other library builds. */
function overflows(request: Request): boolean {
  const labels = [request.bill, request.store, request.reference, request.terminal, request.purpose];
  return labels.reduce((sum, label) => sum + (label ? label.length + 4 : 0), 0) > 99;
}

it('QRP-2 QRP-4 the decoder reads what an independent builder writes, or names the rule that it breaks', () => {
  const seen = { read: 0, refused: 0 };
  fc.assert(
    fc.property(requests, (request) => {
      const decoded = decodeVietQr(builtElsewhere(request));
      const broken = brokenTags(request);
      if (overflows(request)) {
        expect(decoded.ok).toBe(false);
      } else if (decoded.ok) {
        seen.read += 1;
        expect([...broken]).toEqual([]);
        const { bin, account, amount, purpose, bill, merchantName } = decoded.value;
        expect({ bin, account, bill, merchantName }).toStrictEqual({
          bin: request.bin,
          account: request.account,
          bill: request.bill,
          merchantName: request.name,
        });
        expect(amount).toBe(request.amount === undefined ? undefined : Number(request.amount));
        expect(purpose ?? '').toBe(request.purpose ?? '');
      } else {
        seen.refused += 1;
        expect([...broken]).toContain(decoded.tag);
      }
    }),
    { numRuns: 5000 },
  );
  expect(seen.read).toBeGreaterThan(500);
  expect(seen.refused).toBeGreaterThan(500);
});
