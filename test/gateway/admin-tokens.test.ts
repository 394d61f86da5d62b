import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { Kysely, Migrator } from 'kysely';
import { describe, expect, it } from 'vitest';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { sqliteFile } from '../../src/gateway/store/engines/sqlite.ts';
import { MIGRATIONS } from '../../src/gateway/store/schema/migrations.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { opened } from '../store/rows.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { ENGINES } from '../support/stores.ts';
import { admin, openStream } from './admin.ts';
import { BOX1, BOX2, OTHER_ACCOUNT, type TestGateway, testGateway } from './harness.ts';

const ROOT = 'A-long-admin-token-of-a-test';
const asRoot = { authorization: `Bearer ${ROOT}` };
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

async function add(gateway: TestGateway, body: object, headers: Record<string, string> = asRoot): Promise<string> {
  return String((await admin(gateway, 'POST', 'tokens', body, headers)).body.token);
}
const statusOf = async ({ origin }: TestGateway, path: string, headers: Record<string, string> = {}) =>
  (await fetch(`${origin}${path}`, { headers })).status;
type Row = Record<string, unknown>;
const list = async (gateway: TestGateway, query = '') =>
  (await admin(gateway, 'GET', `tokens${query}`, undefined, asRoot)).body as unknown as Row[];

describe.each(ENGINES)('tokens in $name', ({ missing, places }) => {
  const place = places();

  it.skipIf(missing)('ROL-4 tokens are made, listed and revoked; only their digest is stored', async () => {
    const at = await place();
    const clock = new VirtualClock();
    const { dataDir, ...rest } = at;
    const gateway = await testGateway({ dataDir, config: { ...rest, adminToken: ROOT, mqtt: null }, clock });
    const token = await add(gateway, {
      name: 'till-1',
      role: 'cashier',
      boxes: [BOX2.terminalCode, BOX1.terminalCode],
    });
    expect(token).toMatch(/^paybox_[\w-]{32}$/);
    expect(await list(gateway)).toEqual([
      {
        ...{ name: 'till-1', role: 'cashier', boxes: [BOX1.terminalCode, BOX2.terminalCode], createdBy: 'config' },
        ...{ createdAt: new Date(clock.wallMs()).toISOString(), lastUsedAt: null, revokedAt: null },
      },
    ]);
    // A use is stored once a minute at most.
    const used = async () => (await list(gateway))[0]?.lastUsedAt;
    for (const [laterMs, seenMs] of [
      [0, 0],
      [59_000, 0],
      [2_000, 61_000],
    ] as const) {
      const sinceMs = clock.wallMs();
      await clock.advance(laterMs);
      expect(await statusOf(gateway, '/admin/v1/caller', bearer(token))).toBe(200);
      const atMs = seenMs === 0 && laterMs > 0 ? sinceMs : clock.wallMs();
      await eventually('the use', async () => (await used()) === new Date(atMs).toISOString());
    }
    const revoked = await admin(gateway, 'DELETE', 'tokens/till-1', undefined, asRoot);
    expect([revoked.status, revoked.body]).toEqual([200, { status: 'SUCCESS', message: '' }]);
    expect(await statusOf(gateway, '/admin/v1/caller', bearer(token))).toBe(401);
    expect(await list(gateway)).toEqual([]);
    expect(await list(gateway, '?revoked=true')).toMatchObject([{ name: 'till-1', revokedAt: expect.any(String) }]);
    expect((await admin(gateway, 'DELETE', 'tokens/till-1', undefined, asRoot)).status).toBe(404);
    // What the old token did stays told apart from what another one does, and the old token stays worthless.
    for (const name of ['till-1', 'TILL-1', 'Till-1']) {
      const taken = await admin(gateway, 'POST', 'tokens', { name, role: 'viewer' }, asRoot);
      const reason = expect.stringContaining(`${name}: expected a name that no token has had`);
      expect([taken.status, taken.body]).toMatchObject([409, { message: 'NAME_TAKEN', reason }]);
    }
    const again = await add(gateway, { name: 'till-2', role: 'viewer' });
    expect((await admin(gateway, 'POST', 'tokens', { name: 'TILL-2', role: 'admin' }, asRoot)).status).toBe(409);
    expect(await statusOf(gateway, '/_mock/boxes', bearer(again))).toBe(200);
    expect(await statusOf(gateway, '/_mock/boxes', bearer(token))).toBe(401);
    await gateway.close();
    const store = await opened(at);
    const [row] = await store.adminTokens.list(false);
    expect(row?.digest).toBe(createHash('sha256').update(again).digest('hex'));
    const [target, ...targets] = (await store.registry.changes(10)).map((it) => [it.who, it.what, it.target]);
    expect([target, ...targets].slice(0, 3)).toEqual([
      ['config', 'added', 'tokens/till-2'],
      ['config', 'revoked', 'tokens/till-1'],
      ['config', 'added', 'tokens/till-1'],
    ]);
    await store.close();
    const files = await readdir(dataDir);
    const contents = await Promise.all(files.map((it) => readFile(join(dataDir, it), 'latin1')));
    for (const secret of [token, again]) {
      expect(contents.filter((it) => it.includes(secret))).toEqual([]);
      expect(JSON.stringify(gateway.log)).not.toContain(secret);
    }
  });
});

