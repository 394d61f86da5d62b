import { request } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { shardOf } from '../../src/gateway/common/shard.ts';
import { openPage } from '../gateway/page.ts';
import { eventually } from '../support/net.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import {
  ADMIN_TOKEN,
  accountIn,
  generate,
  type Health,
  type Members,
  shardsOf,
  startMembers,
  type TestMember,
} from './members.ts';

const browser = without(PROGRAMS.chromium);
const SHARDS = 6;

/** A reader of the console's events. */
async function watch(member: TestMember) {
  const topics: string[] = [];
  const over = new AbortController();
  const answer = await fetch(`${member.origin}/_mock/events`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    signal: over.signal,
  });
  const ended = (async () => {
    let rest = '';
    for await (const chunk of answer.body ?? []) {
      const lines = `${rest}${Buffer.from(chunk).toString()}`.split('\n');
      rest = lines.pop() ?? '';
      topics.push(...lines.flatMap((it) => /^data: (.+)$/.exec(it)?.[1] ?? []));
    }
  })().catch(() => undefined);
  onTestFinished(async () => {
    over.abort();
    await ended;
  });
  return { status: answer.status, topics, ended };
}

/** Generates orders in this shard; the reader hears of each. More than there are streams that open: each tells of all lists once. */
async function hearsOf(reader: { topics: string[] }, cluster: Members, at: TestMember, shard: number): Promise<void> {
  for (let n = 0; n <= SHARDS; n += 1) {
    reader.topics.length = 0;
    expect(await generate(at, accountIn(cluster, [shard]))).toBe(200);
    await eventually(`order ${n}`, () => reader.topics.includes('orders'));
  }
}

describe.skipIf(missing)(`the console of a cluster${note}`, () => {
  const server = postgresServer();

  it('SHA-6 one member streams the events of all shards, also after a member has gone and another has come', async () => {
    const cluster = await startMembers({
      databaseUrl: await server().database(),
      members: 2,
      shards: SHARDS,
      accounts: 30,
    });
    const [first, second] = cluster.members as [TestMember, TestMember];
    expect((await fetch(`${first.origin}/_mock/events`)).status).toBe(401);
    const reader = await watch(first);
    expect(reader.status).toBe(200);
    const [own = 0] = await shardsOf(first);
    const [others = 0] = await shardsOf(second);
    await hearsOf(reader, cluster, first, own);
    await hearsOf(reader, cluster, second, others);
    await second.close();
    await cluster.whole([first]);
    await hearsOf(reader, cluster, first, others);
    reader.topics.length = 0;
    const third = await cluster.start();
    await eventually('the cluster in the events', () => reader.topics.includes('cluster'));
    await cluster.whole([first, third]);
    const moved = await shardsOf(third);
    expect(moved.length).toBeGreaterThan(0);
    // A shard that has moved may have changed meanwhile: every list is read again.
    await eventually('all lists', () =>
      ['orders', 'boxes', 'payments', 'faults'].every((it) => reader.topics.includes(it)),
    );
    await hearsOf(reader, cluster, third, moved[0] ?? 0);
    const { body } = await third.admin('/healthz');
    expect(Object.keys((body as Health).cluster.holders)).toHaveLength(SHARDS);
  });

  it('SHA-6 a member drops a reader who does not read, and keeps the others', async () => {
    const cluster = await startMembers({ databaseUrl: await server().database(), members: 1, shards: 2 });
    const [only] = cluster.members as [TestMember];
    const readers = await Promise.all(Array.from({ length: 100 }, () => watch(only)));
    let isOver = false;
    void readers[0]?.ended.then(() => {
      isOver = true;
    });
    const more = await watch(only);
    expect(more.status).toBe(200);
    await eventually('the oldest reader to be ended', () => isOver);
    const { port } = new URL(only.origin);
    // One who goes leaves nothing behind.
    const quick = request({ port, path: '/_mock/events', headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
    quick.on('error', () => undefined);
    quick.end();
    quick.once('response', () => quick.destroy());
    await hearsOf(more, cluster, only, shardOf(cluster.accounts[0]?.bankAccount ?? '', 2));
  });

  it('SHA-6 lists and sums of a member are those of all shards', async () => {
    const cluster = await startMembers({
      databaseUrl: await server().database(),
      members: 2,
      shards: SHARDS,
      accounts: 12,
    });
    const [first, second] = cluster.members as [TestMember, TestMember];
    for (const { bankAccount } of cluster.accounts) expect(await generate(second, bankAccount)).toBe(200);
    const { body } = await first.admin('/_mock/orders');
    expect(body).toHaveLength(12);
    const { body: owed } = await first.admin('/_mock/callbacks/backlog');
    expect(owed).toEqual({ waiting: 0, failed: 0, oldestWaitingSeconds: 0, partners: [] });
    const resent = await first.admin('/_mock/callbacks/resend', 'POST', {});
    expect(resent).toEqual({ status: 202, body: { status: 'SUCCESS', message: '', callbacks: 0, more: false } });
    const csv = await fetch(`${first.origin}/admin/v1/sales.csv`, {
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    });
    expect([csv.status, csv.headers.get('content-disposition')]).toEqual([200, expect.stringContaining('sales-')]);
    expect(await csv.text()).toMatch(/^time,.*\r\nsum,,,0,,,,,\r\n$/);
    const [box] = cluster.boxes;
    expect((await second.admin(`/_mock/boxes/${box?.terminalCode}`)).body).toMatchObject({
      terminalCode: box?.terminalCode,
    });
  });

  it.skipIf(browser.missing)(
    `the console of a cluster shows what all shards have, and who runs them${browser.note}`,
    async () => {
      const cluster = await startMembers({
        databaseUrl: await server().database(),
        members: 2,
        shards: SHARDS,
        accounts: 8,
      });
      const [first, second] = cluster.members as [TestMember, TestMember];
      const page = await openPage(`${first.origin}/`);
      await page.becomes(`!document.getElementById('gate').hidden`);
      await page.evaluate(`sessionStorage.setItem('token', ${JSON.stringify(ADMIN_TOKEN)}); location.reload()`);
      await page.becomes(`document.getElementById('live').textContent === 'connected'`);
      for (const { terminalCode } of cluster.boxes) await page.shows(terminalCode);
      await page.shows(`2 members, ${SHARDS} shards`);
      for (const { origin } of cluster.members) await page.shows(origin);
      for (const [n, { bankAccount }] of cluster.accounts.entries()) {
        expect(await generate(n % 2 === 0 ? first : second, bankAccount, `LIVE${n}`)).toBe(200);
        await page.shows(`LIVE${n}`);
      }
      await first.admin('/_mock/faults', 'POST', { fault: 'push-lost' });
      await page.becomes(`document.getElementById('faults-count').textContent === '1 ordered'`);
      await second.close();
      await page.shows(`1 members, ${SHARDS} shards`);
      await page.becomes(`!document.body.innerText.includes(${JSON.stringify(second.origin)})`);
    },
  );
});
