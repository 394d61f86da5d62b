import { describe, expect, it } from 'vitest';
import { PATHS } from '../../src/protocol/http-api.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import {
  BOX1,
  checkOrder,
  expectRefused,
  FOREIGN_ACCOUNT,
  failed,
  OTHER_ACCOUNT,
  partnerServer,
  processed,
  type TestGateway,
  testGateway,
} from './harness.ts';
import { SEPAY, sepayBody, tellHook } from './hooks.ts';

const { checkOrder: CHECK, checkEcommerceOrder: TWIN, cancelQr: CANCEL } = PATHS;

async function shop(config: object = {}) {
  const partner = await partnerServer(processed);
  const gateway = await testGateway({ callback: { url: partner.url }, config: { mqtt: null, ...config } });
  return { gateway, partner };
}

const check = (gateway: TestGateway, change: Record<string, unknown> = {}) => gateway.post(CHECK, checkOrder(change));

describe('CHK', () => {
  it('CHK-3 MOD-3 MAT-5 a test of a sandbox is no money at a live gateway, neither when asked nor for what is due', async () => {
    const { url, calls } = await partnerServer(processed);
    const options = { dataDir: await temporaryFolder(), callback: { url } };
    const sandbox = await testGateway({ ...options, config: { sources: [SEPAY] } });
    await sandbox.generate();
    await sandbox.testCallback();
    await eventually('the callback', () => calls.length === 1);
    expect((await check(sandbox)).body).toMatchObject([{ status: 1 }]);
    await sandbox.close();
    const live = await testGateway({ ...options, config: { sources: [SEPAY], sandbox: false } });
    expect((await check(live)).body).toMatchObject([{ status: 2, referenceNumber: '', timePaid: 0 }]);
    const { referencenumber: value } = JSON.parse(calls[0]?.body ?? '');
    expect((await check(live, { type: 1, value })).body).toEqual(failed('E96'));
    expect(await live.mock('/orders')).toMatchObject([{ paidAmount: 0 }]);
    expect((await tellHook(live)).status).toBe(200);
    expect((await check(live)).body).toMatchObject([{ status: 1, referenceNumber: sepayBody().referenceCode }]);
    expect(await live.mock('/orders')).toMatchObject([{ status: 'paid', paidAmount: 50_000 }]);
    await eventually('the callback', () => calls.length === 2);
    expect(JSON.parse(calls[1]?.body ?? '')).not.toHaveProperty('orderPaid');
  });

  it('CHK-1 CHK-3 a check reports an order that waits, is paid, paid twice, and cancelled', async () => {
    const { gateway, partner } = await shop();
    const made = await gateway.generate({ terminalCode: 'QUAN-1' });
    const row = {
      referenceNumber: '',
      orderId: 'DH001',
      amount: 50_000,
      content: 'DH001',
      transType: 'C',
      status: 0,
      type: 0,
      timeCreated: expect.any(Number),
      timePaid: 0,
      terminalCode: 'QUAN-1',
      note: '',
      refundCount: 0,
      amountRefunded: 0,
    };
    expect(await check(gateway)).toMatchObject({ status: 200, body: [row] });
    expect((await check(gateway)).body).toStrictEqual([row]);
    expect((await gateway.post(TWIN, checkOrder())).body).toStrictEqual([row]);
    expect((await gateway.post(TWIN, checkOrder({ checkSum: '-' }))).body).toEqual(failed('E39'));
    await gateway.testCallback();
    await gateway.testCallback();
    await eventually('two callbacks', () => partner.calls.length === 2);
    const references = partner.calls.map((it) => JSON.parse(it.body).referencenumber as string);
    const paid = { ...row, status: 1, timePaid: expect.any(Number) };
    const rows = (await check(gateway)).body as unknown as { referenceNumber: string; timePaid: number }[];
    expect(rows.map((it) => ({ ...it, referenceNumber: '' }))).toEqual([paid, paid]);
    expect(rows.map((it) => it.referenceNumber).toSorted()).toEqual(references.toSorted());
    expect(Math.abs((rows[0]?.timePaid ?? 0) - Date.now() / 1000)).toBeLessThan(3600);
    for (const value of references) {
      for (const type of [1, '1']) {
        const found = await check(gateway, { type, value });
        expect(found.body).toMatchObject([{ referenceNumber: value, orderId: 'DH001', status: 1 }]);
      }
    }
    const other = await gateway.generate({ orderId: 'DH002' });
    await gateway.post(CANCEL, { transactionReceiveId: other.body.transactionId });
    expect((await check(gateway, { value: 'DH002' })).body).toMatchObject([{ orderId: 'DH002', status: 2 }]);
    expect(made.body.transactionId).not.toBe(other.body.transactionId);
  });

  it('CHK-3 a check reports a payment that fits no order', async () => {
    const { gateway, partner } = await shop();
    await gateway.testCallback({ content: 'NOBODY' });
    const { body } = await eventually('the callback', () => partner.calls[0]);
    const value = JSON.parse(body).referencenumber as string;
    const found = await check(gateway, { type: 1, value });
    expect(found.body).toMatchObject([{ referenceNumber: value, orderId: '', content: 'NOBODY', status: 1, type: 2 }]);
  });

  it('CHK-2 ERR-5 a wrong check is refused with its code, the first in its order', async () => {
    const { gateway } = await shop();
    await gateway.generate();
    const wrong: [string, Record<string, unknown>][] = [
      ['E46', { value: undefined }],
      ['E39', { checkSum: '0'.repeat(32) }],
      ['E77', { bankAccount: FOREIGN_ACCOUNT.bankAccount }],
      ['E95', { type: 2 }],
      ['E96', { value: 'NOSUCH' }],
    ];
    const more: [string, Record<string, unknown>][] = [
      ['E46', { value: '' }],
      ['E46', { checkSum: undefined }],
      ['E46', { type: undefined }],
      ['E46', { bankAccount: 123_456_789 }],
      ['E77', { bankAccount: 'NOSUCH' }],
      ['E95', { type: 'orderId' }],
      ['E96', { type: 1 }],
      ['E96', { bankAccount: OTHER_ACCOUNT.bankAccount }],
    ];
    await expectRefused(
      gateway,
      [...wrong, ...more].map(([code, change]) => [CHECK, checkOrder(change), code]),
    );
    for (const [at, [code]] of wrong.entries()) {
      const changes = wrong.slice(at).map(([, change]) => change);
      const answer = await gateway.post(CHECK, checkOrder(Object.assign({}, ...changes.reverse())));
      expect([at, answer.body]).toEqual([at, failed(code)]);
    }
    const headers = { authorization: `Bearer ${await gateway.token('other')}` };
    expect((await gateway.post(CHECK, checkOrder(), headers)).body).toEqual(failed('E39'));
  });

  it('CHK-1 LEN-1 a check is read to the letter also where calls are', async () => {
    const { gateway } = await shop({ strict: true });
    await gateway.generate();
    expect((await check(gateway, { type: '0' })).status).toBe(200);
    expect((await check(gateway, { value: null })).body).toEqual(failed('E46'));
  });
});

