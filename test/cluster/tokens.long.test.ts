import { describe, expect, it } from 'vitest';
import { openStream } from '../gateway/admin.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { startGateways, type TestGateway } from './gateways.ts';

describe.skipIf(missing)(`tokens at gateways of one database${note}`, () => {
  const server = postgresServer();

  it('ROL-1 ROL-4 ROL-5 THR-38 tokens hold at every gateway, for the boxes of every gateway, and end at every gateway', async () => {
    const databaseUrl = await server().database();
    const cluster = await startGateways({ databaseUrl, gateways: 2 });
    const [first, second] = cluster.gateways as [TestGateway, TestGateway];
    // Two boxes, each at another gateway.
    const boxes = await Promise.all(
      cluster.gateways.map(async (gateway, n) => {
        const box = cluster.boxes[n] ?? expect.fail('no box');
        await connectFakeBox({
          ...{ gateway, identity: box, transport: 'http' },
          onShow: (it, show) => void it.shown(show),
        });
        return box.terminalCode;
      }),
    );
    const [own = '', other = ''] = boxes;
    const made = async (body: object) => {
      const { status, body: answer } = await first.admin('/admin/v1/tokens', 'POST', body);
      expect(status).toBe(201);
      return String((answer as { token: string }).token);
    };
    const till = await made({ name: 'till', role: 'cashier', boxes: [own] });
    const books = await made({ name: 'books', role: 'viewer' });
    const call = async (gateway: TestGateway, token: string, path: string, method = 'GET', body?: object) => {
      const answer = await fetch(`${gateway.origin}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
      });
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
    };
    const sales = '/admin/v1/sales';
    const sold = await call(second, till, sales, 'POST', { amount: 50_000, terminalCode: own });
    expect([sold.status, sold.body.soldBy]).toEqual([201, 'till']);
    const { status } = await first.admin(sales, 'POST', { amount: 70_000, terminalCode: other });
    expect(status).toBe(201);
    for (const gateway of cluster.gateways) {
      expect((await call(gateway, till, sales)).body).toMatchObject({ sales: 1, rows: [{ terminalCode: own }] });
      expect((await call(gateway, books, sales)).body).toMatchObject({ sales: 2 });
      expect((await call(gateway, till, sales, 'POST', { amount: 1, terminalCode: other })).body.message).toBe('E35');
      for (const path of ['/_mock/orders', '/_mock/events', '/admin/v1/boxes', '/_mock/callbacks/backlog']) {
        expect([path, (await call(gateway, till, path)).status]).toEqual([path, 403]);
      }
    }
    const cancelled = await call(second, till, `${sales}/${String(sold.body.id)}/cancel`, 'POST');
    expect([cancelled.status, cancelled.body.status]).toEqual([200, 'cancelled']);
    const { body: audit } = await second.admin('/admin/v1/audit?limit=1');
    expect(audit).toMatchObject([{ who: 'till', what: 'cancelled', target: `sales/${String(sold.body.id)}` }]);

    const streams = await Promise.all(
      cluster.gateways.map((gateway) => openStream(`${gateway.origin}/_mock/events`, books)),
    );
    expect(streams.map((it) => it.status)).toEqual([200, 200]);
    expect((await second.admin('/admin/v1/tokens/books', 'DELETE')).status).toBe(200);
    await Promise.all(streams.map((it) => it.ended));
    for (const gateway of cluster.gateways) expect((await call(gateway, books, '/_mock/orders')).status).toBe(401);
  });
});
