import { describe, expect, it } from 'vitest';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import {
  BOX1,
  BOX2,
  BOX4,
  expectRefused,
  expectRefusedInOrder,
  FOREIGN_ACCOUNT,
  OTHER_ACCOUNT,
  partnerServer,
  qrFor,
  TEST_CALLBACK,
  type TestGateway,
  testCallback,
  testGateway,
} from './harness.ts';

/** A gateway whose partner has an endpoint, and the callbacks that came there. */
async function withPartner(config: Record<string, unknown> = {}) {
  const partner = await partnerServer();
  const gateway = await testGateway({ callback: { url: partner.url }, config });
  const callback = async (nth: number): Promise<Record<string, unknown>> => {
    const call = await eventually(`callback ${nth}`, () => partner.calls[nth - 1]);
    return JSON.parse(call.body);
  };
  return { gateway, partner, callback };
}

const pay = async (gateway: TestGateway, change: Record<string, unknown> = {}): Promise<string> => {
  const { status, body } = await gateway.testCallback(change);
  expect([status, body]).toEqual([200, { status: 'SUCCESS', message: expect.stringMatching(/^[0-9a-f-]{36}$/) }]);
  return String(body.message);
};

/** One wrong thing for each refusal, in the order of clause CBK-2. */
const WRONG: [string, Record<string, unknown>][] = [
  ['010', { bankAccount: '01-23' }],
  ['009', { content: 'Cà phê' }],
  ['002', { amount: 0 }],
  ['003', { transType: 'X' }],
  ['E77', { bankAccount: FOREIGN_ACCOUNT.bankAccount }],
  ['E51', { bankCode: 'VCB' }],
];

const values = (code: string, field: string, ...wrong: unknown[]) =>
  wrong.map((value): [string, Record<string, unknown>] => [code, { [field]: value }]);

const MORE = [
  ...values('010', 'bankAccount', undefined, null, 123_456_789, '', '1'.repeat(20), '0123456789\0', ['0123456789']),
  ...values(
    '009',
    'content',
    undefined,
    null,
    5,
    '',
    'x'.repeat(20),
    'a.b',
    'a\nb',
    'a\0b',
    '\ud800',
    'đ',
    '<b>',
    '１',
  ),
  ...values('002', 'amount', undefined, null, '50000', -1, 1.5, 10_000_000_000_000, 1e300, true, [50_000]),
  ...values('003', 'transType', null, '', 'c', 1, ['C']),
  ...values('E77', 'bankAccount', 'NOSUCH'),
  ...values('E51', 'bankCode', '', null, 'NOBANK', '970436', 970_422),
];