describe('CAN', () => {
  it('CAN-1 a cancellation removes the QR of an order from the box', async () => {
    const { gateway } = await shop();
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
    const { qrCode, transactionId } = (await gateway.generate()).body;
    expect((await gateway.sendQr({ qrCode })).status).toBe(200);
    const { pushId } = await box.next('show');
    const cancelled = await gateway.post(CANCEL, { transactionReceiveId: transactionId });
    expect([cancelled.status, cancelled.body]).toEqual([200, { status: 'SUCCESS', message: '' }]);
    expect(await box.next('withdraw')).toMatchObject({ pushId, why: 'cancelled' });
    expect(await gateway.mock('/orders')).toMatchObject([{ status: 'cancelled' }]);
  });

  it('CAN-2 a cancellation is refused for an order of another partner, a paid one, and another name', async () => {
    const { gateway } = await shop();
    const { transactionId } = (await gateway.generate()).body;
    const headers = { authorization: `Bearer ${await gateway.token('other')}` };
    const stranger = await gateway.post(CANCEL, { transactionReceiveId: transactionId }, headers);
    expect([stranger.status, stranger.body]).toEqual([400, failed('E96')]);
    for (const [id, code] of [
      ['DH001', 'E96'],
      ['', 'E96'],
      [undefined, 'E46'],
    ]) {
      expect((await gateway.post(CANCEL, { transactionReceiveId: id })).body).toEqual(failed(String(code)));
    }
    await gateway.testCallback();
    expect((await gateway.post(CANCEL, { transactionReceiveId: transactionId })).body).toEqual(failed('E46'));
    expect(await gateway.mock('/orders')).toMatchObject([{ status: 'paid' }]);
  });
});
