import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { run } from '../support/processes.ts';
import { findProgram, PROGRAMS, without } from '../support/programs.ts';
import { startProxy } from '../support/proxy.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { PARTNER, startGateways, type TestGateway } from './gateways.ts';

/** The database is given up after 2 s, and a check after 2 s; the machine may be slow. It was 200 for ever. */
const BOUND_MS = 10_000;
const END_MS_MAX = 4_000;

/** Starts two gateways, the second of which reaches the database over a proxy. */
async function twoGateways({ database, port }: ReturnType<ReturnType<typeof postgresServer>>) {
  const databaseUrl = await database();
  const proxy = await startProxy({ port });
  onTestFinished(() => proxy.close());
  const cluster = await startGateways({ databaseUrl, gateways: 1 });
  const far = Object.assign(new URL(databaseUrl), { port: String(proxy.port) }).href;
  const second = await cluster.start({ databaseUrl: far });
  const [first = second] = cluster.gateways;
  await cluster.whole([first, second]);
  return { first, second, proxy, cluster, far };
}

describe.skipIf(missing)(`/readyz of a gateway that shares its database${note}`, () => {
  const server = postgresServer();
  const ready = async (gateway: TestGateway) => {
    const sinceMs = performance.now();
    const { status, body } = await gateway.admin('/readyz');
    return { status, reason: (body as { reason?: string }).reason, tookMs: performance.now() - sinceMs };
  };
  const is = (status: number, gateway: TestGateway) =>
    eventually(`${status} of a gateway`, async () => {
      const answer = await ready(gateway);
      return answer.status === status && answer;
    });

  it('STO-7 SHA-5 /readyz of a gateway is 503 within bounded time once it has lost its database, and the others go on', async () => {
    const { first, second, proxy, cluster } = await twoGateways(server());
    expect([(await ready(first)).status, (await ready(second)).status]).toEqual([200, 200]);
    const sinceMs = performance.now();
    proxy.stall();
    const refused = await is(503, second);
    expect(refused.reason).toMatch(/does not answer|timeout/);
    expect(performance.now() - sinceMs).toBeLessThan(BOUND_MS);
    expect((await second.admin('/livez')).status).toBe(200);
    expect((await ready(first)).status).toBe(200);
    // The others bury it, so it ends once it reaches the database again.
    await cluster.whole([first]);
    let end: unknown;
    void second.superseded?.then((error) => {
      end = error;
    });
    proxy.resume();
    await eventually('its end', () => end);
    expect(String(end)).toContain('taken over the work');
    await second.close();
    const again = await cluster.start({ cluster: { name: second.name } });
    await is(200, again);
  });

  it('STO-7 /readyz of a gateway is 200 again after its database was away for a moment', async () => {
    const { first, second, proxy, cluster } = await twoGateways(server());
    proxy.cut();
    await is(200, second);
    await cluster.whole([first, second]);
  });

  it('STO-7 STO-8 /readyz of a gateway is 503 once it stops, and its end takes 2 s although the database hangs', async () => {
    const { first, second, proxy, cluster, far } = await twoGateways(server());
    expect((await ready(second)).status).toBe(200);
    const closing = second.close();
    expect(await ready(second)).toMatchObject({ status: 503, reason: 'it is stopping' });
    await closing;
    await cluster.whole([first]);

    const third = await cluster.start({ databaseUrl: far });
    await cluster.whole([first, third]);
    proxy.stall();
    const sinceMs = performance.now();
    await third.close();
    expect(performance.now() - sinceMs).toBeLessThan(END_MS_MAX);
    const late = third.log.filter(({ event }) => event === 'end-timed-out').map(({ part }) => String(part));
    expect(late.some((part) => /^(store|place|database .*)$/.test(part))).toBe(true);
  });
});

const haproxy = without(PROGRAMS.haproxy);

