import { request } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openPage } from '../gateway/page.ts';
import { eventually } from '../support/net.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { ADMIN_TOKEN, type Gateways, generate, startGateways, type TestGateway } from './gateways.ts';

const browser = without(PROGRAMS.chromium);
/** More than the streams that open, each of which tells of all lists once. */
const ORDERS = 7;

/** A reader of the console's events. */
async function watch(gateway: TestGateway) {
  const topics: string[] = [];
  const over = new AbortController();
  const answer = await fetch(`${gateway.origin}/_mock/events`, {
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

/** Generates orders at a gateway; the reader hears of each. */
async function hearsOf(reader: { topics: string[] }, cluster: Gateways, at: TestGateway): Promise<void> {
  for (let n = 0; n < ORDERS; n += 1) {
    reader.topics.length = 0;
    expect(await generate(at, cluster.accounts[0]?.bankAccount ?? '')).toBe(200);
    await eventually(`order ${n}`, () => reader.topics.includes('orders'));
  }
}

describe.skipIf(missing)(`the console of gateways of one database${note}`, () => {
  const server = postgresServer();

  it('SHA-6 one gateway streams the events of all, also after one has gone and another has come', async () => {
    const cluster = await startGateways({ databaseUrl: await server().database(), gateways: 2 });
    const [first, second] = cluster.gateways as [TestGateway, TestGateway];
    expect((await fetch(`${first.origin}/_mock/events`)).status).toBe(401);
    const reader = await watch(first);
    expect(reader.status).toBe(200);
    await hearsOf(reader, cluster, first);
    await hearsOf(reader, cluster, second);
    await second.close();
    await cluster.whole([first]);
    await hearsOf(reader, cluster, first);
    const third = await cluster.start();
    await cluster.whole([first, third]);
    await hearsOf(reader, cluster, third);
  });

  it('SHA-6 a gateway that may have missed notifications counts all lists as changed', async () => {
    const databaseUrl = await server().database();
    const cluster = await startGateways({ databaseUrl, gateways: 1 });
    const [first] = cluster.gateways as [TestGateway];
    const reader = await watch(first);
    await hearsOf(reader, cluster, first);
    reader.topics.length = 0;
    const ended = await cluster.rows.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
         where application_name like 'paybox %' and datname = current_database()`,
    );
    expect(ended.length).toBeGreaterThan(0);
    await eventually('all lists', () => ['orders', 'boxes', 'payments'].every((it) => reader.topics.includes(it)));
  });

  it('SHA-6 a gateway drops a reader who does not read, and keeps the others', async () => {
    const cluster = await startGateways({ databaseUrl: await server().database(), gateways: 1 });
    const [only] = cluster.gateways as [TestGateway];
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
    await hearsOf(more, cluster, only);
  });

  it('SHA-6 lists and sums are the same at every gateway', async () => {
    const cluster = await startGateways({ databaseUrl: await server().database(), gateways: 2, accounts: 12 });
    const [first, second] = cluster.gateways as [TestGateway, TestGateway];
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

  it.skipIf(browser.missing)(`the console of any gateway shows what all have${browser.note}`, async () => {
    const cluster = await startGateways({ databaseUrl: await server().database(), gateways: 2, accounts: 8 });
    const [first, second] = cluster.gateways as [TestGateway, TestGateway];
    const page = await openPage(`${first.origin}/`);
    await page.becomes(`!document.getElementById('gate').hidden`);
    await page.evaluate(`sessionStorage.setItem('token', ${JSON.stringify(ADMIN_TOKEN)}); location.reload()`);
    await page.becomes(`document.getElementById('live').textContent === 'connected'`);
    for (const { terminalCode } of cluster.boxes) await page.shows(terminalCode);
    for (const { name } of cluster.gateways) await page.shows(name);
    for (const [n, { bankAccount }] of cluster.accounts.entries()) {
      expect(await generate(n % 2 === 0 ? first : second, bankAccount, `LIVE${n}`)).toBe(200);
      await page.shows(`LIVE${n}`);
    }
    await first.admin('/_mock/faults', 'POST', { fault: 'push-lost' });
    await page.becomes(`document.getElementById('faults-count').textContent === '1 ordered'`);
    await second.close();
    await page.becomes(`!document.body.innerText.includes(${JSON.stringify(second.name)})`);
  });
});