it.each([
  ['a name with a control byte', { name: 'till\u001b[2J', role: 'cashier' }, 400, 'name'],
  ['a name with a line end', { name: 'till\n', role: 'cashier' }, 400, 'name'],
  ['no name', { role: 'cashier' }, 400, 'name'],
  ['a long name', { name: 'x'.repeat(65), role: 'cashier' }, 400, 'name'],
  ['the name of the configured token', { name: 'config', role: 'admin' }, 400, 'config'],
  ['the name of the configured token in another case', { name: 'Config', role: 'admin' }, 400, 'config'],
  ['the name of the made token in another case', { name: 'ADMIN-TOKEN', role: 'admin' }, 400, 'admin-token'],
  ['the name of whoever has no token in another case', { name: 'LOOPBACK', role: 'admin' }, 400, 'loopback'],
  ['a name that looks like another one', { name: 't\u0430ken', role: 'admin' }, 400, 'name'],
  ['a name of wide letters', { name: '\uff43onfig', role: 'admin' }, 400, 'name'],
  ['the name of whoever has no token', { name: 'loopback', role: 'admin' }, 400, 'loopback'],
  ['a role that is none', { name: 'a', role: 'owner' }, 400, 'role'],
  ['a box that is none', { name: 'a', role: 'cashier', boxes: ['VVB000099'] }, 400, 'VVB000099'],
  ['no boxes', { name: 'a', role: 'cashier', boxes: [] }, 400, 'boxes'],
  ['boxes of a viewer', { name: 'a', role: 'viewer', boxes: [BOX1.terminalCode] }, 400, 'boxes'],
  ['a token of the caller', { name: 'a', role: 'viewer', token: 'x' }, 400, 'token'],
  ['a name that another token has', { name: 'taken', role: 'viewer' }, 409, 'taken'],
  ['a name that another token has in another case', { name: 'TAKEN', role: 'viewer' }, 409, 'in whatever case'],
])('ROL-4 refuses %s, and makes nothing', async (_what, body, status, names) => {
  const gateway = await testGateway({ config: { adminToken: ROOT, mqtt: null } });
  await add(gateway, { name: 'taken', role: 'admin' });
  const answer = await admin(gateway, 'POST', 'tokens', body, asRoot);
  expect([answer.status, answer.body.reason]).toEqual([status, expect.stringContaining(names)]);
  expect(await list(gateway)).toHaveLength(1);
});

it('ROL-4 THR-38 revoking a token ends what it has open at once, and nothing of others', async () => {
  const gateway = await testGateway({ config: { adminToken: ROOT, mqtt: null } });
  const watch = (token: string) => openStream(`${gateway.origin}/_mock/events`, token);
  const gone = await add(gateway, { name: 'gone', role: 'viewer' });
  const other = await add(gateway, { name: 'other', role: 'viewer' });
  const streams = await Promise.all([watch(gone), watch(other), watch(ROOT)]);
  await admin(gateway, 'DELETE', 'tokens/gone', undefined, asRoot);
  await streams[0].ended;
  await admin(gateway, 'POST', 'tokens', { name: 'more', role: 'viewer' }, asRoot);
  expect(streams.slice(1).map((it) => it.isOver)).toEqual([false, false]);
  expect(await statusOf(gateway, '/_mock/boxes', bearer(gone))).toBe(401);
  await Promise.all(streams.slice(1).map((it) => it.leave()));
});

