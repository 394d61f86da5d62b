import { describe, expect, it, onTestFinished } from 'vitest';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { startReplica } from '../support/postgres.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { callAt, generate, PARTNER, startGateways, type TestGateway } from './gateways.ts';

/** The test callback needs one with an address. */
const PAID = { ...PARTNER, callback: { url: 'http://127.0.0.1:9/sync' } };

/** What a hint would have said is read from the rows within this time. */
const FOUND_MS_MAX = 5_000;

/** Replaces what the gateways call to notify each other. */
const notifyBy = (body: string) => `
  create function public.pg_notify(channel text, payload text) returns void language plpgsql as $$ begin ${body} end $$`;
const LOST = notifyBy('return;');
/** PostgreSQL delivers equal ones once, so the second one has a space more. */
const DOUBLED = notifyBy(`perform pg_catalog.pg_notify(channel, payload);
  if payload like '{%' then perform pg_catalog.pg_notify(channel, payload || ' '); end if;`);

describe.skipIf(missing)(`what the database does to several gateways${note}`, () => {
  const server = postgresServer();

  /** Two gateways that notify each other by this function, and a box of the second one. */
  const notifying = async (sql: string) => {
    const databaseUrl = await server().database();
    await server().run(databaseUrl, sql);
    const name = new URL(databaseUrl).pathname.slice(1);
    // Otherwise the function of PostgreSQL itself would come first.
    await server().run(databaseUrl, `alter database ${name} set search_path = public, pg_catalog`);
    const cluster = await startGateways({ databaseUrl, gateways: 2, partner: PAID });
    const [first, second] = cluster.gateways as [TestGateway, TestGateway];
    const identity = cluster.boxes[0] ?? expect.fail('no box');
    const box = await connectFakeBox({
      ...{ gateway: { origin: second.origin, mqttUrl: undefined }, identity, transport: 'http' },
      onShow: (it, show) => void it.shown(show),
    });
    const sell = () => first.admin('/admin/v1/sales', 'POST', { amount: 5_000, terminalCode: identity.terminalCode });
    const pay = async () => {
      const paid = { bankAccount: identity.account, content: 'DH1', amount: 5_000, transType: 'C' };
      const atMs = performance.now();
      expect((await callAt(first, '/bank/api/test/transaction-callback', paid)).status).toBe(200);
      await eventually('the notice', () => box.of('payment').length > 0);
      return performance.now() - atMs;
    };
    return { box, sell, pay };
  };

  it('SHA-5 although all notifications are lost a push and a payment reach a box of another gateway, each once', async () => {
    const { box, sell, pay } = await notifying(LOST);
    expect(await sell()).toMatchObject({ status: 201, body: { status: 'shown' } });
    expect(box.of('show')).toHaveLength(1);
    expect(await pay()).toBeLessThan(FOUND_MS_MAX);
  });

  it('SHA-5 although all notifications are doubled a push is shown once, and a payment announced once', async () => {
    const { box, sell, pay } = await notifying(DOUBLED);
    expect(await sell()).toMatchObject({ status: 201, body: { status: 'shown' } });
    expect(box.of('show')).toHaveLength(1);
    await pay();
    expect(new Set(box.of('payment').map((it) => it.transactionId)).size).toBe(1);
  });

  it('SHA-5 a gateway whose listening session ends hears the others again, although it says nothing itself', async () => {
    const databaseUrl = await server().database();
    const cluster = await startGateways({ databaseUrl, gateways: 2 });
    const [first, second] = cluster.gateways as [TestGateway, TestGateway];
    const identity = cluster.boxes[0] ?? expect.fail('no box');
    await connectFakeBox({
      ...{ gateway: { origin: second.origin, mqttUrl: undefined }, identity, transport: 'http' },
      onShow: (it, show) => void it.shown(show),
    });
    const run = await cluster.rows.runOf(second.name);
    // The store's sessions of that run stay.
    const listening = `select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = $1 and (query like '%notify%' or query like '%listen%' or query = 'select 1')`;
    expect((await cluster.rows.query(listening, [`paybox ${run}`])).length).toBeGreaterThan(0);
    const sale = { amount: 5_000, terminalCode: identity.terminalCode };
    expect((await first.admin('/admin/v1/sales', 'POST', sale)).status).toBe(201);
  });

  it('SHA-5 gateways refuse calls while the database lets nobody in, and go on afterwards', async () => {
    const databaseUrl = await server().database();
    const cluster = await startGateways({ databaseUrl, gateways: 2 });
    const [first, second] = cluster.gateways as [TestGateway, TestGateway];
    const account = cluster.accounts[0]?.bankAccount ?? '';
    expect(await generate(first, account)).toBe(200);
    const name = new URL(databaseUrl).pathname.slice(1);
    const elsewhere = await server().database();
    const lets = (is: boolean) => server().run(elsewhere, `alter database ${name} allow_connections ${is}`);
    await lets(false);
    await server().run(
      elsewhere,
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'paybox %' and datname = '${name}'`,
    );
    for (const gateway of [first, second]) {
      await eventually(
        'calls to be refused',
        async () => (await generate(gateway, account, 'DH2').catch(() => 0)) !== 200,
      );
      await eventually('the proxy to hear it', async () => (await gateway.admin('/readyz')).status === 503);
    }
    await lets(true);
    for (const gateway of [first, second]) {
      await eventually('calls again', async () => (await generate(gateway, account, 'DH3').catch(() => 0)) === 200);
    }
    await cluster.whole([first, second]);
  });

  it('SHA-5 gateways refuse money while the database is read-only, and lose and double none', async () => {
    const databaseUrl = await server().database();
    const cluster = await startGateways({ databaseUrl, gateways: 2, partner: PAID });
    const [first, second] = cluster.gateways as [TestGateway, TestGateway];
    const name = new URL(databaseUrl).pathname.slice(1);
    const readOnly = async (is: 'on' | 'off') => {
      await server().run(
        databaseUrl,
        `set transaction_read_only = off; alter database ${name} set default_transaction_read_only = ${is}`,
      );
      const ours = `application_name like 'paybox %' and datname = '${name}'`;
      await server().run(databaseUrl, `select pg_terminate_backend(pid) from pg_stat_activity where ${ours}`);
    };
    const account = cluster.accounts[0]?.bankAccount ?? '';
    const pay = async (gateway: TestGateway, content: string) => {
      const paid = { bankAccount: account, content, amount: 5_000, transType: 'C' };
      return (await callAt(gateway, '/bank/api/test/transaction-callback', paid).catch(() => undefined))?.status;
    };
    expect(await pay(first, 'BEFORE')).toBe(200);
    await readOnly('on');
    for (const gateway of [first, second]) {
      await eventually('money to be refused', async () => (await pay(gateway, 'MEANWHILE')) !== 200);
    }
    await readOnly('off');
    for (const [n, gateway] of [first, second].entries()) {
      await eventually('money again', async () => (await pay(gateway, `AFTER${n}`)) === 200);
    }
    const rows = await server().run(databaseUrl, 'select content from payments');
    const contents = rows.map((it) => String(it.content));
    expect(contents).toEqual(expect.arrayContaining(['BEFORE', 'AFTER0', 'AFTER1']));
    expect(new Set(contents).size).toBe(contents.length);
  });

  it('SHA-5 a gateway does not start at a database that is in recovery, and says so', async () => {
    const databaseUrl = await server().database();
    const cluster = await startGateways({ databaseUrl, gateways: 1 });
    const replica = await startReplica(server());
    onTestFinished(() => replica.remove());
    await replica.catchUp();
    const standby = Object.assign(new URL(databaseUrl), { port: String(replica.port) }).href;
    await expect(cluster.start({ databaseUrl: standby })).rejects.toThrow(
      /databaseUrl: .*(recovery|read-only|standby)/,
    );
  });
});