describe('CBK', () => {
  it('CBK-1 refuses outside a sandbox with E75, whatever else is wrong', async () => {
    const { gateway } = await withPartner({ sandbox: false });
    for (const body of [testCallback(), testCallback({ amount: -1 }), []]) {
      const answer = await gateway.post(TEST_CALLBACK, body);
      expect([answer.status, answer.body]).toEqual([400, { status: 'FAILED', message: 'E75' }]);
    }
    expect(await gateway.mock('/payments')).toEqual([]);
  });

  it('CBK-2 ERR-3 ERR-5 LIM-3 LEN-1 refuses to the letter a wrong value with its code', async () => {
    const { gateway, partner } = await withPartner({ strict: true });
    await expectRefused(
      gateway,
      [...WRONG, ...MORE].map(([code, change]) => [TEST_CALLBACK, testCallback(change), code]),
    );
    expect(partner.calls).toEqual([]);
  });

  it('CBK-2 refuses in its order when several things are wrong, and last a partner without an endpoint', async () => {
    const gateway = await testGateway();
    await expectRefusedInOrder(WRONG, (change) => gateway.testCallback(change));
    expect((await gateway.testCallback()).body.message).toBe('E76');
    expect(await gateway.mock('/payments')).toEqual([]);
  });

  it('CBK-3 takes the bankCode of the account, as a name, as a BIN or not at all', async () => {
    const { gateway } = await withPartner();
    for (const bankCode of ['MB', '970422', undefined]) await pay(gateway, { bankCode });
  });

  it('CBK-2 LIM-3 takes 19 characters, and C for a missing transType', async () => {
    const { gateway, callback } = await withPartner();
    await pay(gateway, { content: 'aZ09 '.padEnd(19, 'x'), transType: undefined, amount: 9_999_999_999_999 });
    expect(await callback(1)).toMatchObject({ transType: 'C', amount: 9_999_999_999_999 });
  });

  it('CBK-4 answers the transaction id of a payment that is stored, and calls the partner at once', async () => {
    const { gateway, callback } = await withPartner();
    await gateway.generate({ sign: 's', urlLink: 'https://shop.example/1' });
    const id = await pay(gateway);
    expect(await gateway.mock('/payments')).toMatchObject([{ transactionId: id, orderId: 'DH001', amount: 50_000 }]);
    expect(await callback(1)).toMatchObject({ transactionid: id, orderId: 'DH001', sign: 's' });
  });

  it('CBK-5 makes a new transaction of each call', async () => {
    const { gateway, partner } = await withPartner();
    const ids = await Promise.all(Array.from({ length: 30 }, () => pay(gateway)));
    expect(new Set(ids).size).toBe(30);
    await eventually('30 callbacks', () => partner.calls.length === 30);
    const told = partner.calls.map((it) => (JSON.parse(it.body) as { transactionid: string }).transactionid);
    expect(told.toSorted()).toEqual(ids.toSorted());
  });

  it('CBK-6 pays the newest unpaid order, then the older, then the newest paid one', async () => {
    const { gateway, callback } = await withPartner();
    for (const orderId of ['OLD', 'NEW']) await gateway.generate({ orderId, sign: `sign of ${orderId}` });
    for (const expected of ['NEW', 'OLD', 'NEW']) {
      await pay(gateway);
      expect((await gateway.mock('/payments'))[0]).toMatchObject({ orderId: expected });
    }
    const signs = [await callback(1), await callback(2), await callback(3)].map((it) => it.sign);
    expect(signs.toSorted()).toEqual(['sign of NEW', 'sign of NEW', 'sign of OLD']);
    expect(await gateway.mock('/orders')).toMatchObject([{ status: 'paid' }, { status: 'paid' }]);
  });

  it.each([
    ['amount', { amount: 50_001 }],
    ['content', { content: 'DH002' }],
    ['transType', { transType: 'D' }],
    ['account', { bankAccount: OTHER_ACCOUNT.bankAccount }],
  ])('CBK-6 calls back with an empty orderId and sign when no order has the same %s', async (_name, change) => {
    const { gateway, callback } = await withPartner();
    await gateway.generate({ sign: 's' });
    await pay(gateway, change);
    expect(await callback(1)).toMatchObject({ orderId: '', sign: '', terminalCode: '' });
    expect(await gateway.mock('/orders')).toMatchObject([{ status: 'created' }]);
    expect(await gateway.mock('/payments')).toMatchObject([{ order: null, orderId: '' }]);
  });

  it('CBK-7 tells a credit to the box that last showed the order, with its push', async () => {
    const { gateway, callback } = await withPartner();
    const [one, two] = await Promise.all(
      [BOX1, BOX2].map((identity) => connectFakeBox({ gateway, identity, transport: 'http' })),
    );
    for (const { terminalCode, serialNumber } of [BOX2, BOX1]) {
      expect((await gateway.sendQr({ terminalCode, serialNumber })).body.status).toBe('SUCCESS');
    }
    const transactionId = await pay(gateway);
    const shown = await one?.next('show');
    expect(await one?.next('payment')).toMatchObject({ transactionId, pushId: shown?.pushId, orderId: 'DH001' });
    expect(await callback(1)).toMatchObject({ terminalCode: BOX1.terminalCode });
    expect(two?.of('payment')).toEqual([]);
    expect(await gateway.mock('/payments')).toMatchObject([{ boxes: [{ terminalCode: BOX1.terminalCode }] }]);
  });

  it.each(['connected', 'away'])('CBK-7 takes a paid order back from another box that is %s', async (where) => {
    const { gateway } = await withPartner();
    const connect = (identity: typeof BOX1) => connectFakeBox({ gateway, identity, transport: 'http' });
    const [other, paid] = [await connect(BOX2), await connect(BOX1)];
    for (const { terminalCode, serialNumber } of [BOX2, BOX1]) {
      expect((await gateway.sendQr({ terminalCode, serialNumber })).body.status).toBe('SUCCESS');
    }
    const { pushId } = await other.next('show');
    if (where === 'away') await other.close();
    await pay(gateway);
    const box = where === 'away' ? await connect(BOX2) : other;
    expect(await box.next('withdraw')).toMatchObject({ pushId, why: 'paid' });
    await paid.next('payment');
    expect(paid.of('withdraw')).toEqual([]);
    expect(await gateway.mock('/orders')).toMatchObject([{ status: 'paid' }]);
  });

  it('CBK-7 takes a paid order back from a box that is about to show it', async () => {
    const { gateway } = await withPartner();
    const onShow = () => undefined;
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http', onShow });
    const answer = gateway.sendQr();
    const { pushId } = await box.next('show');
    const transactionId = await pay(gateway);
    expect(await box.next('payment')).toMatchObject({ transactionId, pushId: null });
    expect(await box.next('withdraw')).toMatchObject({ pushId, why: 'paid' });
    expect((await answer).body).toEqual({ status: 'FAILED', message: 'WITHDRAWN' });
  });

  it('CBK-7 tells a credit of no shown order to every box of the account', async () => {
    const { gateway } = await withPartner();
    const boxes = await Promise.all(
      [BOX1, BOX2, BOX4].map((identity) => connectFakeBox({ gateway, identity, transport: 'http' })),
    );
    const transactionId = await pay(gateway);
    for (const box of boxes.slice(0, 2))
      expect(await box.next('payment')).toMatchObject({ transactionId, pushId: null });
    expect(boxes[2]?.of('payment')).toEqual([]);
  });

  it('CBK-7 tells a debit to no box', async () => {
    const { gateway, callback } = await withPartner();
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
    await gateway.sendQr({ qrCode: qrFor() });
    await pay(gateway, { transType: 'D' });
    expect(await callback(1)).toMatchObject({ transType: 'D' });
    const credit = await pay(gateway);
    // Messages to a box keep their order: had the debit been told, it would be here before the credit.
    expect(await box.next('payment')).toMatchObject({ transactionId: credit });
    expect(await gateway.mock('/payments')).toMatchObject([{}, { transType: 'D', boxes: [] }]);
  });
});