it('ROL-4 THR-38 a body that was held back until its token was revoked changes nothing', async () => {
  const gateway = await testGateway({ config: { adminToken: ROOT, mqtt: null } });
  const token = await add(gateway, { name: 'leaver', role: 'admin' });
  const body = JSON.stringify({ name: 'leaver-again', role: 'admin' });
  const request = httpRequest(`${gateway.origin}/admin/v1/tokens`, {
    method: 'POST',
    headers: { ...bearer(token), 'content-type': 'application/json', 'content-length': body.length },
  });
  const answered = once(request, 'response');
  request.write(body.slice(0, 1));
  // It was let in once its use is stored.
  await eventually('its head is read', async () => (await list(gateway))[0]?.lastUsedAt !== null);
  expect((await admin(gateway, 'DELETE', 'tokens/leaver', undefined, asRoot)).status).toBe(200);
  request.end(body.slice(1));
  const [response] = (await answered) as [IncomingMessage];
  response.resume();
  expect(response.statusCode).toBe(401);
  expect(await list(gateway)).toEqual([]);
});

it('ROL-4 ROL-5 THR-38 an admin made by a token may revoke, a cashier may not; the audit names who did what, and from where', async () => {
  const gateway = await testGateway({ config: { adminToken: ROOT, mqtt: null, registry: 'store' } });
  const boss = bearer(await add(gateway, { name: 'boss', role: 'admin' }));
  const cashier = bearer(await add(gateway, { name: 'till', role: 'cashier' }, boss));
  expect((await admin(gateway, 'DELETE', 'tokens/boss', undefined, cashier)).status).toBe(403);
  expect((await admin(gateway, 'POST', 'boxes/VVB000001/link', { account: '5550001' }, cashier)).status).toBe(403);
  expect((await admin(gateway, 'POST', 'boxes/VVB000001/link', { account: '5550001' }, boss)).status).toBe(200);
  expect((await admin(gateway, 'DELETE', 'tokens/till', undefined, boss)).status).toBe(200);
  await fetch(`${gateway.origin}/_mock/keys/rotate`, { method: 'POST', headers: boss });
  await (await fetch(`${gateway.origin}/_mock/backup`, { headers: boss })).arrayBuffer();
  const rows = (await admin(gateway, 'GET', 'audit?limit=6', undefined, boss)).body as unknown as Row[];
  expect(rows.map((it) => [it.who, it.address, it.what, it.target])).toEqual([
    ['boss', '127.0.0.1', 'taken', 'backup'],
    ['boss', '127.0.0.1', 'rotated', 'keys'],
    ['boss', '127.0.0.1', 'revoked', 'tokens/till'],
    ['boss', '127.0.0.1', 'linked', 'boxes/VVB000001'],
    ['boss', '127.0.0.1', 'added', 'tokens/till'],
    ['config', '127.0.0.1', 'added', 'tokens/boss'],
  ]);
  expect(gateway.logged('admin-called').at(-1)).toMatchObject({
    who: 'boss',
    role: 'admin',
    path: '/_mock/keys/rotate',
  });
});

