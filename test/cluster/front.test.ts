import { writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';
import { BoxFinder } from '../../src/gateway/cluster/box-finder.ts';
import { Destinations } from '../../src/gateway/cluster/destination.ts';
import { conflicts, differing, fileDigest } from '../../src/gateway/cluster/differences.ts';
import { frontRoutes } from '../../src/gateway/cluster/front.ts';
import { merge, mergeCsv, mergeMetrics } from '../../src/gateway/cluster/merge.ts';
import { NewsDesk } from '../../src/gateway/cluster/news.ts';
import { addressAt, Peers } from '../../src/gateway/cluster/peers.ts';
import type { RunningShard, Shards } from '../../src/gateway/cluster/shards.ts';
import { overCluster, qrRefOf, type ShardPlace, shardOf, shardOfQrRef } from '../../src/gateway/common/shard.ts';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { createApp } from '../../src/gateway/doors/app.ts';
import { isPlainPath, plainTarget } from '../../src/gateway/doors/target.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { newSecret } from '../../src/protocol/secret.ts';
import { only } from '../gateway/stage-records.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { payboxToEnd } from '../support/processes.ts';

const COUNT = 7;
const BOX = { terminalCode: 'VVB000001', account: '0123456789' };

describe('the shard of a request', () => {
  const destinations = new Destinations({
    basePath: '/vqr',
    count: COUNT,
    findBox: async (code, serial) => (code === BOX.terminalCode || serial === 'VVB900001' ? BOX : undefined),
  });
  const of = (method: string, url: string, body?: object | string, authorization?: string) => {
    const [, query = ''] = url.split('?');
    const request = { method, url, headers: { authorization }, query: Object.fromEntries(new URLSearchParams(query)) };
    const text = typeof body === 'object' ? JSON.stringify(body) : body;
    return destinations.of(request as unknown as FastifyRequest, text === undefined ? undefined : Buffer.from(text));
  };
  const basic = (user: string) => `Basic ${Buffer.from(`${user}:x`).toString('base64')}`;
  const home = { shard: shardOf(BOX.account, COUNT) };

  it('SHA-4 the shard of a request is that of its account, its box, or its partner', async () => {
    expect(await of('POST', '/vqr/api/qr/generate-customer', { bankAccount: BOX.account })).toEqual(home);
    expect(await of('POST', '/vqr/bank/api/test/transaction-callback', { bankAccount: BOX.account })).toEqual(home);
    expect(await of('POST', '/vqr/api/tid/send-qr', { bankAccount: '9', terminalCode: 'VVB000001' })).toEqual(home);
    expect(await of('POST', '/vqr/api/tid/send-qr', { bankAccount: '9', serialNumber: 'VVB900001' })).toEqual(home);
    expect(await of('GET', '/box/v1/stream', undefined, basic('VVB000001'))).toEqual(home);
    expect(await of('POST', '/box/v1/messages', 'a.b.c', basic('VVB000001'))).toEqual(home);
    expect(await of('POST', '/admin/v1/sales', { amount: 1, terminalCode: 'VVB000001' })).toEqual(home);
    const stranger = { shard: shardOf('VVB000009', COUNT) };
    expect(await of('GET', '/box/v1/stream', undefined, basic('VVB000009'))).toEqual(stranger);
    const shop = { shard: shardOf('shop', COUNT) };
    expect(await of('POST', '/vqr/api/token_generate', undefined, basic('shop'))).toEqual(shop);
  });

  it.each(['', '{', '[]', '{"bankAccount":5}', '\u0000'])('has one for the body %j, too', async (body) => {
    expect(await of('POST', '/vqr/api/qr/generate-customer', body)).toEqual({ shard: shardOf('', COUNT) });
  });

  it('the shard of a request is the first for the registry, and all for lists', async () => {
    expect(await of('POST', '/admin/v1/boxes', {})).toEqual({ shard: 0 });
    expect(await of('GET', '/unknown')).toEqual({ shard: 0 });
    expect(await of('GET', '/_mock/orders?limit=5')).toBe('merged');
    expect(await of('GET', '/_mock/orders?shard=3')).toEqual({ shard: 3 });
    for (const no of ['7', '99999', '-1', '', 'x', '1e1'])
      expect(await of('GET', `/_mock/orders?shard=${no}`)).toBe('nowhere');
    expect(await of('POST', '/vqr/api/tid/cancel-qr', { transactionReceiveId: 'x' })).toBe('first');
    expect(await of('GET', '/console.js')).toBe('here');
  });
});

it.each([
  ['/vqr/api/tid/send-qr?a=1', '/vqr/api/tid/send-qr?a=1'],
  ['//evil.example/x', '//evil.example/x'],
  ['//evil.example:99@host/x', '//evil.example:99@host/x'],
  ['http://evil.example/x?y', '/x?y'],
  ['http://evil.example', '/'],
  ['@evil.example/x', '/@evil.example/x'],
  ['.evil.example/x', '/.evil.example/x'],
])('SHA-5 carries %s to the member and to no other host', (target, path) => {
  const to = addressAt('http://10.0.0.5:8800', target);
  expect([to.origin, to.username]).toEqual(['http://10.0.0.5:8800', '']);
  expect(`${to.pathname}${to.search}`).toBe(path);
});

describe('a call for a shard that is moving', () => {
  const body = JSON.stringify({ bankAccount: BOX.account });

  /** A member that runs no shard before `found` says so. */
  async function memberWith(found: () => boolean) {
    const { log } = keptLog();
    let looks = 0;
    const gateway = { handle: (_request: unknown, answer: { end(text: string): void }) => answer.end('here') };
    const running = { index: 0, gateway, inHand: 0, pushesInHand: 0, leaving: 'no' } as unknown as RunningShard;
    const get = () => {
      looks += 1;
      return found() ? running : undefined;
    };
    const app = createApp(log, systemClock, undefined);
    const peers = new Peers({ clock: systemClock, secret: 'secret', ca: undefined });
    const destinations = new Destinations({ basePath: '/vqr', count: 1, findBox: async () => undefined });
    const shards = only<Shards>({ get, all: () => [] });
    frontRoutes(
      app,
      { clock: systemClock, log, random: systemRandom, secret: 'secret', count: 1, shards, peers, destinations },
      {},
    );
    onTestFinished(async () => {
      peers.close();
      await app.close();
    });
    const origin = await app.listen({ host: '127.0.0.1', port: 0 });
    return { url: `${origin}/vqr/api/qr/generate-customer`, looks: () => looks };
  }

  it('SHA-5 a call waits for a shard that is moving, also with a body that is read to its end', async () => {
    let isFound = false;
    const member = await memberWith(() => isFound);
    const answer = fetch(member.url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    await eventually('some looks', () => member.looks() > 4);
    isFound = true;
    expect(await (await answer).text()).toBe('here');
  });

  it.each([
    { method: 'POST', path: '/_mock/orders/DH1/pay', asked: 1 },
    { method: 'GET', path: '/_mock/orders/DH1', asked: 2 },
  ])('SHA-5 is asked $asked times for a $method whose answer is lost', async ({ method, path, asked }) => {
    let requests = 0;
    const holder = createServer((request, response) => {
      requests += 1;
      request.resume();
      if (requests === 1) request.socket.destroy();
      else response.end('{}');
    });
    await new Promise<void>((listening) => holder.listen(0, '127.0.0.1', listening));
    const peers = new Peers({ clock: systemClock, secret: 'secret', ca: undefined });
    onTestFinished(() => {
      peers.close();
      holder.close();
    });
    const url = `http://127.0.0.1:${(holder.address() as AddressInfo).port}`;
    peers.see({ members: [{ id: 'b', url, file: '', alike: {}, leaving: false }], holders: new Map([[0, 'b']]) });
    const raw = { socket: { remoteAddress: '10.0.0.9' } };
    const request = { method, originalUrl: path, url: path, headers: {}, raw } as unknown as FastifyRequest;
    const [part] = await Promise.all(peers.parts([0], request, undefined));
    expect([part?.status, requests]).toEqual([asked === 1 ? undefined : 200, asked]);
  });

  it('a call for a shard that is moving is given up once the caller is gone', async () => {
    const member = await memberWith(() => false);
    const call = send(member.url, { method: 'POST', headers: { 'content-type': 'application/json' } });
    call.on('error', () => undefined);
    call.end(body);
    await eventually('a look', () => member.looks() > 1);
    call.destroy();
    await eventually(
      'no look between two others',
      async () => {
        const before = member.looks();
        await delay(120);
        return member.looks() === before;
      },
      4_000,
    );
  });
});

it('a member ends its stream from another member whose caller has gone before it began', async () => {
  const { log } = keptLog();
  const answers: ServerResponse[] = [];
  const member = createServer((_request, answer) => void answers.push(answer));
  await new Promise<void>((listening) => member.listen(0, '127.0.0.1', listening));
  const { port } = member.address() as AddressInfo;
  const peers = new Peers({ clock: systemClock, secret: 'secret', ca: undefined });
  const holder = { id: 'b', url: `http://127.0.0.1:${port}`, file: '', alike: {}, leaving: false };
  peers.see({ members: [holder], holders: new Map([[0, 'b']]) });
  const app = createApp(log, systemClock, undefined);
  const destinations = new Destinations({ basePath: '/vqr', count: 1, findBox: async () => undefined });
  const deps = { clock: systemClock, log, random: systemRandom, secret: 'secret', count: 1, destinations };
  frontRoutes(app, { ...deps, shards: only<Shards>({ get: () => undefined, all: () => [] }), peers }, {});
  const passed: ServerResponse[] = [];
  app.server.on('request', (_request, answer) => void passed.push(answer));
  onTestFinished(async () => {
    peers.close();
    await app.close();
    member.closeAllConnections();
    await new Promise((closed) => member.close(closed));
  });
  const origin = await app.listen({ host: '127.0.0.1', port: 0 });
  const call = send(`${origin}/box/v1/stream`);
  call.on('error', () => undefined);
  call.end();
  const stream = await eventually('the call at the other member', () => answers[0]);
  call.destroy();
  await eventually('the caller to be gone', () => passed[0]?.closed);
  stream.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  await eventually('the end of the stream', () => stream.closed, 5_000);
});

describe('a call that every shard is asked', () => {
  const ANSWERS = { found: 200, none: 404, refused: 400, wrong: 401, sick: 503 } as const;
  type Answer = keyof typeof ANSWERS;

  /** A front before shards that answer so, or not at all; what each was asked. */
  async function frontOf(answers: readonly (Answer | undefined)[]) {
    const { log } = keptLog();
    const asked: number[] = [];
    const parts = (indexes: readonly number[]) =>
      indexes.map(async (index) => {
        asked.push(index);
        const answer = answers[index];
        return answer && { status: ANSWERS[answer], headers: {}, body: Buffer.from('[]') };
      });
    const app = createApp(log, systemClock, undefined);
    const count = answers.length;
    const destinations = new Destinations({ basePath: '/vqr', count, findBox: async () => undefined });
    const deps = { clock: systemClock, log, random: systemRandom, secret: 'secret', count, destinations };
    const shards = only<Shards>({ get: () => undefined, all: () => [{ index: 1 } as RunningShard] });
    frontRoutes(app, { ...deps, shards, peers: { parts } as unknown as Peers }, {});
    onTestFinished(() => app.close());
    const cancel = await app.inject({ method: 'POST', url: '/vqr/api/tid/cancel-qr', payload: {} });
    const list = await app.inject({ method: 'GET', url: '/_mock/orders' });
    return { cancel: cancel.statusCode, list: list.statusCode, asked };
  }

  it.each<[string, (Answer | undefined)[], number, number]>([
    ['is answered by the one that knows it', ['refused', 'refused', 'found'], 200, 400],
    ['is refused once every shard has refused it', ['refused', 'refused', 'none'], 400, 400],
    ['is not refused while a shard does not answer', ['refused', 'refused', undefined], 502, 502],
    ['is not refused while a shard cannot answer', ['refused', 'none', 'sick'], 503, 503],
    ['is a list of all', ['found', 'found', 'found'], 200, 200],
    ['is no list of some', ['found', 'found', undefined], 200, 502],
  ])('SHA-5 %s', async (_what, answers, cancel, list) => {
    expect(await frontOf(answers)).toMatchObject({ cancel, list });
  });

  it('SHA-7 a call for every shard counts a wrong login in one shard', async () => {
    expect(await frontOf(['wrong', 'wrong', 'wrong'])).toEqual({ cancel: 401, list: 401, asked: [1, 1] });
  });
});

it.each([
  ['/vqr/bank/api/test/transaction%2Dcallback?a=%2D', '/vqr/bank/api/test/transaction-callback?a=%2D'],
  ['http://127.0.0.1:1/vqr/x#y', '/vqr/x'],
  ['http://127.0.0.1:1@evil.example/x', 'http://127.0.0.1:1@evil.example/x'],
  ['http://evil.example/x', 'http://evil.example/x'],
  ['/vqr/x#y?z', '/vqr/x'],
  ['/vqr/%2e%2E/metrics', '/vqr/../metrics'],
  ['/vqr/%2Fx%5c', '/vqr/%2Fx%5c'],
  ['/%', '/%'],
])('SHA-5 front and shard read the target %s alike', (target, plain) => {
  expect(plainTarget(target, '127.0.0.1:1')).toBe(plain);
});

it.each([
  '/vqr/../metrics',
  '/..',
  '/./x',
  '/vqr\\..\\admin',
  '/x/.',
  '/qr/%00',
  '/x/%1F',
  '/x/%63',
  '',
  'x',
  'http://evil.example/x',
])('SHA-5 takes no path like %s', (path) => {
  expect(isPlainPath(path)).toBe(false);
});

it.each(['/', '/vqr/x', '/.well-known/x', '/a..b/...', '/console.js', '/qr/%20'])(
  'SHA-5 takes a path like %s',
  (path) => {
    expect(isPlainPath(path)).toBe(true);
  },
);

it('a member warns of the store of a gateway alone in its folder', async () => {
  const folder = await temporaryFolder();
  const file = join(folder, 'gateway.yaml');
  await writeFile(join(folder, 'gateway.sqlite'), '');
  const cluster = { advertise: 'http://127.0.0.1:1' };
  const databaseUrl = 'postgres://nobody@127.0.0.1:1/none';
  await writeFile(
    file,
    JSON.stringify({ cluster, databaseUrl, dataDir: '.', mqtt: null, adminToken: '0123456789abcdef0123456789abcdef' }),
    { mode: 0o600 },
  );
  const { output } = await payboxToEnd('gateway', '--config', file);
  expect(output).toContain('store-left-behind');
});

it('the directory answers "not yet" before shard 0 has made its tables, and finds the box once it has', async () => {
  let isReady = false;
  const finder = new BoxFinder(async (names) => {
    if (isReady) return names.map(() => BOX);
    throw Object.assign(new Error('relation "shard_0.boxes" does not exist'), { code: '42P01' });
  });
  await expect(finder.find('VVB000001', '')).rejects.toMatchObject({ statusCode: 503 });
  isReady = true;
  expect(await finder.find('VVB000001', '')).toBe(BOX);
});

it('the directory finds boxes without asking for impossible codes, and forgets made-up names before boxes', async () => {
  const asked: string[] = [];
  const finder = new BoxFinder(async (names) =>
    names.map(({ terminalCode, serialNumber }) => {
      asked.push(`${terminalCode}${serialNumber}`);
      return terminalCode === 'VVB000001' ? BOX : undefined;
    }),
  );
  expect(await finder.find('VVB000001', '')).toBe(BOX);
  for (const code of ['a\u0000', 'VVB', 'VVB0000011', "VVB000001'"])
    expect(await finder.find(code, '')).toBeUndefined();
  for (let i = 2; i < 20_000; i += 1) await finder.find(`VVB${String(i).padStart(6, '0')}`, '');
  expect(await finder.find('VVB000001', '')).toBe(BOX);
  expect(asked.filter((it) => it === 'VVB000001')).toHaveLength(1);
  expect(asked).toHaveLength(19_999);
  await finder.find('VVB019999', '');
  expect(asked).toHaveLength(19_999);
  finder.clear();
  await finder.find('VVB000001', '');
  expect(asked).toHaveLength(20_000);
  for (const serial of ['x'.repeat(60_000), 'VVB900001', '']) await finder.find('VVB000001', serial);
  expect(asked).toHaveLength(20_000);
});

it('the directory stores nothing that it looked up while the registry changed', async () => {
  const loads: ((found: (typeof BOX | undefined)[]) => void)[] = [];
  const finder = new BoxFinder(() => new Promise((resolve) => loads.push(resolve)));
  const before = finder.find('VVB000001', '');
  finder.clear();
  loads[0]?.([undefined]);
  expect(await before).toBeUndefined();
  const after = finder.find('VVB000001', '');
  loads[1]?.([BOX]);
  expect(await after).toBe(BOX);
});

it('the directory looks waiting names up together, so that made-up names hold nobody up', async () => {
  const batches: string[][] = [];
  const first = Promise.withResolvers<void>();
  const finder = new BoxFinder(async (names) => {
    batches.push(names.map(({ terminalCode }) => terminalCode));
    if (batches.length === 1) await first.promise;
    if (batches.length === 2) throw new Error('no answer');
    return names.map(({ terminalCode }) => (terminalCode === 'VVB000001' ? BOX : undefined));
  });
  const code = (i: number) => `VVB${String(i).padStart(6, '0')}`;
  const some = [finder.find(code(900), ''), ...Array.from({ length: 700 }, (_, i) => finder.find(code(700 - i), ''))];
  const settled = Promise.allSettled(some);
  first.resolve();
  const places = await settled;
  expect(batches.map((it) => it.length)).toEqual([1, 500, 200]);
  expect(places.filter(({ status }) => status === 'rejected')).toHaveLength(500);
  expect(places.at(-1)).toEqual({ status: 'fulfilled', value: BOX });
  expect(await finder.find(code(700), '')).toBeUndefined();
});

it('the name of the picture of a QR holds its shard', () => {
  const uuid = systemRandom.uuid();
  for (const index of [0, 3, 15]) expect(shardOfQrRef(qrRefOf(uuid, only<ShardPlace>({ index })), 16)).toBe(index);
  expect(shardOfQrRef(qrRefOf(uuid, only<ShardPlace>({ index: 16 })), 16)).toBeUndefined();
  for (const ref of ['', 'none', '../x', qrRefOf(uuid, only<ShardPlace>({ index: 1 })).slice(1)])
    expect(shardOfQrRef(ref, 16)).toBeUndefined();
  expect(Buffer.from(qrRefOf(uuid, undefined), 'base64url').toString('hex')).toBe(uuid.replaceAll('-', ''));
});

it('news settle once they are stored, and not before', async () => {
  let isThere = false;
  const stored: string[] = [];
  const tell = async (text: string) => {
    if (!isThere) throw new Error('no database');
    stored.push(text);
  };
  const desk = new NewsDesk({ clock: systemClock, log: keptLog().log, tell, heardLogins: () => undefined });
  const shards = overCluster(only<ShardPlace>({ tell: (news) => desk.tell(news) }));
  let isAnswered = false;
  const expelled = shards.expel('VVB000001', 'disabled', true).then(() => {
    isAnswered = true;
  });
  await desk.flush();
  expect(isAnswered).toBe(false);
  isThere = true;
  await desk.flush();
  await expelled;
  expect(stored).toHaveLength(1);
  const lost = overCluster(only<ShardPlace>({ tell: async () => false }));
  await expect(lost.renew('VVB000001', 'linked anew')).rejects.toThrow('could not be told');
});

it('news are stored in their order, also while the database is slow for one of them', async () => {
  const stored: string[] = [];
  let isFirst = true;
  const tell = async (text: string) => {
    const mustWait = isFirst;
    isFirst = false;
    if (mustWait) await delay(50);
    stored.push(text);
  };
  const desk = new NewsDesk({ clock: systemClock, log: keptLog().log, tell, heardLogins: () => undefined });
  const boxes = ['VVB000001', 'VVB000002', 'VVB000003'];
  await Promise.all(boxes.map((box) => desk.tell({ about: 'renew', box, reason: 'linked anew' })));
  expect(stored.map((it) => (JSON.parse(it) as { box: string }).box)).toEqual(boxes);
});

it('a member merges lists newest first, boxes from where they are online, and the sums of a day', async () => {
  const parts = (...lists: unknown[]) => lists.map((it) => Buffer.from(JSON.stringify(it)));
  const [old, mid, fresh] = ['a', 'b', 'c'].map((id, i) => ({ id, createdAt: `2026-01-0${i + 1}T00:00:00Z` }));
  expect(await merge(parts([mid], [fresh, old], []), 3)).toEqual([fresh, mid, old]);
  expect(await merge(parts([mid], [fresh, old]), 2)).toEqual([fresh, mid]);
  const box = (online: boolean) => ({ terminalCode: 'VVB000001', serialNumber: 'VVB900001', online });
  expect(await merge(parts([box(false)], [box(true)], [box(false)]), 9)).toEqual([box(true)]);
  const day = (sales: number) => ({ day: '2026-01-31', sales, paid: 1, amount: 10, rows: [] });
  expect(await merge(parts(day(1), day(2)), 9)).toEqual({ day: '2026-01-31', sales: 3, paid: 2, amount: 20, rows: [] });
});

it('a member merges the files of a day by the times of their sales, with one head and one sum', () => {
  const head = 'time,code,amount,paid,status,content,box,account,cashier';
  const file = (...rows: string[]) => Buffer.from(`${head}\r\n${rows.map((it) => `${it}\r\n`).join('')}`);
  const [early, late] = [
    '2026-01-05 09:10:11,A,5,5,paid,"a, b",VVB000001,1',
    '2026-01-05 09:10:12,B,7,0,shown,c,VVB000002,2',
  ];
  const merged = mergeCsv([file(late, 'sum,,,0,,,,,'), file('sum,,,0,,,,,'), file(early, 'sum,,,5,,,,,')]);
  expect(merged).toBe(file(early, late, 'sum,,,5,,,,,').toString());
});

it('a member gives every sample of the metrics the label of its shard, and names each family once', () => {
  const text = '# HELP a_total A.\n# TYPE a_total counter\na_total 1\na_total{code="x"} 2\n';
  const lines = mergeMetrics([
    { shard: 0, text },
    { shard: 4, text },
  ]).split('\n');
  expect(lines.filter((it) => it.startsWith('#'))).toEqual(['# HELP a_total A.', '# TYPE a_total counter']);
  expect(lines).toEqual(
    expect.arrayContaining(['a_total{shard="0"} 1', 'a_total{shard="4",code="x"} 2', 'a_total{shard="4"} 1']),
  );
});

it('a member finds members whose files differ, and those that cannot be reached because another has their address', () => {
  const told = (change: object) =>
    fileDigest(
      parseGatewayConfig(
        { dataDir: 'a', accounts: [{ bankAccount: '1', bankCode: 'MB', userBankName: 'A' }], ...change },
        'x',
      ),
    );
  const [one, two] = [told({ dataDir: 'b', http: { port: 1 } }), told({ accounts: [] })];
  expect(one).toBe(told({}));
  expect(two).not.toBe(one);
  const member = (id: string, url: string, file: string, leaving = false) => ({
    ...{ id, url, file, leaving, alike: {} },
  });
  const own = member('a', 'http://x', one);
  const view = { holders: new Map(), members: [own, member('b', 'http://y', two), member('c', 'http://x', one, true)] };
  expect(differing(own, view)).toEqual(['b']);
  expect(conflicts(own, view)).toEqual([]);
  view.members.push(member('d', 'http://x', one));
  expect(conflicts(own, view)).toEqual(['cluster.advertise: member d has the same address, http://x']);
});

describe('the configuration of a member', () => {
  const member = {
    dataDir: 'data',
    databaseUrl: 'postgres://user:password@127.0.0.1:5432/paybox',
    mqtt: { url: 'mqtt://127.0.0.1:1883' },
    adminToken: newSecret(systemRandom),
    cluster: { advertise: 'http://127.0.0.1:8800' },
  };

  it('a member has 16 shards by default', () => {
    expect(parseGatewayConfig(member, 'gateway.yaml').cluster?.shards).toBe(16);
  });

  it.each([
    [{ databaseUrl: undefined }, 'databaseUrl: expected with cluster'],
    [{ mqtt: { embedded: {} } }, 'mqtt: expected the url of a broker that all members share'],
    [{ adminToken: undefined }, 'adminToken: expected with cluster'],
    [{ standby: true }, 'standby: expected false'],
    [{ enrolment: 'open' }, 'enrolment: expected code or closed'],
    [{ cluster: { advertise: 'http://10.0.0.5:8800' } }, 'cluster.advertise: expected https://'],
    [{ cluster: { advertise: 'ftp://10.0.0.5' } }, 'cluster.advertise: expected an address'],
    [{ cluster: { advertise: 'http://127.0.0.1:8800', shards: 1025 } }, 'cluster.shards'],
    [{ cluster: { advertise: 'http://127.0.0.1:8800', shard: 1 } }, 'cluster: '],
  ])('is refused with %j', (change, why) => {
    expect(() => parseGatewayConfig({ ...member, ...change }, 'gateway.yaml')).toThrow(why);
  });
});
