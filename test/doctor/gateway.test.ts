import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Finding } from '../../src/device/doctor/findings.ts';
import { backupFinding, type CheckedGateway, gatewayFindings } from '../../src/device/doctor/gateway.ts';
import { createAuthority, issue, validFor } from '../../src/device/setup/pki.ts';
import { hookPathOf } from '../../src/gateway/money/sources/registry.ts';
import { testGateway } from '../gateway/harness.ts';
import { freePort, temporaryFolder } from '../support/net.ts';
import { payboxToEnd } from '../support/processes.ts';

const DAY_MS = 86_400_000;
const SOURCES = [
  { kind: 'sepay', name: 'feed', auth: { kind: 'apikey', key: 'key-of-this-test' } },
  { kind: 'vietqr', name: 'public', username: 'shop', password: 'password-of-this-test' },
  { kind: 'sepay', name: 'signed', auth: { kind: 'hmac', secret: 'key-of-this-test' } },
  { kind: 'casso', name: 'casso', auth: { kind: 'signature', key: 'key-of-this-test' } },
  { kind: 'casso', name: 'casso-v1', auth: { kind: 'secure-token', token: 'key-of-this-test' } },
  { kind: 'payos', name: 'payos', checksumKey: 'key-of-this-test' },
];

const HOOKS = SOURCES.map((it) => ({ name: it.name, hook: hookPathOf(it) }));

async function checked(change: Partial<CheckedGateway> = {}): Promise<CheckedGateway> {
  const http = { host: '127.0.0.1', port: await freePort() };
  return { mode: 'sandbox', dataDir: await temporaryFolder(), http, sources: [], ...change };
}

async function findingsFor(change: Partial<CheckedGateway>): Promise<(check: string) => Finding | undefined> {
  const all = await gatewayFindings(await checked(change));
  return (check) => all.find((it) => it.check === check);
}

/** A running gateway with a source for each way of proof, and its part of the configuration. */
async function running(): Promise<Partial<CheckedGateway> & { origin: string }> {
  const { origin } = await testGateway({ config: { sources: SOURCES } });
  return { origin, http: { host: '127.0.0.1', port: Number(new URL(origin).port) }, sources: HOOKS };
}

