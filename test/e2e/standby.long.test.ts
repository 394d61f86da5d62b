import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ACCOUNT, partnerServer, processed, TEST_CALLBACK, testCallback } from '../gateway/harness.ts';
import { opened, order } from '../store/rows.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { paybox, programsIn, type Running, readyFile } from '../support/processes.ts';
import { missing, note, postgresServer } from '../support/stores.ts';

/** The server gives up a silent gateway after 10 s; the machine may be slow. */
const PATIENCE_MS = 40_000;

interface Program {
  running: Running;
  /** Its dataDir, which it makes. */
  dataDir: string;
  signal(name: NodeJS.Signals): Promise<void>;
  ready(): Promise<Address>;
}
interface Address {
  baseUrl: string;
  consoleUrl: string;
}

async function gatewayOn(databaseUrl: string, callbackUrl: string, change: object = {}): Promise<Program> {
  const folder = await temporaryFolder();
  const file = join(folder, 'gateway.yaml');
  const partner = { username: 'demo', password: 'demo-secret', accounts: [ACCOUNT.bankAccount] };
  const config = {
    ...{ http: { port: 0 }, mqtt: null, dataDir: 'data', databaseUrl, accounts: [ACCOUNT] },
    partners: [{ ...partner, callback: { url: callbackUrl } }],
  };
  await writeFile(file, JSON.stringify({ ...config, ...change }));
  const ready = join(folder, 'ready.json');
  const running = paybox('gateway', '--config', file, '--ready-file', ready);
  const signal = async (name: NodeJS.Signals) => {
    for (const pid of await programsIn(folder)) process.kill(pid, name);
  };
  onTestFinished(() => signal('SIGCONT'));
  return { running, dataDir: join(folder, 'data'), signal, ready: () => readyFile<Address>(ready, running) };
}

