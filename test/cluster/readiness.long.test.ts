import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { run } from '../support/processes.ts';
import { findProgram, PROGRAMS, without } from '../support/programs.ts';
import { startProxy } from '../support/proxy.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { accountIn, type Health, PARTNER, shardsOf, startMembers, type TestMember } from './members.ts';

/** The database is given up after 2 s, and a check after 2 s; the machine may be slow. It was 200 for ever. */
const BOUND_MS = 10_000;
const END_MS_MAX = 4_000;

/** Starts two members, the second of which reaches the database over a proxy. */
async function twoMembers({ database, port }: ReturnType<ReturnType<typeof postgresServer>>) {
  const databaseUrl = await database();
  const proxy = await startProxy({ port });
  onTestFinished(() => proxy.close());
  const members = await startMembers({ databaseUrl, members: 1, shards: 4 });
  const far = Object.assign(new URL(databaseUrl), { port: String(proxy.port) }).href;
  const second = await members.start({ databaseUrl: far });
  const [first = second] = members.members;
  await members.whole([first, second]);
  return { first, second, proxy, members, databaseUrl };
}

describe.skipIf(missing)(`/readyz of a member${note}`, () => {
  const server = postgresServer();
  const ready = async (member: TestMember) => {
    const sinceMs = performance.now();
    const { status, body } = await member.admin('/readyz');
    return { status, reason: (body as { reason?: string }).reason, tookMs: performance.now() - sinceMs };
  };
  const is = (status: number, member: TestMember) =>
    eventually(`${status} of a member`, async () => {
      const answer = await ready(member);
      return answer.status === status && answer;
    });

  it('STO-7 SHA-5 /readyz of a member is 503 within bounded time while it has lost its database, and 200 again after it', async () => {
    const { first, second, proxy } = await twoMembers(server());
    expect([(await ready(first)).status, (await ready(second)).status]).toEqual([200, 200]);
    const sinceMs = performance.now();
    proxy.stall();
    const refused = await is(503, second);
    expect(refused.reason).toMatch(/the database does not answer|the store does not answer/);
    expect(performance.now() - sinceMs).toBeLessThan(BOUND_MS);
    // While it is away for good each answer comes in bounded time.
    await eventually('its loss of the cluster', async () => {
      const { reason } = await ready(second);
      return reason === 'the database does not answer';
    });
    expect((await second.admin('/livez')).status).toBe(200);
    expect((await ready(first)).status).toBe(200);
    proxy.resume();
    await is(200, second);
  });

  it('STO-7 /readyz of a member is 200 while one shard of several fails, and 503 while all do', async () => {
    const { first, databaseUrl } = await twoMembers(server());
    const { cluster } = (await first.admin('/healthz')).body as Health;
    const lock = async (shard: number) => {
      const name = `off_${shard}`;
      await server().run(
        databaseUrl,
        `create function shard_${shard}.${name}() returns trigger language plpgsql as $$ begin raise 'off'; end $$;
         create trigger ${name} before insert on shard_${shard}.payments for each row execute function shard_${shard}.${name}()`,
      );
    };
    const [one = 0, ...others] = cluster.shards;
    expect(others.length).toBeGreaterThan(0);
    await lock(one);
    await eventually('its health', async () => (await first.admin('/healthz')).status === 503);
    expect((await ready(first)).status).toBe(200);
    for (const shard of others) await lock(shard);
    expect((await is(503, first)).reason).toBe('off');
  });

  it('STO-7 STO-8 /readyz of a member is 503 once it stops, and its end takes 2 s although the database hangs', async () => {
    const { first, second, proxy, members, databaseUrl } = await twoMembers(server());
    expect((await ready(second)).status).toBe(200);
    const closing = second.close();
    expect(await ready(second)).toMatchObject({ status: 503, reason: 'it is stopping' });
    await closing;
    await members.whole([first]);

    const far = Object.assign(new URL(databaseUrl), { port: String(proxy.port) }).href;
    const third = await members.start({ databaseUrl: far });
    await members.whole([first, third]);
    proxy.stall();
    const sinceMs = performance.now();
    await third.close();
    expect(performance.now() - sinceMs).toBeLessThan(END_MS_MAX);
    const late = third.log.filter(({ event }) => event === 'end-timed-out').map(({ part }) => String(part));
    expect(late.some((part) => /^(shards|store|membership|database .*)$/.test(part))).toBe(true);
  });
});

const haproxy = without(PROGRAMS.haproxy);

describe.skipIf(missing || haproxy.missing)(`the sample of HAProxy${note}${haproxy.note}`, () => {
  const server = postgresServer();
  /** HAProxy as our sample has it, in front of these members. */
  const proxyFor = async (members: readonly TestMember[]) => {
    const sample = await readFile(join(import.meta.dirname, '../../scripts/haproxy.cfg'), 'utf8');
    const [web = ''] = sample.split(/^(?=# The nodes of a broker)/m);
    const port = await freePort();
    const servers = members.map(({ origin }, i) => `    server s${i} ${new URL(origin).host} check\n`).join('');
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

  it('STO-7 SHA-5 the sample of HAProxy sends no call to a member that has lost its database, nor to one that stops', async () => {
    const { first, second, proxy, members } = await twoMembers(server());
    const origin = await proxyFor([first, second]);
    const post = async (path: string, authorization: string, body: object) => {
      const headers = { authorization, 'content-type': 'application/json', connection: 'close' };
      const answer = await fetch(`${origin}/vqr/api/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
      // HAProxy answers in HTML for a member whose sessions it has ended.
      return { status: answer.status, body: (await answer.json().catch(() => ({}))) as Record<string, unknown> };
    };
    const basic = Buffer.from(`${PARTNER.username}:${PARTNER.password}`).toString('base64');
    const token = await post('token_generate', `Basic ${basic}`, {});
    // Its shard is that of the member that loses its database, until the other takes it.
    const bankAccount = accountIn(members, await shardsOf(second));
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

  it('STO-7 the sample of HAProxy lets a member say why while the database is away for all of them', async () => {
    const proxy = await startProxy({ port: server().port });
    onTestFinished(() => proxy.close());
    const far = Object.assign(new URL(await server().database()), { port: String(proxy.port) }).href;
    const { members, whole } = await startMembers({ databaseUrl: far, members: 2, shards: 2 });
    await whole(members);
    const origin = await proxyFor(members);
    const authorization = `Basic ${Buffer.from(`${PARTNER.username}:${PARTNER.password}`).toString('base64')}`;
    const headers = { authorization, connection: 'close' };
    const login = () => fetch(`${origin}/vqr/api/token_generate`, { method: 'POST', headers });
    expect((await login()).status).toBe(200);
    proxy.stall();
    await Promise.all(members.map(is503));
    // A member says why, where HAProxy would only say in HTML that it has no server.
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

/** Waits until a member says that it takes no calls. */
function is503(member: TestMember): Promise<unknown> {
  return eventually('503 of a member', async () => (await member.admin('/readyz')).status === 503);
}