describe('without a token', () => {
  it.each([
    [undefined, 'admin', 200, 200, 200],
    ['admin', 'admin', 200, 200, 200],
    ['viewer', 'viewer', 200, 200, 403],
    ['support', 'support', 200, 200, 403],
    ['cashier', 'cashier', 200, 403, 403],
  ])('ROL-3 http.loopback: %s makes programs of this machine %s', async (loopback, role, caller, boxes, rotate) => {
    const gateway = await testGateway({ config: { mqtt: null, http: { port: 0, ...(loopback && { loopback }) } } });
    const rotated = await fetch(`${gateway.origin}/_mock/keys/rotate`, { method: 'POST' });
    expect([
      await statusOf(gateway, '/admin/v1/caller'),
      await statusOf(gateway, '/_mock/boxes'),
      rotated.status,
    ]).toEqual([caller, boxes, rotate]);
    expect((await admin(gateway, 'GET', 'caller')).body).toMatchObject({ name: 'loopback', role });
    // Who is not of this machine, or sends a token that is none, is nobody in any case.
    expect(await statusOf(gateway, '/admin/v1/caller', { 'x-forwarded-for': '192.0.2.7' })).toBe(401);
    expect(await statusOf(gateway, '/admin/v1/caller', bearer(`paybox_${'x'.repeat(32)}`))).toBe(401);
    expect(await statusOf(gateway, '/admin/v1/caller', { authorization: 'Bearer' })).toBe(401);
  });

  const OWN = { accounts: [OTHER_ACCOUNT], boxes: [], partners: [], mqtt: null };
  it.each([
    ['a live gateway', { ...OWN, mode: 'live' }],
    ['a gateway with http.loopback: none', { mqtt: null, http: { port: 0, loopback: 'none' } }],
    ['a gateway with http.loopback: viewer', { mqtt: null, http: { port: 0, loopback: 'viewer' } }],
  ])('ROL-3 %s makes its first token at its start, keeps it, and says where it is', async (_what, config) => {
    const dataDir = join(await temporaryFolder(), 'made');
    const first = await testGateway({ dataDir, config });
    const file = join(dataDir, 'admin-token');
    expect(first.logged('admin-token-created')).toMatchObject([{ file }]);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const token = (await readFile(file, 'utf8')).trim();
    expect(JSON.stringify(first.log)).not.toContain(token);
    expect((await admin(first, 'GET', 'caller', undefined, bearer(token))).body).toMatchObject({
      ...{ name: 'admin-token', role: 'admin' },
    });
    expect((await fetch(`${first.origin}/_mock/keys/rotate`, { method: 'POST' })).status).not.toBe(200);
    await first.close();
    const second = await testGateway({ dataDir, config });
    expect(second.logged('admin-token-found')).toMatchObject([{ file }]);
    expect(await statusOf(second, '/_mock/boxes', bearer(token))).toBe(200);
    await second.close();
    await writeFile(file, 'password\n');
    await expect(testGateway({ dataDir, config })).rejects.toThrow('admin-token: expected a secret of 128 bits');
  });

  it('ROL-3 a live gateway lets nobody do anything without a token, whatever its file says', async () => {
    const gateway = await testGateway({ config: { ...OWN, mode: 'live' } });
    for (const path of ['/_mock/about', '/_mock/events', '/admin/v1/caller', '/admin/v1/sales', '/metrics']) {
      expect([path, await statusOf(gateway, path)]).toEqual([path, 401]);
    }
    expect(await statusOf(gateway, '/healthz')).toBe(200);
    const file = (change: object) => () =>
      parseGatewayConfig({ dataDir: 'x', mode: 'live', http: { loopback: 'viewer' }, ...change }, 'gateway.yaml');
    expect(file({})).toThrow('http.loopback: expected none, or no such key, with mode: live');
    expect(file({ http: { loopback: 'none' } })).not.toThrow();
  });
});

it('ROL-4 the store of a version before tokens is opened, and its changes and sales are listed', async () => {
  const dataDir = await temporaryFolder();
  const db = new Kysely<{ audit: Row }>({
    dialect: sqliteFile(join(dataDir, 'gateway.sqlite'), keptLog().log).dialect,
  });
  const older = Object.fromEntries(Object.entries(MIGRATIONS).filter(([name]) => name < '018-admin-tokens'));
  const { error } = await new Migrator({ db, provider: { getMigrations: async () => older } }).migrateToLatest();
  expect(error).toBeUndefined();
  const change = { seq: 1, at_ms: 1, who: 'loopback', what: 'added', target: 'boxes/VVB000001', detail: '{}' };
  await db.insertInto('audit').values(change).execute();
  await db.destroy();
  const gateway = await testGateway({ dataDir, config: { adminToken: ROOT, mqtt: null } });
  const token = await add(gateway, { name: 'new', role: 'viewer' });
  const rows = (await admin(gateway, 'GET', 'audit?target=boxes/VVB000001', undefined, bearer(token))).body;
  expect(rows).toContainEqual({
    ...{ seq: 1, at: new Date(1).toISOString(), who: 'loopback', address: null },
    ...{ what: 'added', target: 'boxes/VVB000001', detail: {} },
  });
});