/** Pays at a gateway, one after the other, until told to end; what was acknowledged stands in `paid`. */
async function payer({ baseUrl }: Address) {
  const basic = Buffer.from('demo:demo-secret').toString('base64');
  const token = await fetch(`${baseUrl}/api/token_generate`, {
    method: 'POST',
    headers: { authorization: `Basic ${basic}` },
  });
  const { access_token } = (await token.json()) as { access_token: string };
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${access_token}` };
  const paid: string[] = [];
  let isOver = false;
  const pay = async () => {
    const body = JSON.stringify(testCallback());
    const answer = await fetch(`${baseUrl}${TEST_CALLBACK}`, { method: 'POST', headers, body });
    const { message } = (await answer.json()) as { message: string };
    if (answer.status === 200) paid.push(message);
    return answer.status;
  };
  const loop = async () => {
    while (!isOver) await pay().catch(() => 'gone');
  };
  return {
    paid,
    pay,
    /** Several at a time; ends what it returns. */
    run: () => {
      const lanes = [loop(), loop(), loop()];
      return async () => {
        isOver = true;
        await Promise.all(lanes);
      };
    },
  };
}

async function paymentsAt({ consoleUrl }: Address): Promise<string[]> {
  const answer = await fetch(`${consoleUrl}_mock/payments?limit=500`);
  return ((await answer.json()) as { transactionId: string }[]).map((it) => it.transactionId);
}

describe.skipIf(missing)(`a standby on the database of a gateway that hangs${note}`, () => {
  const server = postgresServer();

  it('STO-1 a standby waits, takes over with every acknowledged payment, and the other writes nothing more and ends', async () => {
    const databaseUrl = await server().database();
    const partner = await partnerServer(processed);
    const first = await gatewayOn(databaseUrl, partner.url);
    const firstAt = await first.ready();
    const second = await gatewayOn(databaseUrl, partner.url, { standby: true });
    await eventually('the standby to wait', () => second.running.output().includes('store-lock-awaited'), PATIENCE_MS);

    const before = await payer(firstAt);
    const endBefore = before.run();
    await eventually('a few payments', () => before.paid.length > 10);
    await first.signal('SIGSTOP');
    const secondAt = await second.ready();
    const after = await payer(secondAt);
    for (let n = 0; n < 10; n += 1) expect(await after.pay()).toBe(200);
    await first.signal('SIGCONT');
    await eventually('the first to end', () => first.running.child.exitCode !== null, PATIENCE_MS);
    await endBefore();
    expect([await first.running.ended, first.running.output()]).toEqual([1, expect.stringContaining('taken over')]);
    for (let n = 0; n < 10; n += 1) expect(await after.pay()).toBe(200);

    const there = await paymentsAt(secondAt);
    const acknowledged = [...before.paid, ...after.paid];
    expect(acknowledged.filter((id) => !there.includes(id))).toEqual([]);
    expect(new Set(there).size).toBe(there.length);
    await eventually('the partner told of each', () => {
      const told = new Set(partner.calls.map((it) => String(JSON.parse(it.body).transactionid)));
      return there.every((id) => told.has(id)) && told.size === there.length;
    });
    const callbacks = await server().run(databaseUrl, 'select count(*)::int as count from callbacks');
    expect(callbacks).toEqual([{ count: there.length }]);
    await second.signal('SIGTERM');
    await once(second.running.child, 'close');
    expect(second.running.child.exitCode).toBe(0);
  });

  it('STO-3 a standby takes over no damaged or incomplete store, also without a mark, until an admin accepts the loss', async () => {
    const databaseUrl = await server().database();
    const partner = await partnerServer(processed);
    const first = await gatewayOn(databaseUrl, partner.url);
    const { paid, pay } = await payer(await first.ready());
    for (let n = 0; n < 3; n += 1) expect(await pay()).toBe(200);
    const second = await gatewayOn(databaseUrl, partner.url, { standby: true });
    await eventually('the standby to wait', () => second.running.output().includes('store-lock-awaited'), PATIENCE_MS);
    await server().run(
      databaseUrl,
      `alter table payments disable trigger all; update payments set amount = 1 where id = '${paid[1]}';
         alter table payments enable trigger all; alter table callbacks disable trigger all;
         update callbacks set body = '{}' where payment_id = '${paid[0]}'; alter table callbacks enable trigger all`,
    );
    await first.signal('SIGKILL');
    await eventually('the standby to end', () => second.running.child.exitCode !== null, PATIENCE_MS);
    const accept = join(second.dataDir, `gateway-${new URL(databaseUrl).pathname.slice(1)}.accept-loss`);
    expect([await second.running.ended, second.running.output()]).toEqual([
      2,
      expect.stringContaining(`make the empty file ${accept}`),
    ]);
    expect(second.running.output()).toContain(`damaged in payments: ${paid[1]}`);
    const count = 'select count(*)::int as count from payments';
    expect(await server().run(databaseUrl, count)).toEqual([{ count: 3 }]);
    await writeFile(accept, '');
    const third = await gatewayOn(databaseUrl, partner.url, { standby: true, dataDir: second.dataDir });
    expect((await paymentsAt(await third.ready())).toSorted()).toEqual([paid[0], paid[2]].toSorted());
    const whole = "select count(*)::int as count from callbacks where body <> '{}'";
    expect(await server().run(databaseUrl, whole)).toEqual([{ count: 3 }]);
    expect(await readdir(second.dataDir)).toEqual([expect.stringMatching(/\.mark$/)]);
  });

  it('STO-1 a second gateway without standby is refused while the other works', async () => {
    const databaseUrl = await server().database();
    const partner = await partnerServer(processed);
    const first = await gatewayOn(databaseUrl, partner.url);
    const at = await first.ready();
    const second = await gatewayOn(databaseUrl, partner.url);
    await eventually('the second to end', () => second.running.child.exitCode !== null, PATIENCE_MS);
    expect([await second.running.ended, second.running.output()]).toEqual([
      2,
      expect.stringContaining('standby: true'),
    ]);
    expect(await (await payer(at)).pay()).toBe(200);
  });

  it('STO-1 STO-2 a gateway leaves its database alone for good once another has had it, also when that one has ended', async () => {
    const given = { dataDir: '/nonexistent', databaseUrl: await server().database() };
    const { log, lines } = keptLog();
    const first = await opened(given, log);
    await first.orders.add(order('a'));
    const second = opened({ ...given, standby: true });
    await eventually('the second to wait', async () => {
      const waiting = await server().run(
        given.databaseUrl,
        "select pid from pg_locks where locktype = 'advisory' and not granted",
      );
      return waiting.length === 1;
    });
    await server().run(
      given.databaseUrl,
      "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted",
    );
    const taken = await second;
    await taken.orders.add(order('b'));
    await expect(first.orders.add(order('c'))).rejects.toThrow('has taken over');
    expect(String(await first.superseded)).toContain('has taken over');
    await taken.close();
    await expect(first.orders.add(order('d'))).rejects.toThrow('has taken over');
    expect(JSON.stringify(lines)).not.toContain(server().password);
    const rows = await server().run(given.databaseUrl, 'select id from orders order by id');
    expect(rows).toEqual([{ id: 'a' }, { id: 'b' }]);
  });
});