describe.skipIf(missing || haproxy.missing)(`the sample of HAProxy${note}${haproxy.note}`, () => {
  const server = postgresServer();
  /** HAProxy as our sample has it, in front of these gateways. */
  const proxyFor = async (gateways: readonly TestGateway[]) => {
    const sample = await readFile(join(import.meta.dirname, '../../scripts/haproxy.cfg'), 'utf8');
    const [web = ''] = sample.split(/^(?=# The nodes of a broker)/m);
    const port = await freePort();
    const servers = gateways.map(({ origin }, i) => `    server s${i} ${new URL(origin).host} check\n`).join('');
    const config = web
      .replaceAll(/( +server \w+ [\d.:]+ check\n)+/g, servers)
      .replace('127.0.0.1:8800', `127.0.0.1:${port}`);
    const file = join(await temporaryFolder(), 'haproxy.cfg');
    await writeFile(file, config);
    run(findProgram(PROGRAMS.haproxy) ?? 'haproxy', ['-db', '-f', file]);
    const origin = `http://127.0.0.1:${port}`;
    await eventually('HAProxy', async () => (await fetch(`${origin}/livez`).catch(() => undefined))?.ok);
    return origin;
  };

  it('STO-7 SHA-5 the sample of HAProxy sends no call to a gateway that has lost its database, nor to one that stops', async () => {
    const { first, second, proxy, cluster } = await twoGateways(server());
    const origin = await proxyFor([first, second]);
    const post = async (path: string, authorization: string, body: object) => {
      const headers = { authorization, 'content-type': 'application/json', connection: 'close' };
      const answer = await fetch(`${origin}/vqr/api/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
      // HAProxy answers in HTML for a gateway whose sessions it has ended.
      return { status: answer.status, body: (await answer.json().catch(() => ({}))) as Record<string, unknown> };
    };
    const basic = Buffer.from(`${PARTNER.username}:${PARTNER.password}`).toString('base64');
    const token = await post('token_generate', `Basic ${basic}`, {});
    const bankAccount = cluster.accounts[0]?.bankAccount;
    const order = { bankAccount, bankCode: 'MB', userBankName: 'SHOP', amount: 5_000, transType: 'C', qrType: 0 };
    let made = 0;
    const calls = async () => {
      for (let n = 0; n < 10; n += 1) {
        made += 1;
        const named = { ...order, content: `DH${made}`, orderId: `DH${made}` };
        const { status } = await post('qr/generate-customer', `Bearer ${token.body.access_token}`, named);
        if (status !== 200) return false;
      }
      return true;
    };
    await eventually('calls of all', calls);
    proxy.stall();
    await is503(second);
    await eventually('calls of all by the other', calls);
    const closing = second.close();
    expect(await calls()).toBe(true);
    await closing;
    expect(await calls()).toBe(true);
  });

  it('STO-7 the sample of HAProxy lets a gateway say why while the database is away for all of them', async () => {
    const proxy = await startProxy({ port: server().port });
    onTestFinished(() => proxy.close());
    const far = Object.assign(new URL(await server().database()), { port: String(proxy.port) }).href;
    const { gateways } = await startGateways({ databaseUrl: far, gateways: 2 });
    const origin = await proxyFor(gateways);
    const authorization = `Basic ${Buffer.from(`${PARTNER.username}:${PARTNER.password}`).toString('base64')}`;
    const headers = { authorization, connection: 'close' };
    const login = () => fetch(`${origin}/vqr/api/token_generate`, { method: 'POST', headers });
    expect((await login()).status).toBe(200);
    proxy.stall();
    await Promise.all(gateways.map(is503));
    // A gateway says why, where HAProxy would only say in HTML that it has no server.
    const told = await eventually('the reason', async () => {
      const answer = await fetch(`${origin}/readyz`, { headers }).catch(() => undefined);
      return answer?.headers.get('content-type')?.startsWith('application/json') && answer;
    });
    expect([told.status, await told.json()]).toEqual([
      503,
      { status: 'failed', reason: expect.stringMatching(/the (database|store) does not answer/) },
    ]);
    proxy.resume();
    await eventually('calls again', async () => (await login()).status === 200);
  });
});

/** Waits until a gateway says that it takes no calls. */
function is503(gateway: TestGateway): Promise<unknown> {
  return eventually('503 of a gateway', async () => (await gateway.admin('/readyz')).status === 503);
}