describe('paybox doctor --gateway', () => {
  it('doctor finds every hook that refuses a call without proof at the public address, as its provider would call it', async () => {
    const { origin, ...gateway } = await running();
    const of = await findingsFor({ ...gateway, publicUrl: origin });
    expect(of('configuration')).toMatchObject({ result: 'ok', found: 'mode: sandbox, 6 sources of money' });
    for (const { name } of HOOKS) expect([name, of(`hook ${name}`)?.result]).toEqual([name, 'ok']);
    expect(of('gateway')).toMatchObject({ result: 'ok', found: 'it runs with mode: sandbox' });
    expect(of('hook feed')).toMatchObject({ result: 'ok', found: expect.stringContaining('/hooks/feed refuses') });
    const found = expect.stringContaining('/hooks/public/api/token_generate refuses');
    expect(of('hook public')).toMatchObject({ result: 'ok', found });
    expect(of('source feed')).toMatchObject({ result: 'warning', found: 'it has never told of anything' });
    expect(of('backup')).toMatchObject({ result: 'warning', found: 'none was ever taken' });
  });

  it('doctor finds a hook that something else answers, and a public address that nobody answers', async () => {
    const server = createServer((_request, response) => void response.writeHead(200).end('a page')).listen(
      0,
      '127.0.0.1',
    );
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const address = server.address();
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
    const of = await findingsFor({ sources: HOOKS, publicUrl: `http://127.0.0.1:${port}` });
    expect(of('hook feed')).toMatchObject({ result: 'failed', found: expect.stringContaining('answers 200') });
    const none = await findingsFor({ sources: HOOKS, publicUrl: `http://127.0.0.1:${await freePort()}` });
    expect(none('public address')).toMatchObject({ result: 'failed', fix: expect.stringMatching(/proxy.*publicUrl/) });
    expect(none('hook feed')).toMatchObject({ result: 'skipped', found: 'the public address is not reached' });
    const unknown = await findingsFor({ sources: HOOKS });
    expect(unknown('hook feed')).toMatchObject({ result: 'skipped', found: expect.stringContaining('publicUrl') });
  });

  it('doctor finds when the gateway last handed its store out, and when a source last reported money', async () => {
    const { origin, ...gateway } = await running();
    const backup = await fetch(`${origin}/_mock/backup`);
    expect((await backup.arrayBuffer()).byteLength).toBeGreaterThan(0);
    const body = JSON.stringify({
      ...{ id: 7, gateway: 'MBBank', transactionDate: '2026-01-05 09:10:11', accountNumber: '0123456789', code: null },
      ...{ content: 'x', transferType: 'in', transferAmount: 5_000, accumulated: 0, subAccount: null },
      ...{ referenceCode: 'FT7', description: '' },
    });
    const headers = { 'content-type': 'application/json', authorization: 'Apikey key-of-this-test' };
    expect((await fetch(`${origin}/hooks/feed`, { method: 'POST', headers, body })).status).toBe(200);
    const of = await findingsFor(gateway);
    expect(of('backup')).toMatchObject({ result: 'ok', found: expect.stringContaining('handed out the newest one') });
    expect(of('source feed')).toMatchObject({ result: 'ok', found: expect.stringContaining('webhook at') });
  });

  it.each([
    [null, 'warning'],
    [new Date(10 * DAY_MS).toISOString(), 'ok'],
    [new Date(7 * DAY_MS).toISOString(), 'warning'],
  ])('finds a newest backup of %s at day 11: %s', (at, result) => {
    expect(backupFinding(at, 11 * DAY_MS)).toMatchObject({ result });
  });

  it('doctor skips, with the reason, what only the running gateway knows, or what its database keeps', async () => {
    const of = await findingsFor({ sources: HOOKS });
    expect(of('gateway')).toMatchObject({ result: 'failed', found: expect.stringContaining('ECONNREFUSED') });
    for (const check of ['backup', 'source feed', 'source public']) {
      expect(of(check)).toMatchObject({ result: 'skipped', found: 'the gateway was not asked' });
    }
    const { origin: _origin, ...gateway } = await running();
    const other = await findingsFor({ ...gateway, mode: 'live', databaseUrl: 'postgres://db/paybox' });
    expect(other('backup')).toMatchObject({ result: 'skipped', found: expect.stringContaining('PostgreSQL') });
    expect(other('gateway')).toMatchObject({ result: 'warning', fix: 'restart it: this file says live' });
  });

  it.each([
    [500, /request-failed.*healthz.*database/],
    [401, /adminToken/],
    [404, /other program.*http\.port/],
  ])('doctor says what to do about a gateway that answers %s', async (status, fix) => {
    const server = createServer((_request, response) => void response.writeHead(status).end('{"status":"FAILED"}'));
    server.listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const of = await findingsFor({ http: { host: '127.0.0.1', port }, cluster: {} });
    const found = `http://127.0.0.1:${port}/_mock/about answers ${status}`;
    expect(of('gateway')).toEqual({ check: 'gateway', result: 'failed', found, fix: expect.stringMatching(fix) });
    expect(of('cluster')?.found).toContain(`/healthz answers ${status}`);
  });

  it('doctor finds a chain that is broken, a key of another certificate, and one that ends soon', async () => {
    const folder = await temporaryFolder();
    const nowMs = Date.now();
    const authority = await createAuthority('an authority', validFor(nowMs, 1));
    const stranger = await createAuthority('another', validFor(nowMs, 1));
    const issued = (days: number) =>
      issue(
        authority,
        'pay.example',
        { kind: 'server', hosts: ['pay.example'] },
        { fromMs: nowMs - DAY_MS, untilMs: nowMs + days * DAY_MS },
      );
    const [good, soon] = [await issued(200), await issued(5)];
    const of = async (cert: string, key: string) => {
      const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
      await Promise.all([writeFile(files.cert, cert), writeFile(files.key, key)]);
      return (await findingsFor({ http: { host: '127.0.0.1', port: await freePort(), tls: files } }))('http.tls');
    };
    expect(await of(good.cert + authority.cert, good.key)).toMatchObject({ result: 'ok' });
    expect(await of(good.cert + stranger.cert, good.key)).toMatchObject({
      result: 'failed',
      found: expect.stringContaining('did not sign'),
    });
    expect(await of(good.cert + authority.cert, soon.key)).toMatchObject({
      result: 'failed',
      found: expect.stringContaining('is not the key'),
    });
    expect(await of(soon.cert + authority.cert, soon.key)).toMatchObject({
      result: 'warning',
      found: expect.stringContaining('days'),
      fix: expect.stringContaining('restart the gateway'),
    });
    expect(await of('nothing', soon.key)).toMatchObject({
      result: 'failed',
      found: expect.stringContaining('has no certificate'),
    });
  });

  it('doctor advises on the certificate of the public address where TLS ends, and names no key of a box', async () => {
    const authority = await createAuthority('an authority that nobody knows', validFor(Date.now(), 1));
    const { cert, key } = await issue(
      authority,
      'x',
      { kind: 'server', hosts: ['127.0.0.1'] },
      validFor(Date.now(), 1),
    );
    const server = createTlsServer({ cert, key }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    const of = await findingsFor({ publicUrl: `https://127.0.0.1:${port}` });
    const fix = of('public address certificate')?.fix ?? '';
    expect(of('public address certificate')?.result).toBe('failed');
    expect(fix).toContain('the proxy in front of the gateway');
    expect(fix).not.toContain('link.');
  });

  it('doctor --gateway ends with 2 for a wrong file or none, with 1 where a check failed', async () => {
    const file = join(await temporaryFolder(), 'gateway.yaml');
    const publicUrl = `http://127.0.0.1:${await freePort()}`;
    await writeFile(file, JSON.stringify({ dataDir: 'data', http: { port: await freePort() }, publicUrl }));
    const found = await payboxToEnd('doctor', '--gateway', file, '--json');
    expect(found.code).toBe(1);
    expect(JSON.parse(found.output)).toContainEqual(expect.objectContaining({ check: 'configuration', result: 'ok' }));
    await writeFile(file, JSON.stringify({ dataDir: 'data', mode: 'live', sandbox: true }));
    expect((await payboxToEnd('doctor', '--gateway', file)).code).toBe(2);
    expect((await payboxToEnd('doctor')).code).toBe(2);
  });
});
