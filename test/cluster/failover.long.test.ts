import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { shardOf } from '../../src/gateway/common/shard.ts';
import { partnerServer, processed } from '../gateway/harness.ts';
import { eventually } from '../support/net.ts';
import { startReplica } from '../support/postgres.ts';
import { startProxy } from '../support/proxy.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { accountIn, callAt, PARTNER, shardsOf, startMembers, type TestMember } from './members.ts';

const SHARDS = 4;

describe.skipIf(missing)(`members whose PostgreSQL fails over to a standby that lags${note}`, () => {
  const server = postgresServer();

  it('STO-5 no member goes on with a shard that lacks payments, whoever takes it, until an admin accepts that at one', async () => {
    const databaseUrl = await server().database();
    const replica = await startReplica(server());
    onTestFinished(() => replica.remove());
    const proxy = await startProxy({ port: server().port });
    onTestFinished(() => proxy.close());
    const at = (port: number) => Object.assign(new URL(databaseUrl), { port: String(port) }).href;
    const partner = { ...PARTNER, callback: { url: (await partnerServer(processed)).url } };
    const members = { databaseUrl: at(proxy.port), members: 2, shards: SHARDS, accounts: 12, partner };
    const cluster = await startMembers(members);
    // Not the shard of the registry, nor that of the partner's logins: calls to the other shards need both.
    const shard = [1, 2, 3].find((it) => it !== shardOf(PARTNER.username, SHARDS)) ?? 0;
    const isHolder = await Promise.all(cluster.members.map(async (it) => (await shardsOf(it)).includes(shard)));
    const [first, second] = cluster.members.toSorted((a) => (isHolder[cluster.members.indexOf(a)] ? -1 : 1)) as [
      TestMember,
      TestMember,
    ];
    const pay = async (member: TestMember, bankAccount: string) => {
      const { status, body } = await callAt(member, '/bank/api/test/transaction-callback', {
        ...{ bankAccount, content: 'DH1', amount: 5_000, transType: 'C' },
      });
      return { status, id: String(body.message) };
    };
    for (const { bankAccount } of cluster.accounts) expect((await pay(second, bankAccount)).status).toBe(200);
    await replica.catchUp();
    await replica.disconnect();
    const account = accountIn(cluster, [shard]);
    const lost = (await pay(second, account)).id;
    await replica.promote();
    proxy.aim({ port: replica.port });
    proxy.cut();

    const isMissed = ({ log }: TestMember) =>
      log.filter((it) => it.event === 'payment-missing').map((it) => [it.shard, it.transactionId]);
    await eventually('the member to say so', () => isMissed(first).length > 0);
    expect(isMissed(first)).toEqual([[shard, lost]]);
    await eventually('calls to be refused', async () => (await pay(second, account)).status === 503);
    const others = cluster.accounts.filter(({ bankAccount }) => shardOf(bankAccount, SHARDS) !== shard);
    for (const { bankAccount } of others) {
      await eventually('the other shards to go on', async () => (await pay(second, bankAccount)).status === 200);
    }
    const healthOf = async ({ admin }: TestMember) => JSON.stringify((await admin('/healthz')).body);
    await eventually('its health to say so', async () =>
      new RegExp(`shard ${shard}: [^;]*payment \\d+ is missing`).test(await healthOf(first)),
    );

    await first.close();
    const fails = () => second.log.filter((it) => it.event === 'shard-failed' && it.shard === shard);
    await eventually('the other member to refuse it too', () => fails()[0]);
    expect(fails()[0]?.reason).toMatch(/payment \d+ is missing, which had been acknowledged/);
    const database = new URL(databaseUrl).pathname.slice(1);
    const accept = `gateway-${database}-shard-${shard}.accept-loss`;
    await writeFile(join(second.dataDir, accept), '');
    const again = await eventually('payments', async () => {
      const { status, id } = await pay(second, account);
      return status === 200 && id;
    });
    expect(await readdir(second.dataDir)).not.toContain(accept);

    // The first still knows of the payment; that its loss was accepted it finds in the database.
    const third = await cluster.start({ dataDir: first.dataDir });
    await second.close();
    await cluster.whole([third]);
    expect((await pay(third, account)).status).toBe(200);
    const stored = `select id from shard_${shard}.payments where bank_account = '${account}' order by seq`;
    const ids = (await replica.run(at(replica.port), stored)).map(({ id }) => id);
    expect([ids.includes(lost), ids.includes(again)]).toEqual([false, true]);
  });
});
