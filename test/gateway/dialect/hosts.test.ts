import { connectAsync } from 'mqtt';
import { expect, it, onTestFinished } from 'vitest';
import { accountCheckSum } from '../../../src/protocol/checksum.ts';
import { decodeVietQr } from '../../../src/protocol/vietqr.ts';
import { eventually } from '../../support/net.ts';
import { ACCOUNT, FOREIGN_ACCOUNT, OTHER_ACCOUNT, order, partnerServer, processed, testCallback } from '../harness.ts';
import { dialectGateway, LOGIN, VIETQR_BOX } from './support.ts';

const code = VIETQR_BOX.terminalCode;
const TEST_ANSWERS = ['vietqr/response/transaction-callback', 'vietqr/transaction-callback/response'];

async function shop(config: Record<string, unknown> = {}) {
  const partner = await partnerServer(processed);
  const gateway = await dialectGateway({ callback: { url: partner.url }, config });
  const client = await connectAsync(gateway.mqttUrl ?? '', LOGIN, false);
  onTestFinished(() => client.endAsync(true));
  const answers: [topic: string, body: Record<string, unknown>][] = [];
  client.on('message', (topic, payload) => answers.push([topic, JSON.parse(String(payload))]));
  const names = ['response', 'responseQR', 'response-status', 'bdsd'].map((it) => `vietqr/${it}/${code}`);
  await client.subscribeAsync([...names, ...TEST_ANSWERS], { qos: 1 });
  const ask = (topic: string, body: unknown) => client.publishAsync(topic, JSON.stringify(body) ?? '', { qos: 1 });
  return { gateway, answers, ask };
}

const generate = order({ terminalCode: code });

it.each([
  ['vietqr/request', 'vietqr/response'],
  ['vietqr/requestQR', 'vietqr/responseQR'],
])('VQD-7 %s generates a QR as over HTTP, and the terminalCode of the body names the answer', async (ask, answer) => {
  const { gateway, answers, ask: publish } = await shop();
  await publish(`${ask}/SOMEWHERE`, generate);
  await eventually('the answer', () => answers.length > 0);
  const [[topic, body] = []] = answers;
  expect(topic).toBe(`${answer}/${code}`);
  expect(body).toMatchObject({ orderId: 'DH001', amount: '50000', terminalCode: code });
  expect(decodeVietQr(String(body?.qrCode))).toMatchObject({ ok: true, value: { amount: 50_000, purpose: 'DH001' } });
  expect(await gateway.mock('/orders')).toMatchObject([{ orderId: 'DH001', partner: 'demo', status: 'created' }]);
});

it('VQD-7 a host gets a payment of an order with its terminal once, and is answered on both spellings of the test callback', async () => {
  const { answers, ask } = await shop();
  await ask(`vietqr/request/${code}`, generate);
  await eventually('the QR', () => answers.length === 1);
  await ask('vietqr/test/transaction-callback', testCallback());
  await eventually('the payment', () => answers.length === 4);
  const byTopic = Object.fromEntries(answers.slice(1));
  const [first = '', second = ''] = TEST_ANSWERS;
  expect(byTopic[first]).toEqual({ status: 'SUCCESS', message: expect.stringMatching(/^[\w-]{36}$/) });
  expect(byTopic[second]).toEqual(byTopic[first]);
  expect(byTopic[`vietqr/bdsd/${code}`]).toEqual({
    bankAccount: '0123456789',
    amount: 50_000,
    timePaid: expect.stringMatching(/^\d\d\/\d\d\/\d{4} \d\d:\d\d:\d\d$/),
    transType: 'C',
    referenceNumber: expect.stringMatching(/^demo-/),
    content: 'DH001',
    orderId: 'DH001',
    status: 1,
  });
});

it('VQD-7 a host gets nothing of an order without a terminal, nor of accounts without a box of the dialect', async () => {
  const { gateway, answers, ask } = await shop();
  await gateway.generate();
  await gateway.testCallback();
  await gateway.generate({ ...OTHER_ACCOUNT, terminalCode: 'VVB000004' });
  await gateway.testCallback({ bankAccount: OTHER_ACCOUNT.bankAccount });
  await ask('vietqr/test/transaction-callback', testCallback({ content: 'LAST' }));
  await eventually('the answers', () => answers.length === 2);
  expect(answers.map(([topic]) => topic).toSorted()).toEqual(TEST_ANSWERS.toSorted());
});

it.each([
  ['a refused generate call gets no answer', `vietqr/request/${code}`, { ...generate, amount: 0 }, 'E02', []],
  ['no JSON', `vietqr/request/${code}`, undefined, 'E46', []],
  [
    'the account of a box with a login of its own',
    'vietqr/test/transaction-callback',
    testCallback({ bankAccount: OTHER_ACCOUNT.bankAccount }),
    'E36',
    TEST_ANSWERS,
  ],
  [
    'the account of another partner',
    'vietqr/test/transaction-callback',
    testCallback({ bankAccount: FOREIGN_ACCOUNT.bankAccount }),
    'E36',
    TEST_ANSWERS,
  ],
  ['a wrong content', 'vietqr/test/transaction-callback', testCallback({ content: 'é' }), '009', TEST_ANSWERS],
] as const)('VQD-7 refuses %s', async (_what, topic, body, refusal, answered) => {
  const { gateway, answers, ask } = await shop();
  await ask(topic, body);
  await eventually('the refusal', () => gateway.logged('host-call-refused').length === 1);
  expect(gateway.logged('host-call-refused')).toMatchObject([{ topic, code: refusal }]);
  await ask('vietqr/test/transaction-callback', testCallback());
  await eventually('the next answer', () => answers.length === answered.length + TEST_ANSWERS.length);
  const expected = answered.map((it) => [it, { status: 'FAILED', message: refusal }]);
  expect(answers.slice(0, answered.length).toSorted()).toEqual(expected.toSorted());
});

it('VQD-7 CHK-3 a host checks an order, by a checkSum over account and holder', async () => {
  const { gateway, answers, ask } = await shop();
  await gateway.generate({ terminalCode: code });
  const { bankAccount, userBankName } = ACCOUNT;
  const request = { bankAccount, type: 0, value: 'DH001', checkSum: accountCheckSum(bankAccount, userBankName) };
  await ask(`vietqr/request-status/${code}`, request);
  await eventually('the answer', () => answers.length === 1);
  expect(answers[0]).toMatchObject([`vietqr/response-status/${code}`, [{ orderId: 'DH001', status: 0 }]]);
  await ask(`vietqr/request-status/${code}`, { ...request, checkSum: accountCheckSum(bankAccount, 'demo') });
  await eventually('the refusal', () => answers.length === 2);
  expect(answers[1]?.[1]).toEqual({ status: 'FAILED', message: 'E39' });
});

it('VQD-7 CBK-1 the test callback of a host works in the sandbox only', async () => {
  const { answers, ask } = await shop({ sandbox: false });
  await ask('vietqr/test/transaction-callback', testCallback());
  await eventually('the answers', () => answers.length === 2);
  expect(answers.map(([, body]) => body)).toEqual([1, 2].map(() => ({ status: 'FAILED', message: 'E75' })));
});
