import { describe, expect, it } from 'vitest';
import { connectFakeBox } from '../support/fake-box.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { accountIn, startMembers, type TestMember } from './members.ts';

describe.skipIf(missing)(`the registry of a cluster${note}`, () => {
  const server = postgresServer();

  it('REG-4 keeps an account while an order of it is on a box, in whichever shard', async () => {
    const databaseUrl = await server().database();
    const config = { registry: 'store' };
    const cluster = await startMembers({ databaseUrl, members: 1, shards: 4, accounts: 12, config });
    const [member] = cluster.members as [TestMember];
    for (const shard of [0, 2]) {
      const account = accountIn(cluster, [shard]);
      const identity = cluster.boxes.find((it) => it.account === account) ?? expect.fail('no box');
      const gateway = { origin: member.origin, mqttUrl: undefined };
      const box = await connectFakeBox({ gateway, identity, transport: 'http' });
      const { terminalCode } = identity;
      const sale = await member.admin('/admin/v1/sales', 'POST', { amount: 5_000, terminalCode });
      expect([sale.status, box.of('show')]).toMatchObject([201, [{ amount: 5_000 }]]);
      // It goes on to show the QR, and hears of nothing.
      box.vanish();
      expect((await member.admin(`/admin/v1/boxes/${terminalCode}/unlink`, 'POST', {})).status).toBe(200);
      expect(await member.admin(`/admin/v1/accounts/${account}`, 'DELETE')).toMatchObject({
        status: 409,
        body: { message: 'STILL_IN_USE', reason: 'an order of it is on a box: cancel it first' },
      });
      const { id } = sale.body as { id: string };
      expect((await member.admin(`/admin/v1/sales/${id}/cancel`, 'POST', {})).status).toBe(200);
      expect((await member.admin(`/admin/v1/accounts/${account}`, 'DELETE')).status).toBe(200);
    }
  });
});
