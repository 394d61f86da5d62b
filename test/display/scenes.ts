import type { EnrolScene, Holder, PaymentScene, Scene } from '../../src/device/scene.ts';
import { anyChar, fc } from '../support/properties.ts';

const holder: Holder = { userBankName: 'NGUYEN VAN A', bankAccount: '0123456789', bankCode: 'MB' };

/** 142 characters, as a usual push has. */
export const QR_CODE =
  '00020101021238540010A00000072701240006970422011001234567890208QRIBFTTA53037045405500005802VN62400107NPS68690825Thanh toan don hang 123463048F1C';

/** A payload of exactly this many characters, in the alphabet of payment codes. */
export function payloadOf(length: number): string {
  return Array.from({ length }, (_, index) => QR_CODE.charAt((index * 7) % QR_CODE.length)).join('');
}

export const PAYMENT: PaymentScene = {
  kind: 'payment',
  online: true,
  pushId: '5f0c3f0e-7f5e-4c0a-8f58-0c4c3f0a9d11',
  qrCode: QR_CODE,
  amount: 50_000,
  content: 'Thanh toan don hang 1234',
  holder,
  secondsLeft: 272,
};

const LONG: Holder = {
  userBankName: 'CÔNG TY TRÁCH NHIỆM HỮU HẠN THƯƠNG MẠI VÀ DỊCH VỤ HOÀNG ANH',
  bankAccount: '1234567890123456789',
  bankCode: 'VIETINBANK',
};

const OTHER: Holder = { userBankName: 'TRẦN THỊ BÍCH NGỌC', bankAccount: '9988776655', bankCode: 'VIETINBANK' };
const CODES = { terminalCode: 'VVB000001', serialNumber: 'VVB900001' };

export const ENROL: EnrolScene = {
  kind: 'enrol',
  code: '7KQF-2M8C-4TZN',
  url: 'https://gateway.example.vn/enrol#7KQF-2M8C-4TZN',
  ...CODES,
  minutesLeft: 9,
};

