import { type AddressInfo, createServer } from 'node:net';
import { Aedes } from 'aedes';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { BoxConnection } from '../../src/gateway/boxes/connection.ts';
import type { BoxHub } from '../../src/gateway/boxes/wire.ts';
import type { ActiveFaultView } from '../../src/protocol/faults.ts';
import type { UpMessage } from '../../src/protocol/messages.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { askFaults, faultsOnly, openShop, type Shop } from './faults.ts';
import { BOX1, BOX2, testGateway } from './harness.ts';
import { only } from './stage-records.ts';

const isOnline = async ({ box }: Shop) => (await box.status()).online;
const refused = ({ box }: Shop) => box.logged('message-refused').map((it) => it.code);
const downs = ({ box }: Shop) => box.logged('link-lost').length;

describe.each(['mqtt', 'http'] as const)('faults of a link over %s', (transport) => {
  it('FLT-9 link-cut: the connection is cut as often as is ordered, and the box comes back', async () => {
    const shop = await openShop(transport);
    expect(await shop.inject({ fault: 'link-cut', box: BOX1.terminalCode, times: 2 })).toMatchObject({ happened: 1 });
    await eventually('the second cut', () => shop.happened('link-cut') === 2);
    await eventually('both ends', () => downs(shop) >= 1 && shop.gateway.logged('box-disconnected').length === 2);
    await eventually('the box back', () => shop.gateway.logged('box-connected').length === 3);
    expect(await shop.standing()).toEqual([]);
    await shop.expectNormal();
  });

  it('FLT-9 half-open: nothing comes through either way while no end is seen, and goes on when it ends', async () => {
    const shop = await openShop(transport, { config: { confirmTimeoutMs: 2_000 } });
    const { id } = await shop.inject({ fault: 'half-open', box: BOX1.terminalCode });
    expect(await shop.sell('DH1')).toBe('BOX_TIMEOUT');
    expect([await isOnline(shop), shop.gateway.logged('box-disconnected')]).toEqual([true, []]);
    expect((await shop.box.status()).order).toBeNull();
    await shop.gateway.mock('/orders/DH1/pay', 'POST');
    expect(await shop.standing()).toMatchObject([{ id, happened: 1 }]);
    expect(await shop.box.announcements()).toBe(0);
    await end(shop, id);
    await eventually('the payment', async () => (await shop.box.announcements()) === 1);
    expect(downs(shop)).toBe(0);
    await eventually('the push that was held', async () =>
      (await saidByBox(shop)).some((it) => it === 'shown' || it === 'rejected'),
    );
    await shop.expectNormal();
  });

  it('FLT-9 link-slow: messages take their time, keep their order, and the push is confirmed', async () => {
    const shop = await openShop(transport);
    const { id } = await shop.inject({ fault: 'link-slow', seed: 3 });
    const begunMs = performance.now();
    expect(await shop.sell('DH1')).toBe('');
    expect(performance.now() - begunMs).toBeGreaterThan(100);
    expect(shop.happened('link-slow')).toBeGreaterThanOrEqual(2);
    expect(refused(shop)).toEqual([]);
    await end(shop, id);
    await shop.expectNormal();
  });

  it('FLT-9 link-twice: the same bytes come twice, and the box refuses the second', async () => {
    const shop = await openShop(transport);
    await shop.inject({ fault: 'link-twice', box: BOX1.terminalCode });
    await shop.inject({ fault: 'link-twice', box: BOX2.terminalCode });
    expect(await shop.sell('DH1')).toBe('');
    await eventually('the refusal', () => refused(shop).length > 0);
    expect(refused(shop)).toEqual(['MESSAGE_REPLAYED']);
    expect(await shop.standing()).toMatchObject([{ box: BOX2.terminalCode }]);
    expect((await shop.box.status()).order?.orderId).toBe('DH1');
    await shop.expectNormal();
  });

  it('FLT-9 clock-skew: the calendar is two hours ahead until it ends, and tokens expire by it', async () => {
    const shop = await openShop(transport);
    expect(await shop.sell('DH1')).toBe('');
    const { id } = await shop.inject({ fault: 'clock-skew' });
    expect(await shop.sell('DH2')).toBe('E74');
    await end(shop, id);
    await shop.expectNormal();
    const [created] = await shop.gateway.mock<{ createdAt: string }[]>('/orders');
    expect(Math.abs(Date.parse(created?.createdAt ?? '') - Date.now())).toBeLessThan(600_000);
  });
});

