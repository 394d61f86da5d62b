import { crc16 } from '../../../../protocol/crc16.ts';
import { Mismatch } from '../../check.ts';
import { spec } from '../box-check.ts';
import type { Body, CheckContext } from '../check-context.ts';
import { qrOf } from '../orders.ts';
import { waitForSessionAge } from './pushes.ts';

/** An account of somebody else, at another bank. */
const FOREIGN_ACCOUNT = '9876543210';
const FOREIGN_BANK = 'VCB';
const FOREIGN_BIN = '970436';

type Make = (t: CheckContext) => Body<'show'>;

/** A valid order with another QR. */
const withQr =
  (change: (qr: string) => string): Make =>
  (t) => {
    const order = t.order();
    return { ...order, qrCode: change(order.qrCode) };
  };

/** An order whose QR differs from its fields. */
const withQrOf =
  (change: (order: Body<'show'>) => Parameters<typeof qrOf>[1]): Make =>
  (t) => {
    const order = t.order();
    return { ...order, qrCode: qrOf(order, change(order)) };
  };

/** Returns a case: an order of this amount whose QR asks for another one. */
function otherAmount(amount: number): [title: string, code: string, make: Make] {
  const make: Make = (t) => {
    const order = t.order({ amount });
    return { ...order, qrCode: qrOf(order, { amount: amount + 1 }) };
  };
  return [`another amount in the QR of an order of ${String(amount).length} digits`, 'QR_MISMATCH', make];
}

const foreignPayee = withQrOf(() => ({ account: FOREIGN_ACCOUNT }));

/** Pushes that would make the customer pay another amount, or another account. */
const WRONG: readonly [title: string, code: string, make: Make][] = [
  ['no VietQR', 'QR_INVALID', (t) => t.order({ qrCode: 'https://pay.example/4711' })],
  ['a QR with a wrong CRC', 'QR_INVALID', withQr((qr) => `${qr.slice(0, -4)}${qr.endsWith('0000') ? '0001' : '0000'}`)],
  ['a QR that is cut off', 'QR_INVALID', withQr((qr) => qr.slice(0, -10))],
  ['a QR with a second merchant account', 'QR_INVALID', withQr((qr) => withField(qr, '26', '0004test'))],
  ['a QR with a fee on top', 'QR_INVALID', withQr((qr) => withField(qr, '56', '5000'))],
  ['another amount in the QR', 'QR_MISMATCH', withQrOf(({ amount }) => ({ amount: amount + 1 }))],
  ...[123_456_789, 9_876_543_210, 9_999_999_999_998].map(otherAmount),
  ['a QR without an amount', 'QR_MISMATCH', withQrOf(() => ({ amount: undefined }))],
  ['another account in the QR', 'QR_MISMATCH', foreignPayee],
  ['another bank in the QR', 'QR_MISMATCH', withQrOf(() => ({ bin: FOREIGN_BIN }))],
  ['a QR to a card of that number', 'QR_MISMATCH', withQrOf(() => ({ service: 'card' }))],
  ['another account in QR and fields', 'QR_MISMATCH', (t) => t.order({ bankAccount: FOREIGN_ACCOUNT })],
  ['another bank in QR and fields', 'QR_MISMATCH', (t) => t.order({ bankCode: FOREIGN_BANK })],
  ['another account in the fields', 'QR_MISMATCH', (t) => ({ ...t.order(), bankAccount: FOREIGN_ACCOUNT })],
  ['another bank in the fields', 'QR_MISMATCH', (t) => ({ ...t.order(), bankCode: FOREIGN_BANK })],
];

/** QR payloads that break a clause. */
const INVALID: readonly [clause: string, title: string, change: (qr: string) => string][] = [
  ['QRP-1', 'a QR with a length that is no number', (qr) => withRaw(qr, '80XXab')],
  ['QRP-2', 'a QR of another currency', (qr) => withCrc(qr.replace('5303704', '5303840'))],
  ['QRP-2', 'a QR of another country', (qr) => withCrc(qr.replace('5802VN', '5802US'))],
  ['QRP-3', 'a QR whose CRC is in small letters', withSmallCrc],
  ['QRP-4', 'a QR with a tag twice', (qr) => withField(qr, '58', 'VN')],
  ['QRP-4', 'a QR with an empty tag', (qr) => withField(qr, '80', '')],
  ['QRP-4', 'a QR with a space after it', (qr) => `${qr} `],
  ['QRP-4', 'a QR that does not begin with 00', (qr) => withCrc(qr.slice('000201'.length))],
  ['QRP-5', 'a QR with another first character', (qr) => `1${qr.slice(1)}`],
  ['QRP-5', 'a QR with another character in its account', (qr) => qr.replace('QRIBFTTA', 'QRIBFTTB')],
  ['QRP-7', 'a QR with an account in an unreserved tag', (qr) => withField(qr, '80', '0312345678')],
  ['QRP-7', 'a QR with an account in a language', (qr) => withField(qr, '64', '0002VI01100312345678')],
  ['QRP-7', 'a QR with a tip', (qr) => withField(qr, '55', '01')],
];