/** One scene of every kind, and those with the most to say. */
export const SCENES: Readonly<Record<string, Scene>> = {
  starting: { kind: 'starting', version: '0.1.0' },
  connecting: { kind: 'connecting', ...CODES, plainLink: false },
  enrol: ENROL,
  setup: {
    kind: 'setup',
    problem: 'paybox.yaml dòng 4: link.url: expected mqtts://…, got mqtt://10.0.0.2',
    action: 'Sửa tệp paybox.yaml trên thẻ nhớ rồi khởi động lại',
    ...CODES,
  },
  'setup of a box that knows nothing': {
    kind: 'setup',
    problem: 'Chưa có paybox.yaml trên phân vùng khởi động',
    action: 'Chạy paybox provision --out rồi chép tệp vào thẻ nhớ',
    terminalCode: null,
    serialNumber: null,
  },
  certificate: { kind: 'certificate', online: true, certificate: QR_CODE, ...CODES, plainLink: false },
  unlinked: { kind: 'unlinked', online: true, ...CODES, plainLink: false },
  'unlinked, plain': { kind: 'unlinked', online: true, ...CODES, plainLink: true },
  'connecting, plain': { kind: 'connecting', ...CODES, plainLink: true },
  idle: { kind: 'idle', online: true, holder, terminalCode: 'VVB000001', plainLink: false },
  'idle with a static QR': {
    kind: 'idle',
    online: true,
    holder,
    terminalCode: 'VVB000001',
    plainLink: false,
    qrCode: QR_CODE,
  },
  'idle, plain': { kind: 'idle', online: true, holder, terminalCode: 'VVB000001', plainLink: true },
  'idle offline': { kind: 'idle', online: false, holder: LONG, terminalCode: 'VVB000001', plainLink: true },
  payment: PAYMENT,
  'payment, everything long': {
    ...PAYMENT,
    online: false,
    amount: 1_234_567_890,
    content: 'Thanh toán đơn hàng số 1234 tại cửa hàng Phở Gia Truyền Bát Đàn, bàn số 12, hai suất đặc biệt',
    holder: LONG,
    secondsLeft: 12,
  },
  paid: {
    kind: 'paid',
    transactionId: 't1',
    online: true,
    amount: 50_000,
    content: 'Thanh toan don hang 1234',
    holder,
  },
  'paid without a link': {
    kind: 'paid',
    transactionId: 't2',
    online: true,
    amount: 1_180_000,
    content: 'Cà phê',
    holder: null,
  },
  repeat: {
    ...{ kind: 'repeat', transactionId: 't1', online: true, amount: 50_000, content: 'Thanh toan don hang 1234' },
    paidAtMs: Date.UTC(2026, 0, 2, 2, 5),
  },
  'repeat of an old one': {
    ...{ kind: 'repeat', transactionId: 't2', online: true, amount: 50_000, content: 'DH001', silent: 'old' },
    paidAtMs: Date.UTC(2026, 0, 1, 17, 30),
  },
  'repeat of an old one, offline': {
    ...{ kind: 'repeat', transactionId: 't2', online: false, amount: 1_180_000, content: 'Cà phê', silent: 'old' },
    paidAtMs: Date.UTC(2026, 0, 1, 17, 30),
  },
  expired: { kind: 'expired', online: true, amount: 50_000, content: 'Thanh toan don hang 1234' },
  account: { kind: 'account', online: true, holder: OTHER, previous: holder },
  cancelled: { kind: 'cancelled', online: false, amount: 1_250_000, content: 'Cà phê sữa đá' },
  'too dense': { kind: 'too-dense', online: true, amount: 50_000, content: 'Thanh toan don hang 1234', holder },
  'history of five, offline': {
    kind: 'history',
    online: false,
    payments: [1, 2, 3, 4, 5].map((each) => ({
      amount: 1_234_567 * each,
      content: `Thanh toan don hang so ${each} ban 12`,
      paidAtMs: Date.UTC(2026, 0, 2, 2, 5 + each),
    })),
  },
  history: {
    kind: 'history',
    online: true,
    payments: [
      { amount: 50_000, content: 'DH001', paidAtMs: Date.UTC(2026, 0, 2, 2, 5) },
      { amount: 1_180_000, content: 'Thanh toan don hang 1234', paidAtMs: Date.UTC(2026, 0, 1, 17, 30) },
    ],
  },
  fault: {
    kind: 'fault',
    online: false,
    code: 'STORAGE_FAULT',
    action: 'Kiểm tra thẻ nhớ, rồi khởi động lại thiết bị',
  },
  blank: { kind: 'blank' },
};

const PAID = { kind: 'paid', online: true, content: 'Thanh toan don hang 1234', holder } as const;

/** Payments of less and of more than their orders asked for. */
export const DUE: Readonly<Record<string, Scene>> = {
  'paid, something missing': { ...PAID, transactionId: 't3', amount: 30_000, due: { amount: 50_000, paid: 30_000 } },
  'paid, too much': { ...PAID, transactionId: 't4', amount: 55_000, due: { amount: 50_000, paid: 55_000 } },
  'repeat, something missing': {
    ...{ kind: 'repeat', transactionId: 't3', online: true, amount: 30_000, content: 'Thanh toan don hang 1234' },
    ...{ paidAtMs: Date.UTC(2026, 0, 2, 2, 5), silent: 'undated', due: { amount: 50_000, paid: 30_000 } },
  },
  'paid, much missing': {
    ...{ ...PAID, transactionId: 't5', amount: 1, content: 'Cà phê', holder: LONG },
    due: { amount: 1_234_567_890, paid: 2 },
  },
};

/** Scenes of a box at a sandbox. */
export const MARKED: Readonly<Record<string, Scene>> = Object.fromEntries(
  Object.entries({ ...SCENES, ...DUE }).flatMap(([name, scene]) =>
    scene.kind === 'setup' || scene.kind === 'blank'
      ? []
      : [[`${name}, sandbox`, { ...scene, sandbox: true as const }]],
  ),
);