/** The types of what the gateway has heard of boxes. */
async function saidByBox({ gateway }: Shop): Promise<unknown[]> {
  const { entries } = await gateway.mock<{ entries: { to?: string; body?: { type?: string } }[] }>('/wire');
  return entries.filter((it) => it.to === 'gateway').map((it) => it.body?.type);
}

const end = async ({ gateway }: Shop, id: string) =>
  expect((await fetch(`${gateway.origin}/_mock/faults/${id}`, { method: 'DELETE' })).status).toBe(204);

it('FLT-9 broker-killed: the broker is gone for its time, and boxes come back to it at the same address', async () => {
  const shop = await openShop('mqtt');
  const { id } = await shop.inject({ fault: 'broker-killed', seconds: 60 });
  await eventually(
    'the box offline',
    async () => shop.gateway.logged('box-disconnected').length > 0 && !(await isOnline(shop)),
  );
  expect(await shop.sell('DH1')).toBe('BOX_OFFLINE');
  expect((await fetch(`${shop.gateway.origin}/healthz`)).status).toBe(503);
  await end(shop, id);
  await eventually('the gateway back', () => shop.gateway.logged('broker-reconnected').length === 1);
  await shop.expectNormal();
});

it('FLT-9 half-open ordered twice: nothing comes through until the last of them ends', async () => {
  const shop = await openShop('http', { config: { confirmTimeoutMs: 2_000 } });
  const all = await shop.inject({ fault: 'half-open', times: 1 });
  const one = await shop.inject({ fault: 'half-open', box: BOX1.terminalCode });
  await end(shop, all.id);
  expect(await shop.sell('DH1')).toBe('BOX_TIMEOUT');
  expect(shop.box.logged('push-shown')).toEqual([]);
  await end(shop, one.id);
  await shop.expectNormal();
});

it('FLT-9 half-open over http: what the box posts waits too', async () => {
  const gateway = await testGateway();
  const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
  const { body } = await askFaults(gateway, '', 'POST', { fault: 'half-open' });
  let isTaken = false;
  const said = box.send({ type: 'accepted', pushId: crypto.randomUUID() }).then(() => {
    isTaken = true;
  });
  for (let turns = 0; turns < 20; turns += 1) await fetch(`${gateway.origin}/healthz`);
  expect(isTaken).toBe(false);
  expect((await askFaults(gateway, `/${(body as ActiveFaultView).id}`, 'DELETE')).status).toBe(204);
  await said;
});

it('FLT-9 link-slow: each message takes up to a second, and none overtakes another', async () => {
  const { clock, faults, links, connectBox } = faultsOnly();
  expect((await faults.order({ fault: 'link-slow', seed: 5 })).ok).toBe(true);
  const down: number[] = [];
  const up: number[] = [];
  const connection = connectBox(({ sentAtMs }) => down.push(sentAtMs));
  const receive = async (_box: string, _connection: BoxConnection, { sentAtMs }: UpMessage) => up.push(sentAtMs) > 0;
  const news = only<BoxHub['news']>({});
  const move = async () => false;
  const hub = links.hub({ session: () => undefined, receive, disconnected: () => undefined, move, news });
  const numbers = Array.from({ length: 20 }, (_, n) => n);
  for (const n of numbers) {
    const head = { v: 1, id: 'a', sessionId: 's', sentAtMs: n } as const;
    connection.send({ ...head, type: 'ack', reportIds: [] });
    void hub.receive(BOX1.terminalCode, connection, { ...head, type: 'alive' });
  }
  await clock.advance(0);
  expect([down.length, up.length]).toEqual([0, 0]);
  await clock.advance(1_000);
  expect([down, up]).toEqual([numbers, numbers]);
});

describe('at a gateway whose broker is another', () => {
  it('FLT-2 FLT-9 connections of an external broker are not cut, held or killed; those over HTTP are', async () => {
    const aedes = await Aedes.createBroker();
    const server = createServer(aedes.handle);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      aedes.close();
      server.close();
    });
    const url = `mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const shop = await openShop('http', { config: { mqtt: { url } } });
    for (const fault of ['link-cut', 'half-open', 'broker-killed'] as const) {
      const refusal = await askFaults(shop.gateway, '', 'POST', { fault });
      expect(refusal).toMatchObject({ status: 400, body: { message: 'E46', reason: expect.stringContaining(fault) } });
    }
    const other = { fault: 'link-cut', box: BOX2.terminalCode };
    expect((await askFaults(shop.gateway, '', 'POST', other)).status).toBe(400);
    await shop.inject({ fault: 'link-cut', box: BOX1.terminalCode });
    await eventually('the cut', () => shop.gateway.logged('box-disconnected').length === 1);
    await shop.expectNormal();
  });
});
