import { describe, expect, it } from 'vitest';
import { PATHS } from '../../src/protocol/http-api.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { checkOrder, partnerServer, processed, type TestGateway } from './harness.ts';
import { hookedGateway, sepayBody, tellHook } from './hooks.ts';

/** A shop in its sandbox, and the same shop once it takes money. */
async function shop() {
  const partner = await partnerServer(processed);
  const options = { dataDir: await temporaryFolder(), callback: { url: partner.url } };
  const told = () => partner.calls.map(({ body }) => JSON.parse(body) as Record<string, unknown>);
  return {
    told,
    sandbox: (config = {}) => hookedGateway({ ...options, config }),
    live: (config = {}) => hookedGateway({ ...options, config: { ...config, sandbox: false } }),
  };
}

async function pay(gateway: TestGateway, id: number, content: string, transferAmount: number): Promise<void> {
  const body = sepayBody({ id, referenceCode: `FT${id}`, content, transferAmount });
  expect((await tellHook(gateway, body)).status).toBe(200);
}

async function ordersOf(gateway: TestGateway): Promise<unknown[]> {
  return (await gateway.mock('/orders')).map(({ orderId, status, paidAmount }) => [orderId, status, paidAmount]);
}

describe('MOD-3 once a gateway takes money, what its sandbox had', () => {
  it('MAT-5 SYN-11 CHK-3 a test payment counts in no sum of an order at a live gateway, nor as its payment', async () => {
    const { told, sandbox, live } = await shop();
    const before = await sandbox();
    for (const orderId of ['OPEN', 'FULL']) await before.generate({ orderId, content: orderId, amount: 100_000 });
    await pay(before, 1, 'nothing', 40_000);
    await pay(before, 2, 'FULL', 100_000);
    expect(await ordersOf(before)).toEqual([
      ['FULL', 'paid', 100_000],
      ['OPEN', 'created', 0],
    ]);
    await eventually('callbacks', () => told().length === 2);
    await before.close();

    const gateway = await live();
    expect(await ordersOf(gateway)).toEqual([
      ['FULL', 'cancelled', 0],
      ['OPEN', 'created', 0],
    ]);
    const check = async (change: Record<string, unknown>) =>
      (await gateway.post(PATHS.checkOrder, checkOrder(change))).body;
    expect(await check({ value: 'FULL' })).toMatchObject([{ orderId: 'FULL', status: 2, referenceNumber: '' }]);
    expect(await check({ type: 1, value: 'FT2' })).toMatchObject({ message: 'E96' });

    await pay(gateway, 3, 'FULL', 100_000);
    expect(await check({ value: 'FULL' })).toMatchObject([{ status: 1, referenceNumber: 'FT3' }]);
    expect((await ordersOf(gateway))[0]).toEqual(['FULL', 'paid', 100_000]);
    await eventually('callback', () => told().length === 3);
    expect(told()[2]).toMatchObject({ referencenumber: 'FT3', orderId: 'FULL' });
    expect(told()[2]).not.toHaveProperty('orderPaid');
    const credits = (await gateway.mock('/credits')).map(({ reference, test, due }) => [reference, test, due]);
    expect(credits).toEqual([
      ['FT3', false, null],
      ['FT2', true, null],
      ['FT1', true, null],
    ]);
  });

  it('MAT-2 MAT-5 a test payment is missing from an order that it paid in part, and the money is not taken for the whole', async () => {
    const { told, sandbox, live } = await shop();
    const code = { contentPrefix: 'code' };
    const before = await sandbox(code);
    const { body } = await before.generate({ orderId: 'HALF', content: '', amount: 100_000 });
    await pay(before, 1, String(body.content), 40_000);
    expect(await ordersOf(before)).toEqual([['HALF', 'created', 40_000]]);
    await eventually('callback', () => told().length === 1);
    await before.close();

    const gateway = await live(code);
    await pay(gateway, 2, String(body.content), 60_000);
    expect(await ordersOf(gateway)).toEqual([['HALF', 'created', 60_000]]);
    await eventually('callback', () => told().length === 2);
    expect(told()[1]).toMatchObject({ orderAmount: 100_000, orderPaid: 60_000 });
    await pay(gateway, 3, String(body.content), 40_000);
    expect(await ordersOf(gateway)).toEqual([['HALF', 'paid', 100_000]]);
    await gateway.close();

    const again = await sandbox(code);
    await pay(again, 4, String(body.content), 1_000);
    expect(await ordersOf(again)).toEqual([['HALF', 'paid', 141_000]]);
  });

  it('SYN-5 a test payment is not sent to a partner again by a live gateway, and the lists count it as a test', async () => {
    const { told, sandbox, live } = await shop();
    const before = await sandbox();
    await pay(before, 1, 'nothing', 40_000);
    await eventually('callback', () => told().length === 1);
    const [{ id } = {}] = await before.mock('/callbacks');
    expect((await resend(before, id)).status).toBe(200);
    await before.close();

    const gateway = await live();
    expect(await gateway.mock('/callbacks')).toMatchObject([{ id, test: true }]);
    expect(await resend(gateway, id)).toMatchObject({ status: 400, body: { message: 'E75' } });
    await pay(gateway, 2, 'nothing', 50_000);
    await eventually('callback', () => told().length === 3);
    expect(told().map(({ amount }) => amount)).toEqual([40_000, 40_000, 50_000]);
    const [money] = await gateway.mock('/callbacks');
    expect(money).toMatchObject({ test: false });
    expect((await resend(gateway, money?.id)).status).toBe(200);
  });
});

async function resend({ origin }: TestGateway, id: unknown): Promise<{ status: number; body: unknown }> {
  const answer = await fetch(`${origin}/_mock/callbacks/${id}/resend`, { method: 'POST' });
  return { status: answer.status, body: await answer.json() };
}