const anyText = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 120 }),
  fc.string({ unit: anyChar, maxLength: 120 }),
  fc.string({ unit: fc.constantFrom(...'NGUYỄN VĂN ẤẬ ộ ợ đ ₫ \n\t\x1b[2J'), maxLength: 120 }),
);
const anyHolder = fc.record({ userBankName: anyText, bankAccount: anyText, bankCode: anyText });
const amount = fc.integer({ min: 1, max: 9_999_999_999_999 });
const codes = { terminalCode: anyText, serialNumber: anyText };
const shown = { online: fc.boolean() };
const waiting = { plainLink: fc.boolean() };
const anyPayload = fc.integer({ min: 20, max: 400 }).map(payloadOf);

const anyUnmarked: fc.Arbitrary<Scene> = fc.oneof(
  fc.record({ kind: fc.constant('starting' as const), version: anyText }),
  fc.record({ kind: fc.constant('connecting' as const), ...codes, ...waiting }),
  fc.record({ kind: fc.constant('unlinked' as const), ...codes, ...shown, ...waiting }),
  fc.record({
    kind: fc.constant('enrol' as const),
    code: anyText,
    url: anyPayload,
    minutesLeft: fc.integer({ min: 1, max: 999 }),
    ...codes,
  }),
  fc.record({
    kind: fc.constant('setup' as const),
    problem: anyText,
    action: anyText,
    terminalCode: fc.option(anyText),
    serialNumber: fc.option(anyText),
  }),
  fc.record({ kind: fc.constant('account' as const), holder: anyHolder, previous: anyHolder, ...shown }),
  fc.record(
    {
      kind: fc.constant('idle' as const),
      holder: anyHolder,
      terminalCode: anyText,
      qrCode: anyPayload,
      ...shown,
      ...waiting,
    },
    { requiredKeys: ['kind', 'holder', 'terminalCode', 'online', 'plainLink'] },
  ),
  fc.record({ kind: fc.constant('certificate' as const), certificate: anyPayload, ...codes, ...shown, ...waiting }),
  fc.record({
    kind: fc.constant('payment' as const),
    pushId: fc.uuid(),
    qrCode: anyPayload,
    amount,
    content: anyText,
    holder: anyHolder,
    secondsLeft: fc.integer({ min: 0, max: 86_400 }),
    ...shown,
  }),
  fc.record({
    kind: fc.constant('paid' as const),
    transactionId: anyText,
    amount,
    content: anyText,
    holder: fc.option(anyHolder),
    ...shown,
  }),
  fc.record({
    kind: fc.constant('paid' as const),
    transactionId: anyText,
    amount,
    content: anyText,
    holder: fc.option(anyHolder),
    due: fc.record({ amount, paid: amount }),
    ...shown,
  }),
  fc.record(
    {
      kind: fc.constant('repeat' as const),
      transactionId: anyText,
      amount,
      content: anyText,
      paidAtMs: fc.integer({ min: 0, max: 4e12 }),
      due: fc.record({ amount, paid: amount }),
      silent: fc.constantFrom('old' as const, 'undated' as const),
      ...shown,
    },
    { requiredKeys: ['kind', 'transactionId', 'amount', 'content', 'paidAtMs', 'online'] },
  ),
  fc.record({ kind: fc.constantFrom('expired' as const, 'cancelled' as const), amount, content: anyText, ...shown }),
  fc.record({ kind: fc.constant('too-dense' as const), amount, content: anyText, holder: anyHolder, ...shown }),
  fc.record({
    kind: fc.constant('history' as const),
    payments: fc.array(fc.record({ amount, content: anyText, paidAtMs: fc.integer({ min: 0, max: 4e12 }) }), {
      maxLength: 5,
    }),
    ...shown,
  }),
  fc.record({ kind: fc.constant('fault' as const), code: anyText, action: anyText, ...shown }),
  fc.record({ kind: fc.constant('blank' as const) }),
);

/** Any scene, with texts that nobody has cleaned, of a sandbox or not. */
export const anyScene: fc.Arbitrary<Scene> = fc
  .record({ scene: anyUnmarked, marked: fc.boolean() })
  .map(({ scene, marked }) =>
    !marked || scene.kind === 'setup' || scene.kind === 'blank' ? scene : { ...scene, sandbox: true },
  );
