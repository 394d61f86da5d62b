import { describe, expect, it } from 'vitest';
import { connectFakeBox } from '../support/fake-box.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { startGateways, type TestGateway } from './gateways.ts';

describe.skipIf(missing)(`the registry of gateways of one database${note}`, () => {
  const server = postgresServer();

  it('REG-4 keeps an account while an order of it is on a box, at whichever gateway', async () => {
    const databaseUrl = await server().database();
    const cluster = await startGateways({ databaseUrl, gateways: 2, config: { registry: 'store' } });
    const [first, second] = cluster.gateways as [TestGateway, TestGateway];
    for (const [n, holder] of [first, second].entries()) {
      const identity = cluster.boxes[n] ?? expect.fail('no box');
      const { terminalCode, account } = identity;
      const gateway = { origin: holder.origin, mqttUrl: undefined };
      const box = await connectFakeBox({ gateway, identity, transport: 'http' });
      const sale = await first.admin('/admin/v1/sales', 'POST', { amount: 5_000, terminalCode });
      expect([sale.status, box.of('show')]).toMatchObject([201, [{ amount: 5_000 }]]);
      // It goes on to show the QR, and hears of nothing.
      box.vanish();
      expect((await first.admin(`/admin/v1/boxes/${terminalCode}/unlink`, 'POST', {})).status).toBe(200);
      expect(await second.admin(`/admin/v1/accounts/${account}`, 'DELETE')).toMatchObject({
        status: 409,
        body: { message: 'STILL_IN_USE', reason: 'an order of it is on a box: cancel it first' },
      });
      const { id } = sale.body as { id: string };
      expect((await second.admin(`/admin/v1/sales/${id}/cancel`, 'POST', {})).status).toBe(200);
      expect((await first.admin(`/admin/v1/accounts/${account}`, 'DELETE')).status).toBe(200);
    }
  });
});
