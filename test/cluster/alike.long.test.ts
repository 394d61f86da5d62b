import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startPartnerServer } from '../../src/bench/engine/clients/partner-server.ts';
import { CREDIT_PATH } from '../../src/gateway/cluster/credit-carrier.ts';
import { CLIENT_HEADER, OWN_HEADER, SECRET_HEADER, SHARD_HEADER } from '../../src/gateway/cluster/peers.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { newSecret } from '../../src/protocol/secret.ts';
import { temporaryFolder } from '../support/net.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { accountIn, PARTNER, shardsOf, startMembers, type TestMember, tokenAt } from './members.ts';

const ALL = [0, 1, 2, 3];

describe.skipIf(missing)(`a member that is not like the others${note}`, () => {
  const server = postgresServer();
  const open = async (config: Record<string, unknown> = {}, partner: object = PARTNER) => {
    const databaseUrl = await server().database();
    const cluster = await startMembers({ databaseUrl, members: 1, shards: ALL.length, accounts: 12, partner, config });
    const [member] = cluster.members as [TestMember];
    return { cluster, member, databaseUrl };
  };
  const folderWithKey = async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'registry.key'), `${systemRandom.secret(32)}\n`, { mode: 0o600 });
    return folder;
  };

  it.each([
    ['another basePath', async () => ({ basePath: '/bank' }), /^basePath: expected \/vqr, as the member at .+ has it/],
    [
      'another mode',
      async () => ({ sandbox: false, mode: 'live', publicUrl: 'https://pay.example' }),
      /^mode: expected sandbox/,
    ],
    ['a registry.key', async () => ({ dataDir: await folderWithKey() }), /^registry.key in dataDir: expected none/],
  ])('SHA-4 does not join with %s, and takes no shard away', async (_what, change, reason) => {
    const { cluster, member } = await open();
    await expect(cluster.start(await change())).rejects.toThrow(reason);
    await cluster.whole([member]);
    expect((await shardsOf(member)).toSorted()).toEqual(ALL);
  });

  it('SHA-4 a member accepts no payment in a shard that its account does not belong to, whoever forwarded it', async () => {
    const receiver = await startPartnerServer();
    onTestFinished(() => receiver.close());
    const partner = { ...PARTNER, callback: { url: receiver.url } };
    const { cluster, member, databaseUrl } = await open({}, partner);
    const [row] = await server().run(databaseUrl, 'select secret from cluster.settings');
    const { token } = await tokenAt(member);
    const bankAccount = accountIn(cluster, [1]);
    const paid = { bankAccount, bankCode: 'MB', content: 'DH1', amount: 5_000, transType: 'C' };
    const answers = [0, 1].map((shard) =>
      fetch(`${member.baseUrl}/bank/api/test/transaction-callback`, {
        method: 'POST',
        headers: {
          ...{ authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          ...{ [SECRET_HEADER]: String(row?.secret), [SHARD_HEADER]: String(shard), [CLIENT_HEADER]: '127.0.0.1' },
        },
        body: JSON.stringify(paid),
      }),
    );
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([500, 200]);
    const told = { sourceId: '1', reference: 'FT1', bankAccount, virtualAccount: '', amount: 5_000, text: 'DH1' };
    const task = { task: 'store', told: { source: 'sepay', credit: { ...told, bankTimeMs: null }, caughtUp: false } };
    const secret = String(row?.secret);
    const carried = await fetch(`${member.origin}${CREDIT_PATH}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        [SECRET_HEADER]: secret,
        [OWN_HEADER]: secret,
        [SHARD_HEADER]: '0',
      },
      body: JSON.stringify(task),
    });
    expect(carried.status).toBe(500);
    const { body } = await member.admin('/_mock/payments');
    expect(body).toHaveLength(1);
  });

  it('a member joins once its registry.key is the same; and no first member starts with another one', async () => {
    const dataDir = await folderWithKey();
    const { cluster, member } = await open({ dataDir });
    const box = { terminalCode: 'VVB777777', serialNumber: 'VVB888888', secret: newSecret(systemRandom) };
    expect((await member.admin('/admin/v1/boxes', 'POST', box)).status).toBe(201);
    const same = await temporaryFolder();
    await copyFile(join(dataDir, 'registry.key'), join(same, 'registry.key'));
    const second = await cluster.start({ dataDir: same });
    await cluster.whole([member, second]);
    await Promise.all([member.close(), second.close()]);
    for (const wrong of [await folderWithKey(), await temporaryFolder()]) {
      await expect(cluster.start({ dataDir: wrong })).rejects.toThrow(/registry.key is (missing|another key)/);
    }
  });
});
