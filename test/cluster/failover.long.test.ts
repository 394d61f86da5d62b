import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { partnerServer, processed } from '../gateway/harness.ts';
import { eventually } from '../support/net.ts';
import { startReplica } from '../support/postgres.ts';
import { startProxy } from '../support/proxy.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { callAt, PARTNER, startGateways, type TestGateway } from './gateways.ts';

describe.skipIf(missing)(`gateways whose PostgreSQL fails over to a standby that lags${note}`, () => {
  const server = postgresServer();

  it('STO-5 no gateway goes on with a database that lacks payments, until an admin accepts that at one', async () => {
    const databaseUrl = await server().database();
    const replica = await startReplica(server());
    onTestFinished(() => replica.remove());
    const proxy = await startProxy({ port: server().port });
    onTestFinished(() => proxy.close());
    const at = (port: number) => Object.assign(new URL(databaseUrl), { port: String(port) }).href;
    const partner = { ...PARTNER, callback: { url: (await partnerServer(processed)).url } };
    const cluster = await startGateways({ databaseUrl: at(proxy.port), gateways: 2, partner });
    const [first, second] = cluster.gateways as [TestGateway, TestGateway];
    const account = cluster.accounts[0]?.bankAccount ?? '';
    const pay = async (gateway: TestGateway) => {
      const { status, body } = await callAt(gateway, '/bank/api/test/transaction-callback', {
        ...{ bankAccount: account, content: 'DH1', amount: 5_000, transType: 'C' },
      });
      return { status, id: String(body.message) };
    };
    for (const gateway of [first, second]) expect((await pay(gateway)).status).toBe(200);
    await replica.catchUp();
    await replica.disconnect();
    // Only the second one remembers this payment.
    const lost = (await pay(second)).id;
    await replica.promote();
    proxy.aim({ port: replica.port });
    proxy.cut();

    const missed = () => second.log.filter((it) => it.event === 'payment-missing').map((it) => it.transactionId);
    await eventually('the gateway to say so', () => missed().length > 0);
    expect(missed()).toEqual([lost]);
    // It has left word in the database.
    for (const gateway of [first, second]) {
      await eventually('calls to be refused', async () => (await pay(gateway).catch(() => undefined))?.status !== 200);
    }
    await Promise.all([first.close(), second.close()]);
    const files = await cluster.fileOf({ dataDir: second.dataDir });
    const refused = `payment 2 of gateway ${second.name} is missing, which had been acknowledged`;
    await expect(cluster.start({ dataDir: second.dataDir, cluster: files.cluster })).rejects.toThrow(refused);
    const database = new URL(databaseUrl).pathname.slice(1);
    const accept = `gateway-${database}.accept-loss`;
    await writeFile(join(second.dataDir, accept), '');
    const again = await cluster.start({ dataDir: second.dataDir });
    const paid = await eventually('payments', async () => {
      const { status, id } = await pay(again);
      return status === 200 && id;
    });
    expect(await readdir(second.dataDir)).not.toContain(accept);
    const third = await cluster.start({ dataDir: first.dataDir });
    expect((await pay(third)).status).toBe(200);
    const ids = (await replica.run(at(replica.port), 'select id from payments order by seq')).map(({ id }) => id);
    expect([ids.includes(lost), ids.includes(paid)]).toEqual([false, true]);
  });
});
