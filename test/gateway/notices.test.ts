import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { connectFakeBox, type FakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import {
  ACCOUNT,
  BOX1,
  BOX2,
  BOX4,
  partnerServer,
  processed,
  type TestGateway,
  type TestOptions,
  testGateway,
} from './harness.ts';

const RESEND_MS = 10_000;

const payingGateway = async (options: TestOptions = {}) =>
  testGateway({ callback: { url: (await partnerServer(processed)).url }, ...options });
const pay = async (gateway: TestGateway, change = {}) => String((await gateway.testCallback(change)).body.message);
const paid = (transactionId: string, recorded = true) =>
  ({ type: 'paid', transactionId, orderId: 'DH001', amount: 50_000, recorded }) as const;
const toldBoxes = async (gateway: TestGateway) => {
  const [payment] = await gateway.mock<{ boxes: { terminalCode: string; recorded: boolean | null }[] }[]>('/payments');
  return payment?.boxes.map((it) => [it.terminalCode, it.recorded]);
};

describe.each(['mqtt', 'http'] as const)('a payment over %s', (transport) => {
  const connecting = (gateway: TestGateway) => (identity: typeof BOX1) =>
    connectFakeBox({ gateway, identity, transport });

  it('CBK-7 a payment is sent to the box that shows the order, with its push', async () => {
    const gateway = await payingGateway();
    const connect = connecting(gateway);
    const [box1, box2] = [await connect(BOX1), await connect(BOX2)];
    await gateway.sendQr();
    const { pushId } = await box1.next('show');
    const transactionId = await pay(gateway);
    const { bankAccount, bankCode } = ACCOUNT;
    const money = { orderId: 'DH001', amount: 50_000, content: 'DH001', bankAccount, bankCode };
    expect(await box1.next('payment')).toMatchObject({ transactionId, pushId, ...money });
    await box1.send(paid(transactionId), transactionId);
    expect((await box1.next('ack')).reportIds).toEqual([transactionId]);
    expect(await toldBoxes(gateway)).toEqual([[BOX1.terminalCode, true]]);
    expect(box2.of('payment')).toEqual([]);
  });

  it('MSG-6 MSG-7 a payment is repeated at each welcome until it is reported, and each report is acknowledged', async () => {
    const gateway = await payingGateway();
    const connect = connecting(gateway);
    const transactionId = await pay(gateway);
    const told: FakeBox[] = [];
    for (let i = 0; i < 2; i += 1) {
      const box = await connect(BOX1);
      expect(await box.next('payment')).toMatchObject({ transactionId, pushId: null });
      told.push(box);
      await box.close();
    }
    const reporting = await connect(BOX1);
    await reporting.next('payment');
    await reporting.send(paid(transactionId, false), transactionId);
    await reporting.next('ack');
    expect(await toldBoxes(gateway)).toEqual([
      [BOX1.terminalCode, false],
      [BOX2.terminalCode, null],
    ]);
    await reporting.send(paid(transactionId), transactionId);
    expect((await reporting.next('ack', 2)).reportIds).toEqual([transactionId]);
    expect((await toldBoxes(gateway))?.[0]).toEqual([BOX1.terminalCode, false]);
    await reporting.close();
    const last = await connect(BOX1);
    await last.send(paid(transactionId), transactionId);
    await last.next('ack');
    expect(last.of('payment')).toEqual([]);
  });
});

it('MSG-7 a payment is repeated every 10 s for as long as the box does not report it', async () => {
  const clock = new VirtualClock();
  const gateway = await payingGateway({ clock });
  const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
  const transactionId = await pay(gateway);
  await box.next('payment');
  await clock.advance(RESEND_MS);
  expect(await box.next('payment', 2)).toMatchObject({ transactionId });
  await box.send(paid(transactionId), transactionId);
  await box.next('ack');
  await clock.advance(3 * RESEND_MS);
  await box.send(paid(transactionId), transactionId);
  await box.next('ack', 2);
  expect(box.of('payment')).toHaveLength(2);
});

/** The payments that a box was told, each once: a slow machine has the gateway say some again. */
const noticesOf = (box: { of(type: 'payment'): { transactionId: string }[] }) => [
  ...new Set(box.of('payment').map(({ transactionId }) => transactionId)),
];

it('MSG-7 a payment waits in the store for a box that has 100 to answer, also when they come while it is there', async () => {
  const gateway = await payingGateway();
  const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
  const ids: string[] = [];
  for (let n = 0; n < 130; n += 1) ids.push(await pay(gateway));
  await eventually('the first hundred', () => noticesOf(box).length === 100);
  expect(noticesOf(box)).toEqual(ids.slice(0, 100));
  for (const id of noticesOf(box)) await box.send(paid(id), id);
  await eventually('the others', () => noticesOf(box).length === 130);
  expect(noticesOf(box)).toEqual(ids);
});

it('MSG-7 payments are sent at most 100 at a time, the oldest first, the others as those are reported', async () => {
  const gateway = await payingGateway();
  const all: string[] = [];
  for (let n = 0; n < 130; n += 1) all.push(await pay(gateway));
  const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
  await eventually('the first hundred', () => noticesOf(box).length === 100);
  for (const id of all.slice(0, 99)) await box.send(paid(id), id);
  await box.next('ack', 99);
  expect(noticesOf(box)).toEqual(all.slice(0, 100));
  await box.send(paid(all[99] ?? ''), all[99] ?? '');
  await eventually('the others', () => noticesOf(box).length === 130);
  expect(noticesOf(box)).toEqual(all);
});

describe('CBK-7', () => {
  it('CBK-7 a payment is sent to every box of the account when no box has shown an order of it', async () => {
    const gateway = await payingGateway();
    const boxes = [];
    for (const identity of [BOX1, BOX2, BOX4]) {
      boxes.push(await connectFakeBox({ gateway, identity, transport: 'mqtt' }));
    }
    const transactionId = await pay(gateway);
    const [box1, box2, box4] = boxes;
    expect(await box1?.next('payment')).toMatchObject({ transactionId, pushId: null, orderId: '' });
    expect(await box2?.next('payment')).toMatchObject({ transactionId, pushId: null });
    expect((await toldBoxes(gateway))?.map(([box]) => box)).toEqual([BOX1.terminalCode, BOX2.terminalCode]);
    expect(box4?.of('payment')).toEqual([]);
  });

  it('CBK-7 a debit is sent to no box', async () => {
    const gateway = await payingGateway();
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    await pay(gateway, { transType: 'D' });
    const credit = await pay(gateway);
    expect((await box.next('payment')).transactionId).toBe(credit);
  });

  it('CBK-4 CBK-7 each call is told as a payment of its own', async () => {
    const gateway = await payingGateway();
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    const ids = [await pay(gateway), await pay(gateway)];
    await box.next('payment', 2);
    expect(box.of('payment').map((it) => it.transactionId)).toEqual(ids);
  });
});

describe('MSG-6', () => {
  it('MSG-6 the gateway acknowledges an end once it is stored, again when it is repeated, and one of a stranger', async () => {
    const gateway = await payingGateway();
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    await gateway.sendQr();
    const { pushId, orderId } = await box.next('show');
    const ended = { type: 'ended', pushId, orderId, how: 'dismissed' } as const;
    const stranger = crypto.randomUUID();
    await box.send(ended, pushId);
    await box.next('ack');
    expect((await gateway.mock('/orders'))[0]).toMatchObject({ status: 'dismissed' });
    await box.send({ ...ended, how: 'expired' }, pushId);
    await box.send({ ...ended, pushId: stranger }, stranger);
    await box.send(paid(stranger), stranger);
    await box.next('ack', 4);
    expect(box.of('ack').map((it) => it.reportIds)).toEqual([[pushId], [pushId], [stranger], [stranger]]);
    expect((await gateway.mock('/orders'))[0]).toMatchObject({ status: 'dismissed' });
    expect(gateway.logged('report-ignored').map((it) => it.type)).toEqual(['ended', 'paid']);
  });

  it('MSG-6 the gateway ignores a report of a payment from a box that was not told', async () => {
    const gateway = await payingGateway();
    const other = await connectFakeBox({ gateway, identity: BOX4, transport: 'mqtt' });
    const transactionId = await pay(gateway);
    await other.send(paid(transactionId), transactionId);
    await other.next('ack');
    await eventually('the stray', () => gateway.log.some((it) => it.event === 'report-ignored'));
    expect((await toldBoxes(gateway))?.map(([, recorded]) => recorded)).toEqual([null, null]);
  });
});
