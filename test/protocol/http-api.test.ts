import { expect, it } from 'vitest';
import type { z } from 'zod';
import {
  generateRequest,
  PATHS,
  sendQrRequest,
  statusResponse,
  testCallbackRequest,
  tokenResponse,
  transactionSync,
} from '../../src/protocol/http-api.ts';

const GENERATE = {
  bankCode: 'MB',
  bankAccount: '0123456789',
  userBankName: 'NGUYEN VAN A',
  content: 'DH001',
  qrType: 0,
  amount: 50_000,
  orderId: 'DH001',
  transType: 'C',
};

const SEND_QR = {
  bankAccount: '0123456789',
  bankCode: 'MB',
  amount: '50000',
  content: 'DH001',
  qrCode: '000201',
  terminalCode: 'VVB000001',
  serialNumber: 'VVB900001',
  orderId: 'DH001',
  checkSum: '9424a5f96092ad5e4b16d625ad094dc0',
};

const TEST_CALLBACK = { bankAccount: '0123456789', content: 'DH001', amount: 50_000, transType: 'C', bankCode: 'MB' };

type Shape = Record<string, unknown>;
const REQUESTS: [name: string, schema: z.ZodType, body: Shape][] = [
  ['generate', generateRequest, GENERATE],
  ['send-qr', sendQrRequest, SEND_QR],
  ['test callback', testCallbackRequest, TEST_CALLBACK],
];

function pathsOf(schema: z.ZodType, body: unknown): string[] {
  return (schema.safeParse(body).error?.issues ?? []).map((issue) => issue.path.join('.'));
}

it('TOK-1 GEN-1 SND-1 CBK-1 the paths are those of the service', () => {
  expect(PATHS).toStrictEqual({
    token: '/api/token_generate',
    generate: '/api/qr/generate-customer',
    sendQr: '/api/tid/send-qr',
    testCallback: '/bank/api/test/transaction-callback',
    checkOrder: '/api/transactions/check-order',
    checkEcommerceOrder: '/api/ecommerce-transactions/check-order',
    cancelQr: '/api/tid/cancel-qr',
  });
});

it.each(REQUESTS)('ERR-4 %s is read as sent, unknown fields are dropped', (_, schema, body) => {
  expect(schema.parse({ ...body, extra: { secret: 1 }, sender: 'x' })).toStrictEqual(body);
});

it.each(REQUESTS)('ERR-3 a %s body that is no object is refused', (_, schema) => {
  for (const body of [null, [], 'x', 1, true]) expect(pathsOf(schema, body)).toEqual(['']);
});

it.each(REQUESTS)('ERR-3 a %s field of another type is refused by its name', (_, schema, body) => {
  for (const [key, value] of Object.entries(body)) {
    const others = [null, [], {}, true, 'x', 1].filter((other) => typeof other !== typeof value || other === null);
    for (const other of others) expect(pathsOf(schema, { ...body, [key]: other })).toEqual([key]);
  }
});

it.each<[string, z.ZodType, Shape, string[]]>([
  ['generate', generateRequest, GENERATE, ['bankCode', 'bankAccount', 'userBankName', 'content']],
  ['send-qr', sendQrRequest, SEND_QR, ['bankAccount', 'bankCode', 'amount', 'qrCode', 'checkSum']],
  ['test callback', testCallbackRequest, TEST_CALLBACK, ['bankAccount', 'content', 'amount']],
])('GEN-1 SND-1 CBK-2 the fields that %s always requires', (_, schema, body, required) => {
  const missed = Object.keys(body).filter((key) => pathsOf(schema, { ...body, [key]: undefined }).length > 0);
  expect(missed).toEqual(required);
});

it('GEN-1 qrType is 0 unless told, and otherwise 1 or 3', () => {
  expect(generateRequest.parse({ ...GENERATE, qrType: undefined }).qrType).toBe(0);
  for (const qrType of [0, 1, 3]) expect(pathsOf(generateRequest, { ...GENERATE, qrType })).toEqual([]);
  for (const qrType of [2, 4, -1, 0.5, '0'])
    expect(pathsOf(generateRequest, { ...GENERATE, qrType })).toEqual(['qrType']);
});

it('ERR-3 a field with a code of its own is left to it, however long', () => {
  const long = 'x'.repeat(5000);
  const coded = {
    generate: ['bankCode', 'bankAccount', 'content', 'transType', 'terminalCode'],
    sendQr: ['bankAccount', 'bankCode', 'amount', 'qrCode', 'terminalCode', 'serialNumber', 'checkSum'],
    testCallback: ['bankAccount', 'content', 'transType', 'bankCode'],
  };
  for (const key of coded.generate) expect(pathsOf(generateRequest, { ...GENERATE, [key]: long })).toEqual([]);
  for (const key of coded.sendQr) expect(pathsOf(sendQrRequest, { ...SEND_QR, [key]: long })).toEqual([]);
  for (const key of coded.testCallback) {
    expect(pathsOf(testCallbackRequest, { ...TEST_CALLBACK, [key]: long })).toEqual([]);
  }
});

it('LIM-3 a push holds 99 characters of content and 64 of orderId', () => {
  expect(pathsOf(sendQrRequest, { ...SEND_QR, content: 'ệ'.repeat(99), orderId: 'x'.repeat(64) })).toEqual([]);
  expect(pathsOf(sendQrRequest, { ...SEND_QR, content: 'x'.repeat(100) })).toEqual(['content']);
  expect(pathsOf(sendQrRequest, { ...SEND_QR, orderId: 'x'.repeat(65) })).toEqual(['orderId']);
});

it('CBK-2 transType is C unless told', () => {
  expect(testCallbackRequest.parse({ ...TEST_CALLBACK, transType: undefined })).toMatchObject({ transType: 'C' });
});

it('ERR-1 TOK-1 answers have the shape of the service', () => {
  expect(statusResponse.safeParse({ status: 'FAILED', message: 'E39' }).success).toBe(true);
  expect(statusResponse.safeParse({ status: 'failed', message: 'E39' }).success).toBe(false);
  expect(tokenResponse.safeParse({ access_token: 'x', token_type: 'Bearer', expires_in: 300 }).success).toBe(true);
  expect(tokenResponse.safeParse({ access_token: 'x', token_type: 'bearer', expires_in: 300 }).success).toBe(false);
});

it('SYN-2 SYN-11 the callback carries exactly the keys of the service, and two more where another amount came in', () => {
  expect(Object.keys(transactionSync.shape)).toEqual([
    'transactionid',
    'transactiontime',
    'referencenumber',
    'amount',
    'content',
    'bankaccount',
    'transType',
    'orderId',
    'sign',
    'terminalCode',
    'urlLink',
    'serviceCode',
    'subTerminalCode',
    'orderAmount',
    'orderPaid',
  ]);
  const optional = Object.entries(transactionSync.shape).filter(([, field]) => field.safeParse(undefined).success);
  expect(optional.map(([key]) => key)).toEqual(['orderAmount', 'orderPaid']);
});
