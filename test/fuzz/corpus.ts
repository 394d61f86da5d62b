import { readFileSync } from 'node:fs';
import { checkSum } from '../../src/protocol/checksum.ts';
import { encode } from '../../src/protocol/codec.ts';
import { encodeVietQr } from '../../src/protocol/vietqr.ts';
import { DOWN, PRESENCE, UP } from '../protocol/examples.ts';
import vectors from '../vectors/emv-qr.json' with { type: 'json' };

export const ACCOUNT = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' };
export const BOX1 = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Secret-of-box-number-1-of-tests' };
export const BOX2 = { terminalCode: 'VVB000002', serialNumber: 'VVB900002', secret: 'Secret-of-box-number-2-of-tests' };
/** A box that has no secret yet. */
export const UNENROLLED = { terminalCode: 'VVB000003', serialNumber: 'VVB900003' };
export const PARTNER = { username: 'demo', password: 'demo-secret' };

export const QR_CODE = encodeVietQr({
  bin: '970422',
  account: ACCOUNT.bankAccount,
  service: 'account',
  initiation: 'dynamic',
  amount: 50_000,
  purpose: 'DH001',
});

const asBytes = (texts: readonly string[]) => texts.map((text) => Buffer.from(text));
const asJson = (values: readonly unknown[]) => asBytes(values.map((value) => JSON.stringify(value)));

const account = { ...ACCOUNT, qrCode: QR_CODE };
export const MESSAGES_DOWN = asBytes(Object.values({ ...DOWN, show: { ...DOWN.show, ...account } }).map(encode));
export const MESSAGES_UP = asBytes(Object.values(UP).map(encode));
export const PRESENCES = asBytes([encode(PRESENCE), encode({ ...PRESENCE, online: false })]);

export const PAYLOADS = asBytes([QR_CODE, ...payloadsIn(vectors)]);

/** Every text of the vectors that looks like a payload, valid or not. */
function payloadsIn(value: unknown): string[] {
  if (typeof value === 'string') return value.startsWith('00') ? [value] : [];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(payloadsIn) : [];
}

const order = { ...ACCOUNT, amount: 50_000, content: 'DH001', orderId: 'DH001', transType: 'C', qrType: 0 };
const codes = { terminalCode: BOX1.terminalCode, serialNumber: BOX1.serialNumber };
const pushed = { bankAccount: '0123456789', bankCode: 'MB', amount: '50000', content: 'DH001', orderId: 'DH001' };
const push = { ...pushed, qrCode: QR_CODE, ...codes };
const payment = { bankAccount: '0123456789', content: 'DH001', amount: 50_000, transType: 'C' };

/** Right bodies of the partner's endpoints. */
export const BODIES = {
  generate: asJson([
    order,
    { ...order, additionalData: [{ additionalData1: 'x', more: [{ a: { b: [1, 'c'] } }] }], note: 'n', urlLink: 'u' },
    { ...order, qrType: 1, terminalCode: BOX1.terminalCode },
    { ...order, qrType: 3, terminalCode: BOX1.terminalCode, serviceCode: 'S1', subTerminalCode: 'T1', sign: 'x' },
  ]),
  sendQr: asJson([
    { ...push, checkSum: checkSum(PARTNER.password, push) },
    { ...push, checkSum: '', orderId: undefined },
  ]),
  testCallback: asJson([
    payment,
    { ...payment, bankCode: 'MB', transType: 'D' },
    { ...payment, amount: 1, content: 'X' },
  ]),
};

/** The project's own configuration files. */
export function configFiles(...names: string[]): Buffer[] {
  return names.map((name) => readFileSync(new URL(`../../device-config/${name}.yaml`, import.meta.url)));
}
