import { describe, expect, it, onTestFinished } from 'vitest';
import { partnerServer, processed } from '../gateway/harness.ts';
import { eventually, freePort } from '../support/net.ts';
import { type GatewayAt, signalTo, startConfigured } from '../support/processes.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { expectEndOf } from './shutdown.ts';
import { ACCOUNT, getJson, PARTNER, Shop } from './walk.ts';

const LANES = 3;
describe.skipIf(missing)(`a gateway whose processes at PostgreSQL hang${note}`, () => {
  const server = postgresServer();
  /** `paybox gateway`, alone on a database. */
  const gatewayOn = async (databaseUrl: string, callbackUrl: string) => {
    const config = {
      ...{ http: { port: await freePort() }, mqtt: null, dataDir: 'data', databaseUrl, accounts: [ACCOUNT] },
      partners: [{ ...PARTNER, accounts: [ACCOUNT.bankAccount], callback: { url: callbackUrl } }],
    };
    return startConfigured<GatewayAt>('gateway', config);
  };
  /** Stops every server process of the gateway. Returns what lets them go on. */
  const stopAll = async (databaseUrl: string) => {
    const rows = await server().run(
      databaseUrl,
      "select pid from pg_stat_activity where datname = current_database() and application_name = 'paybox-gateway'",
    );
    const signal = (name: NodeJS.Signals) => {
      for (const { pid } of rows) signalTo(Number(pid), name);
    };
    signal('SIGSTOP');
    onTestFinished(() => signal('SIGCONT'));
    expect(rows.length).toBeGreaterThan(0);
    return () => signal('SIGCONT');
  };

  it('STO-2 MSG-7 SYN-4 a gateway whose PostgreSQL sessions hang goes on by itself, with every acknowledged payment, and reports each once', async () => {
    const databaseUrl = await server().database();
    const partner = await partnerServer(processed);
    const { running, at } = await gatewayOn(databaseUrl, partner.url);
    const shop = new Shop(at.baseUrl);
    await shop.login();
    const [paid, refused] = [[] as string[], [] as unknown[]];
    let isOver = false;
    const lane = async (number: number) => {
      for (let n = 0; !isOver; n += 1) {
        const { status, body } = await shop.pay({ amount: 50_000, content: `DH ${number} ${n}` });
        if (status === 200) paid.push(String(body.message));
        else refused.push(body);
      }
    };
    const lanes = Array.from({ length: LANES }, (_, number) => lane(number));
    await eventually('a few payments', () => paid.length > 20);
    const goOn = await stopAll(databaseUrl);
    // 6 s for an answer, and 2 s for the lock.
    await eventually('the wait for its own session', () => {
      if (running.child.exitCode !== null) throw new Error(`the gateway ended: ${running.output()}`);
      return running.output().includes('has not ended yet');
    });
    goOn();
    const before = paid.length;
    await eventually('payments again', () => paid.length > before + 20);
    isOver = true;
    await Promise.all(lanes);
    expect(running.child.exitCode).toBeNull();
    expect(running.output()).not.toContain('taken over');
    expect(refused.length).toBeGreaterThan(0);
    expect(refused).toEqual(refused.map(() => ({ status: 'FAILED', message: 'E05' })));

    const stored = (await server().run(databaseUrl, 'select id from payments order by seq')).map(({ id }) =>
      String(id),
    );
    expect(paid.filter((id) => !stored.includes(id))).toEqual([]);
    const idsOf = () => partner.calls.map((it) => String(JSON.parse(it.body).transactionid));
    await eventually('the partner to be told of each', async () => {
      const { waiting } = await getJson<{ waiting: number }>(`${at.consoleUrl}_mock/callbacks/backlog`);
      return waiting === 0 && stored.every((id) => idsOf().includes(id));
    });
    expect([...new Set(idsOf())].toSorted()).toEqual(stored.toSorted());
    expect(await running.stop('SIGTERM'), running.output()).toBe(0);
  });

  it('STO-8 a gateway whose PostgreSQL sessions hang ends within 2 s on SIGTERM, and says that its store hung', async () => {
    const databaseUrl = await server().database();
    const partner = await partnerServer(processed);
    const { running, at } = await gatewayOn(databaseUrl, partner.url);
    const shop = new Shop(at.baseUrl);
    await shop.login();
    expect((await shop.pay({ amount: 50_000, content: 'DH 1' })).status).toBe(200);
    await stopAll(databaseUrl);
    const waiting = shop.pay({ amount: 50_000, content: 'DH 2' }).catch(() => undefined);
    const ready = await fetch(`${at.consoleUrl}readyz`);
    expect([ready.status, await ready.json()]).toEqual([
      503,
      { status: 'failed', reason: 'the store does not answer within 2000 ms' },
    ]);
    await expectEndOf(running, /^store$|^database /);
    // It was acknowledged to nobody.
    expect((await waiting)?.status).not.toBe(200);
  });

  it('STO-8 a gateway ends within 2 s on SIGTERM while the whole PostgreSQL server hangs', async () => {
    const databaseUrl = await server().database();
    const partner = await partnerServer(processed);
    const { running, at } = await gatewayOn(databaseUrl, partner.url);
    const goOnSessions = await stopAll(databaseUrl);
    process.kill(server().pid(), 'SIGSTOP');
    const goOn = () => {
      process.kill(server().pid(), 'SIGCONT');
      goOnSessions();
    };
    onTestFinished(goOn);
    expect((await fetch(`${at.consoleUrl}healthz`)).status).toBe(503);
    await expectEndOf(running, /^store$|^database /);
  });
});
