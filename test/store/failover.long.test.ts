import { existsSync } from 'node:fs';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { partnerServer, processed, type TestGateway, testGateway } from '../gateway/harness.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { type PostgresReplica, startReplica } from '../support/postgres.ts';
import { startProxy, type TcpProxy } from '../support/proxy.ts';
import { missing, note, postgresServer } from '../support/stores.ts';

const PAYMENTS = 'select id, seq::int as seq from payments order by seq';

describe.skipIf(missing)(`a gateway whose PostgreSQL fails over while it runs${note}`, () => {
  const server = postgresServer();

  /** One address in front of both servers: that of the gateway's file. */
  async function behindOneAddress() {
    const databaseUrl = await server().database();
    const database = new URL(databaseUrl).pathname.slice(1);
    const replica = await startReplica(server());
    onTestFinished(async () => {
      await replica.remove();
      await server().run(databaseUrl, `select pg_drop_replication_slot('${replica.name}')`);
    });
    const proxy = await startProxy({ port: server().port });
    onTestFinished(() => proxy.close());
    const at = (port: number) => Object.assign(new URL(databaseUrl), { port: String(port) }).href;
    const there = at(replica.port);
    const paymentsAt = async (url: string) => (await server().run(url, PAYMENTS)).map(({ id }) => String(id));
    const dataDir = await temporaryFolder();
    const config = { databaseUrl: at(proxy.port), mqtt: null };
    const callback = { url: (await partnerServer(processed)).url };
    const start = () => testGateway({ dataDir, config, callback });
    const file = (suffix: string) => join(dataDir, `gateway-${database}${suffix}`);
    const evidence = async () => (await readdir(dataDir)).filter((it) => it.includes('.missing-')).toSorted();
    return { databaseUrl, there, replica, proxy, paymentsAt, dataDir, start, file, evidence };
  }

  /** Pays once; the id of an acknowledged payment. */
  async function payOnce(gateway: TestGateway, content = 'DH001'): Promise<string | undefined> {
    const { status, body } = await gateway.testCallback({ content });
    return status === 200 ? String(body.message) : undefined;
  }

  async function pay(gateway: TestGateway, count: number): Promise<string[]> {
    const ids: string[] = [];
    for (let n = 0; n < count; n += 1) {
      const id = await payOnce(gateway, `DH${n}`);
      if (id === undefined) throw new Error('a payment was refused');
      ids.push(id);
    }
    return ids;
  }

  async function failOver(proxy: TcpProxy, replica: PostgresReplica): Promise<void> {
    await replica.promote();
    proxy.aim({ port: replica.port });
    proxy.cut();
  }

  const healthOf = async ({ origin }: TestGateway) => {
    const answer = await fetch(`${origin}/healthz`);
    return { status: answer.status, body: (await answer.json()) as { reason?: string } };
  };

  it('STO-5 writes nothing to a standby that lags, names what is missing, and goes on once the payments are back', async () => {
    const { databaseUrl, there, replica, proxy, paymentsAt, start, file, evidence } = await behindOneAddress();
    const gateway = await start();
    const kept = await pay(gateway, 5);
    await replica.catchUp();
    await replica.disconnect();
    const lost = await pay(gateway, 7);
    const mark = await readFile(file('.mark'), 'latin1');
    await failOver(proxy, replica);
    await eventually('the gateway to say so', () => gateway.logged('payments-missing')[0]);
    for (let n = 0; n < 3; n += 1) {
      const refused = await gateway.testCallback();
      expect([refused.status, refused.body]).toEqual([503, { status: 'FAILED', message: 'E05' }]);
      expect(refused.headers.get('x-paybox-reason')).toContain('payments 6 to 12 are missing, 7 of them');
    }
    expect((await gateway.generate()).status).toBe(503);
    await eventually('the health to say so', async () => {
      const { status, body } = await healthOf(gateway);
      return status === 503 && body.reason?.includes('payments 6 to 12 are missing');
    });
    expect(await paymentsAt(there)).toEqual(kept);
    expect(await readFile(file('.mark'), 'latin1')).toBe(mark);
    const named = gateway
      .logged('payment-missing')
      .map(({ number, transactionId, amount }) => [number, transactionId, amount]);
    expect(named).toEqual(lost.map((id, i) => [6 + i, id, 50_000]));
    const [written = ''] = await evidence();
    expect(await evidence()).toHaveLength(1);
    const content = JSON.parse(await readFile(join(file('.mark'), '..', written), 'utf8'));
    expect(content).toMatchObject({ missing: { from: 6, to: 12 }, found: { number: 5 } });
    expect(content.payments.map((it: { transactionId: string }) => it.transactionId)).toEqual(lost);
    expect(gateway.logged('payments-missing')).toEqual([
      expect.objectContaining({ level: 'error', fix: expect.stringContaining(file('.accept-loss')) }),
    ]);

    proxy.aim({ port: server().port });
    proxy.cut();
    const after = await eventually('it to go on', () => payOnce(gateway));
    expect(await paymentsAt(databaseUrl)).toEqual([...kept, ...lost, after]);
    expect(gateway.logged('payments-recovered')).toHaveLength(1);
    await eventually('it to be healthy', async () => (await healthOf(gateway)).status === 200);
    expect(await paymentsAt(there)).toEqual(kept);
    expect(await evidence()).toEqual([written]);
  });

  it('STO-5 refuses its next start on it too, with the same names, until an admin accepts the loss, and keeps the evidence of each', async () => {
    const { there, replica, proxy, paymentsAt, start, file, evidence, dataDir } = await behindOneAddress();
    const first = await start();
    const kept = await pay(first, 2);
    await replica.catchUp();
    await replica.disconnect();
    const lost = await pay(first, 3);
    await failOver(proxy, replica);
    await eventually('the gateway to say so', () => first.logged('payments-missing')[0]);
    await first.close();
    const [written = ''] = await evidence();
    await expect(start()).rejects.toMatchObject({
      code: 'CONFIG',
      message: expect.stringContaining('payments 3 to 5 are missing, 3 of them, which had been acknowledged'),
      fix: expect.stringContaining(file('.accept-loss')),
    });
    expect(await evidence()).toEqual([written]);
    await writeFile(file('.accept-loss'), '');
    const second = await start();
    expect(second.logged('store-loss-accepted')).toHaveLength(1);
    const again = await pay(second, 1);
    expect(await paymentsAt(there)).toEqual([...kept, ...again]);
    expect(await evidence()).toEqual([written]);
    const { payments } = JSON.parse(await readFile(join(dataDir, written), 'utf8')) as {
      payments: { transactionId: string }[];
    };
    expect(payments.map((it) => it.transactionId)).toEqual(lost);
    await second.close();
    // The next loss has a file of its own: here of a start, which knows from the mark what it had acknowledged.
    await replica.run(
      there,
      'delete from payments where number = 3; update ledger set end_seq = 2, end_link = (select link from payments where number = 2)',
    );
    await expect(start()).rejects.toThrow('payment 3 is missing, which had been acknowledged');
    const [, other = ''] = (await evidence()).toSorted((a, b) => Number(a !== written) - Number(b !== written));
    expect(await evidence()).toHaveLength(2);
    const named = JSON.parse(await readFile(join(dataDir, other), 'utf8')) as { payments: object[] };
    expect(named.payments).toEqual([expect.objectContaining({ number: 3, transactionId: again[0], amount: 50_000 })]);
  });

  /** From now on commits wait for the standby. */
  async function waitFor(replica: PostgresReplica, databaseUrl: string): Promise<void> {
    await server().run(databaseUrl, `alter system set synchronous_standby_names = '${replica.name}'`);
    const reload = () => server().run(databaseUrl, 'select pg_reload_conf()');
    onTestFinished(async () => {
      await server().run(databaseUrl, 'alter system reset synchronous_standby_names');
      await reload();
    });
    await reload();
    await eventually('the standby to be synchronous', async () => {
      const [row] = await server().run(databaseUrl, 'select sync_state from pg_stat_replication');
      return row?.sync_state === 'sync';
    });
  }

  it('STO-5 loses no acknowledged payment to a synchronous standby, and says that the server is another', async () => {
    const { databaseUrl, there, replica, proxy, paymentsAt, start } = await behindOneAddress();
    await waitFor(replica, databaseUrl);
    const gateway = await start();
    const paid = await pay(gateway, 1);
    let isOver = false;
    const lanes = Array.from({ length: 4 }, async (_, lane) => {
      for (let n = 0; !isOver; n += 1) {
        const id = await payOnce(gateway, `L${lane}N${n}`).catch(() => undefined);
        if (id !== undefined) paid.push(id);
      }
    });
    await eventually('payments under way', () => paid.length > 30);
    await failOver(proxy, replica);
    const before = paid.length;
    await eventually('payments there', () => paid.length > before + 30);
    isOver = true;
    await Promise.all(lanes);
    const stored = await paymentsAt(there);
    expect(paid.filter((id) => !stored.includes(id))).toEqual([]);
    expect(new Set(stored).size).toBe(stored.length);
    expect(gateway.logged('payments-missing')).toEqual([]);
    expect(gateway.logged('database-failed-over')).toEqual([expect.objectContaining({ level: 'warn' })]);
  });

  it('STO-5 acknowledges no payment whose wait for a synchronous standby an admin cancelled', async () => {
    const { databaseUrl, there, replica, proxy, paymentsAt, start } = await behindOneAddress();
    await waitFor(replica, databaseUrl);
    const gateway = await start();
    const [first = ''] = await pay(gateway, 1);
    await replica.disconnect();
    let answer: Awaited<ReturnType<TestGateway['testCallback']>> | undefined;
    void gateway.testCallback().then((it) => {
      answer = it;
    });
    const waits = "from pg_stat_activity where wait_event = 'SyncRep'";
    let cancelled = 0;
    await eventually('an answer, while every wait is cancelled', async () => {
      cancelled += (await server().run(databaseUrl, `select pg_cancel_backend(pid) ${waits}`)).length;
      return answer;
    });
    expect([cancelled > 0, answer?.status, answer?.body.message]).toEqual([true, 500, 'E05']);
    await failOver(proxy, replica);
    await eventually('payments there', () => payOnce(gateway));
    const stored = await paymentsAt(there);
    expect([stored.length, stored[0]]).toEqual([2, first]);
    expect(gateway.logged('payments-missing')).toEqual([]);
  });

  it('STO-5 takes no commit whose answer was lost for a loss, nor for one that it had acknowledged', async () => {
    const { databaseUrl, proxy, paymentsAt, start } = await behindOneAddress();
    const gateway = await start();
    const paid = await pay(gateway, 2);
    // The wait for the disk, after the commit, waits for this row.
    const holder = new pg.Client({ connectionString: databaseUrl });
    holder.on('error', () => undefined);
    await holder.connect();
    onTestFinished(() => holder.end());
    const attempt = async () => {
      await holder.query('begin');
      await holder.query("select from settings where name = 'holder' for update");
      const answered = gateway.testCallback();
      const isStored = async () => (await paymentsAt(databaseUrl)).length > paid.length;
      if (await eventually('the commit', isStored, 3_000).catch(() => false)) return { answered };
      // A write of the gateway's own came first and waits for the row, and the payment behind it: it is no attempt.
      await holder.query('rollback');
      paid.push(String((await answered).body.message));
      return undefined;
    };
    const unknown = await eventually('a commit that nobody hears of', attempt);
    proxy.cut();
    await holder.query('rollback');
    expect((await unknown.answered).status).toBe(500);
    const after = await eventually('it to go on', () => payOnce(gateway));
    const stored = await paymentsAt(databaseUrl);
    expect(stored).toEqual([...paid, expect.any(String), after]);
    expect(gateway.logged('payments-missing')).toEqual([]);
  });

  it('STO-5 takes an older copy of its database for a loss, and not for another gateway in charge', async () => {
    const { databaseUrl, paymentsAt, start, proxy } = await behindOneAddress();
    const gateway = await start();
    const kept = await pay(gateway, 2);
    const [older] = await server().run(databaseUrl, 'select end_link from ledger');
    await pay(gateway, 2);
    const restore = `delete from payments where number > 2; update ledger set end_seq = 2, end_link = '${older?.end_link}';
      update settings set value = 'of-an-earlier-run' where name = 'holder'`;
    proxy.aim({ port: await freePort() });
    proxy.cut();
    await server().run(databaseUrl, restore);
    proxy.aim({ port: server().port });
    await eventually('the gateway to say so', () => gateway.logged('payments-missing')[0]);
    expect((await gateway.testCallback()).status).toBe(503);
    const isSuperseded = await Promise.race([gateway.superseded?.then(() => true), Promise.resolve(false)]);
    expect(isSuperseded).toBe(false);
    expect(await paymentsAt(databaseUrl)).toEqual(kept);
  });

  it('STO-5 waits for no other disk than that of the server that it writes to, wherever the address leads by then', async () => {
    const { databaseUrl, replica, proxy, paymentsAt, start } = await behindOneAddress();
    const gateway = await start();
    const paid = await pay(gateway, 1);
    await replica.promote();
    proxy.aim({ port: replica.port });
    // The second connection alone: the one that writes has the lock.
    const second = `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'paybox-gateway'
      and pid not in (select pid from pg_locks where locktype = 'advisory' and granted)`;
    await server().run(databaseUrl, second);
    await eventually('the log to say so', () => gateway.logged('second-connection-failed')[0]);
    expect(gateway.logged('second-connection-failed')[0]?.reason).toContain('leads to another server');
    paid.push(...(await pay(gateway, 2)));
    expect(await paymentsAt(databaseUrl)).toEqual(paid);
    expect(gateway.logged('database-lost')).toEqual([]);
  });

  it('STO-5 waits at a standby that is none of both yet: it may still catch up', async () => {
    const { replica, proxy, start, there, paymentsAt } = await behindOneAddress();
    const gateway = await start();
    const kept = await pay(gateway, 1);
    await replica.disconnect();
    const newer = await pay(gateway, 1);
    proxy.aim({ port: replica.port });
    proxy.cut();
    await eventually('a refusal', async () => (await gateway.testCallback()).status === 500);
    await eventually('the health to say so', async () =>
      (await healthOf(gateway)).body.reason?.includes('is a standby, which takes no writes'),
    );
    expect(gateway.logged('payments-missing')).toEqual([]);
    await replica.catchUp();
    await replica.promote();
    const after = await eventually('it to go on', () => payOnce(gateway));
    expect(await paymentsAt(there)).toEqual([...kept, ...newer, after]);
  });

  it('STO-2 takes its own session at a server that it had left for no other gateway', async () => {
    const { databaseUrl, replica, proxy, start } = await behindOneAddress();
    const gateway = await start();
    await pay(gateway, 1);
    await replica.catchUp();
    const held = "select pid from pg_locks where locktype = 'advisory' and granted";
    const [session] = await server().run(databaseUrl, held);
    const backend = Number(session?.pid);
    process.kill(backend, 'SIGSTOP');
    const resume = () => {
      // It ends as soon as it runs again.
      if (existsSync(`/proc/${backend}`)) process.kill(backend, 'SIGCONT');
    };
    onTestFinished(resume);
    await failOver(proxy, replica);
    await eventually('it to go on', async () => (await gateway.generate()).status === 200);
    proxy.aim({ port: server().port });
    proxy.cut();
    await eventually('the health to name that session', async () =>
      (await healthOf(gateway)).body.reason?.includes(`process ${backend} at the server does not answer`),
    );
    resume();
    await eventually('it to go on', () => payOnce(gateway));
    const isSuperseded = await Promise.race([gateway.superseded?.then(() => true), Promise.resolve(false)]);
    expect(isSuperseded).toBe(false);
  });

  it('STO-5 keeps its lock while it refuses, so that no other gateway goes on without the payments', async () => {
    const { replica, proxy, start, there } = await behindOneAddress();
    const gateway = await start();
    await pay(gateway, 1);
    await replica.catchUp();
    await replica.disconnect();
    await pay(gateway, 1);
    await failOver(proxy, replica);
    await eventually('the gateway to say so', () => gateway.logged('payments-missing')[0]);
    const other = { dataDir: await temporaryFolder(), config: { databaseUrl: there, mqtt: null } };
    await expect(testGateway(other)).rejects.toThrow('another gateway uses');
    await gateway.close();
    // It knows nothing of the payments itself: the other has left word in the database.
    await expect(testGateway(other)).rejects.toThrow('payment 2 is missing, which had been acknowledged');
    await rm(other.dataDir, { recursive: true });
  });
});