/** Valid QR payloads that our gateway never writes. */
const UNUSUAL: readonly [clause: string, title: string, change: (qr: string) => string][] = [
  ['QRP-2', 'a QR with its tags in another order', swapTags],
  ['QRP-7', 'a QR with a tag that says no account and no amount', (qr) => withField(qr, '80', 'bench')],
];

/** Pushes that a box rejects (PROTOCOL.md, clauses AGT-1, AGT-9 and QRP). */
export const REJECTION_CHECKS = [
  ...WRONG.map(([title, code, make]) =>
    spec('AGT-1', `rejects ${title} as ${code}`, [], (t) => t.expectRejected(make(t), code)),
  ),
  ...INVALID.map(([clause, title, change]) =>
    spec(clause, `rejects ${title} as QR_INVALID`, [], (t) => t.expectRejected(withQr(change)(t), 'QR_INVALID')),
  ),
  ...UNUSUAL.map(([clause, title, change]) =>
    spec(clause, `shows ${title}`, [], async (t) => {
      await t.expectShown(withQr(change)(t));
    }),
  ),
  spec('AGT-1', 'rejects a push whose lifetime was over before it came', [], async (t) => {
    await waitForSessionAge(t, 2_000);
    const { sessionMs, ...order } = t.order({ expiresInMs: 1_000 });
    await t.expectRejected({ ...order, sessionMs: sessionMs - 2_000 }, 'WITHDRAWN');
  }),
  spec('AGT-1', 'rejects every push while no account is linked to it', [], async (t) => {
    t.gateway.account = null;
    await t.reconnect();
    await t.expectRejected(t.order(), 'E36', 'QR_MISMATCH');
  }),
  spec('AGT-1', "the screen names the account's holder, not another one that a push names", ['pages'], async (t) => {
    const userBankName = 'LE VAN KHAC';
    await t.pushShown(t.order({ userBankName }));
    await t.sync();
    if (await t.box.hasText(userBankName)) throw new Mismatch(`the screen names ${userBankName}`);
  }),
  spec('AGT-1', 'a rejected push leaves the QR on the screen', ['screen'], async (t) => {
    const order = await t.qrUndisturbed();
    t.send(foreignPayee(t));
    await t.sync(() => (t.hasEnded(order) ? 'the order on the screen has ended' : undefined));
    await t.box.expectQrStays(order, 'the QR was removed');
  }),
  spec('AGT-9', 'the longest QR is readable on the screen or rejected as QR_TOO_DENSE', ['screen'], async (t) => {
    const tags = Array.from({ length: 35 }, (_, index) => `${65 + index}`);
    const order = withQr((qr) => tags.reduce((long, tag) => withField(long, tag, 'XXXXX'), qr))(t);
    t.send(order);
    const result = await t.pushResult(order.pushId);
    if (result.type === 'shown') {
      if (!(await t.box.isQrReadable(order))) throw new Mismatch('no QR can be read on the screen');
    } else if (result.code !== 'QR_TOO_DENSE') throw new Mismatch(`rejected with ${result.code}: ${result.reason}`);
  }),
];

/** Inserts a field before the CRC, and corrects the CRC. */
function withField(qr: string, tag: string, value: string): string {
  return withRaw(qr, `${tag}${String(value.length).padStart(2, '0')}${value}`);
}

function withRaw(qr: string, field: string): string {
  return withCrc(`${qr.slice(0, -8)}${field}${qr.slice(-8)}`);
}

function withCrc(qr: string): string {
  const covered = qr.slice(0, -4);
  return covered + crc16(covered);
}

function swapTags(qr: string): string {
  return withCrc(qr.replace('5802VN', '').replace('5303704', '5802VN5303704'));
}

/** Writes the CRC in small letters. If it has no letters, a field is added first. */
function withSmallCrc(qr: string): string {
  const fields = Array.from({ length: 100 }, (_, index) => withField(qr, '80', String(index)));
  const found = [qr, ...fields].find((it) => /[A-F]/.test(it.slice(-4))) ?? qr;
  return found.slice(0, -4) + found.slice(-4).toLowerCase();
}
