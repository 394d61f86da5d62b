import { describe, expect, it } from 'vitest';
import { Shards } from '../../src/gateway/cluster/shards.ts';
import type { News } from '../../src/gateway/common/shard.ts';
import type { Gateway } from '../../src/gateway/gateway.ts';
import type { ClusterDatabase } from '../../src/gateway/store/engines/cluster-database.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { only } from '../gateway/stage-records.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually } from '../support/net.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { accountIn, callAt, PARTNER, startMembers, type TestMember } from './members.ts';

const CHECKED_MS = 20_000;

describe.skipIf(missing)(`a change of the registry whose news is lost${note}`, () => {
  const server = postgresServer();

  it('REG-5 SHA-2 a change of the registry whose news is lost reaches the sessions that it concerns, and no other', async () => {
    const databaseUrl = await server().database();
    const cluster = await startMembers({ databaseUrl, members: 1, shards: 4, accounts: 12 });
    const [member] = cluster.members as [TestMember];
    const ofShard = (shard: number) => cluster.boxes.find((it) => it.account === accountIn(cluster, [shard]));
    const [same, moved, removed, renamed] = [0, 1, 2, 3].map((shard) => ofShard(shard) ?? expect.fail('no box'));
    const connected = await Promise.all(
      [same, moved, removed, renamed].map((identity) => {
        if (identity === undefined) return expect.fail('no box');
        return connectFakeBox({ gateway: { origin: member.origin, mqttUrl: undefined }, identity, transport: 'http' });
      }),
    );
    const refusals = () =>
      connected.map(({ received }) => received.flatMap((it) => (it.type === 'refused' ? it.code : [])));
    for (const sql of [
      `update shard_0.boxes set account = '${same?.account}' where terminal_code = '${moved?.terminalCode}'`,
      `delete from shard_0.boxes where terminal_code = '${removed?.terminalCode}'`,
      `update shard_0.accounts set user_bank_name = 'ANOTHER' where bank_account = '${renamed?.account}'`,
    ]) {
      await server().run(databaseUrl, sql);
    }
    // As a member does whose file was changed.
    await member.heed({ about: 'registry' });
    await eventually('the refusals', () => refusals().flat().length === 3, CHECKED_MS);
    expect(refusals()).toEqual([[], ['SESSION_ENDED'], ['NOT_REGISTERED'], ['SESSION_ENDED']]);
  });

  it('REG-5 SHA-2 a change of the registry reaches a member that was out of touch', async () => {
    const databaseUrl = await server().database();
    const cluster = await startMembers({ databaseUrl, members: 1, shards: 4, accounts: 12 });
    const [member] = cluster.members as [TestMember];
    const [was, is] = [accountIn(cluster, [1]), accountIn(cluster, [2])];
    const identity = cluster.boxes.find(({ account }) => account === was) ?? expect.fail('no box');
    const gateway = { origin: member.origin, mqttUrl: undefined };
    const first = await connectFakeBox({ gateway, identity, transport: 'http' });
    expect(first.of('welcome')[0]?.link?.bankAccount).toBe(was);
    await server().run(
      databaseUrl,
      `update shard_0.boxes set account = '${is}' where terminal_code = '${identity.terminalCode}'`,
    );
    await server().stop();
    const isLost = () => member.log.some(({ event }) => event === 'cluster-database-lost');
    await eventually('the member to miss its database', isLost);
    await server().start();
    await eventually('the end of its session', () => first.of('refused')[0]?.code === 'SESSION_ENDED', CHECKED_MS);
    await first.close();
    const second = await connectFakeBox({ gateway, identity, transport: 'http' });
    expect(second.of('welcome')[0]?.link?.bankAccount).toBe(is);
  });
});

describe.skipIf(missing)(`a box that is linked to an account of another shard${note}`, () => {
  const server = postgresServer();

  it('MSG-14 a box that is linked to an account of another shard is no new box there: what came for it in between is news', async () => {
    const databaseUrl = await server().database();
    const callback = { url: 'http://127.0.0.1:9/sync' };
    const partner = { ...PARTNER, callback };
    const cluster = await startMembers({ databaseUrl, members: 1, shards: 4, accounts: 12, partner });
    const [member] = cluster.members as [TestMember];
    const [was, is] = [accountIn(cluster, [1]), accountIn(cluster, [2])];
    const identity = cluster.boxes.find(({ account }) => account === was) ?? expect.fail('no box');
    const gateway = { origin: member.origin, mqttUrl: undefined };
    const first = await connectFakeBox({ gateway, identity, transport: 'http' });
    await first.close();
    const change = `update shard_0.boxes set account = '${is}' where terminal_code = '${identity.terminalCode}'`;
    await server().run(databaseUrl, change);
    await member.heed({ about: 'registry' });
    const money = { bankAccount: is, content: 'NEWS', amount: 5_000, transType: 'C' };
    const paid = await callAt(member, '/bank/api/test/transaction-callback', money);
    const second = await connectFakeBox({ gateway, identity, transport: 'http' });
    expect(await second.next('payment')).toMatchObject({ transactionId: paid.body.message, late: false });
  });
});

it('a shard that has opened applies the news that it missed meanwhile', async () => {
  const heard: string[] = [];
  const gateway = { heed: async ({ about }: News) => void heard.push(about), close: async () => undefined };
  const shards = new Shards({
    ...{ clock: systemClock, log: keptLog().log, member: 'a', count: 1 },
    database: only<ClusterDatabase>({ endHolder: async () => undefined }),
    start: async () => gateway as unknown as Gateway,
    changed: () => undefined,
  });
  shards.follow({ members: [{ id: 'a', url: 'http://a', file: '', alike: {}, leaving: false }], holders: new Map() });
  await shards.settled();
  expect(heard).toEqual(['registry', 'signing-key']);
});
