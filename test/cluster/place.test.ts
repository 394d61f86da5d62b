import { expect, it, onTestFinished } from 'vitest';
import { joinCluster } from '../../src/gateway/cluster/cluster.ts';
import { DatabaseSession } from '../../src/gateway/cluster/database-session.ts';
import { GatewayRows } from '../../src/gateway/cluster/gateway-rows.ts';
import { applicationOf, ENDED_MS, GONE_MS } from '../../src/gateway/cluster/tables.ts';
import { OpenParts } from '../../src/gateway/common/open-parts.ts';
import type { Hearing, Place } from '../../src/gateway/common/place.ts';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { transact } from '../../src/gateway/store/transact.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { HostResolver } from '../../src/lib/resolver.ts';
import { newSecret } from '../../src/protocol/secret.ts';
import { openDatabase } from '../store/one-writer.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { startPostgres } from '../support/postgres.ts';
import { ClusterRows } from './rows.ts';

const BOX = 'VVB000001';
const ADMIN_TOKEN = newSecret(systemRandom);

function sessionOf(sessionId: string) {
  const facts = {
    serialNumber: 'VVB900001',
    agentVersion: '1',
    display: 'browser',
    transport: 'http',
    sinceMs: 1_000.5,
  };
  return { terminalCode: BOX, sessionId, ...facts };
}

async function database(): Promise<string> {
  const postgres = await startPostgres();
  return postgres.database();
}

async function join(databaseUrl: string, name: string, more: Record<string, unknown> = {}) {
  const config = parseGatewayConfig(
    {
      ...{ http: { port: 0 }, mqtt: { url: 'mqtt://127.0.0.1:1' }, dataDir: await temporaryFolder(), databaseUrl },
      ...{ adminToken: ADMIN_TOKEN, cluster: { name }, accounts: [], boxes: [], partners: [] },
      ...more,
    },
    'test',
  ) as Parameters<typeof joinCluster>[0];
  const { log, lines } = keptLog();
  const opened = new OpenParts(systemClock, log);
  onTestFinished(() => opened.close(2_000));
  const heard: unknown[] = [];
  const asked: unknown[] = [];
  const place: Place = await joinCluster(config, { clock: systemClock, random: systemRandom, log }, opened);
  const hearing: Hearing = {
    news: async (news) => void heard.push(news),
    // Where the list of gateways changes depends on the moment.
    hint: (hint) => void (hint.about === 'lists' || heard.push(hint)),
    answer: async (_kind, question) => {
      asked.push(question);
      return { status: 202, reason: JSON.stringify(question) } as never;
    },
    mayHaveMissed: () => undefined,
    unseen: () => undefined,
  };
  const broker = { isThere: true, carry: (_lane: number, _sealed: Buffer) => false };
  place.lanes.serve(
    () => broker.isThere,
    (lane, sealed) => broker.carry(lane, sealed),
  );
  place.begin(hearing);
  return { place, heard, asked, lines, broker, close: () => opened.close(2_000) };
}

it('SHA-4 a box belongs to the gateway that has claimed it last, and work to the one that took it first', async () => {
  const url = await database();
  const [a, b] = [await join(url, 'a'), await join(url, 'b')];
  await eventually('both to see each other', () => a.place.others().length === 1 && b.place.others().length === 1);
  expect(await a.place.claim(sessionOf('one'))).toEqual({ before: undefined });
  expect(await b.place.elsewhere(BOX)).toEqual({ ...sessionOf('one'), run: a.place.run });
  expect(await a.place.elsewhere(BOX)).toBeUndefined();
  expect(await b.place.claim(sessionOf('two'))).toEqual({ before: a.place.run });
  await eventually('the one that lost the box to hear it', () => a.heard.length > 0);
  expect(a.heard).toEqual([{ about: 'session', box: BOX, sessionId: 'two' }]);
  expect(await a.place.lost(new Map([[BOX, { sessionId: 'one' }]]))).toEqual([BOX]);
  expect(await b.place.lost(new Map([[BOX, { sessionId: 'two' }]]))).toEqual([]);

  expect([await a.place.lease('pruning'), await b.place.lease('pruning'), await a.place.lease('pruning')]).toEqual([
    ...[true, false, true],
  ]);
  expect(await a.place.tell({ about: 'registry' })).toBe(true);
  await eventually('news to arrive', () => b.heard.length > 0);
  expect(b.heard).toEqual([{ about: 'registry' }]);
  const long = { box: BOX, sessionId: 'two', message: 'x'.repeat(20_000) };
  const answer = await a.place.ask(b.place.run, 'post', long, 5_000);
  expect(JSON.parse(answer?.reason ?? '')).toEqual(long);

  await a.close();
  await eventually('its work to be free', () => b.place.lease('pruning'));
  expect(b.place.others()).toEqual([]);
});

it('SHA-4 MSG-8 a hello that is handled late takes no box from a later session of it, and may change nothing of it', async () => {
  const url = await database();
  const [a, b] = [await join(url, 'a'), await join(url, 'b')];
  const hello = (sessionId: string, helloMs: number, kid = 'key') => ({
    ...sessionOf(sessionId),
    order: { kid, helloMs },
  });
  await a.place.claim(hello('one', 1));
  const db = openDatabase(url);
  const keeps = (place: Place, sessionId: string) => transact(db, async (trx) => place.heldBy(BOX, sessionId)?.(trx));
  expect(await keeps(a.place, 'one')).toBe(true);
  expect(await b.place.claim(hello('three', 3))).toEqual({ before: a.place.run });
  expect([await keeps(a.place, 'one'), await keeps(b.place, 'three')]).toEqual([false, true]);
  expect(await a.place.claim(hello('two', 2))).toBeUndefined();
  expect(await a.place.elsewhere(BOX)).toMatchObject({ run: b.place.run, sessionId: 'three' });
  // A claim waits for a transaction that relies on the lease.
  const rows = new ClusterRows(url);
  const order: string[] = [];
  let claimed: Promise<unknown> | undefined;
  await transact(db, async (trx) => {
    await b.place.heldBy(BOX, 'three')?.(trx);
    claimed = a.place.claim(hello('four', 4)).then(() => order.push('claimed'));
    const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await eventually('the claim to wait', async () => (await rows.query(waiting)).length === 1);
    order.push('stored');
  });
  await claimed;
  expect(order).toEqual(['stored', 'claimed']);
  // An agent that was started anew has another key.
  expect(await b.place.claim(hello('five', 1, 'other'))).toEqual({ before: a.place.run });
});

it('SHA-1 the lane of a gateway that lives cannot be deleted', async () => {
  const url = await database();
  await join(url, 'a');
  const rows = new ClusterRows(url);
  await expect(rows.query(`delete from cluster.lanes where name = 'a'`)).rejects.toThrow('gateways_name_fkey');
});

it('SHA-4 a claim with a text that the database refuses fails none of those that come with it', async () => {
  const { place } = await join(await database(), 'a');
  const claims = ['one', 'two', 'thr\0ee', 'four'].map((display, i) =>
    place.claim({ ...sessionOf('s'), terminalCode: `VVB${i}`, display }),
  );
  const claimed = await Promise.allSettled(claims);
  expect(claimed.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
});

it('SHA-5 a question that will be asked again goes over the broker, where only the gateway of its lane can read it', async () => {
  const url = await database();
  const [a, b, c] = [await join(url, 'a'), await join(url, 'b'), await join(url, 'c')];
  const question = { box: BOX, sessionId: 'one', message: 'm' };
  const ask = (mayBeLost: boolean) => a.place.ask(b.place.run, 'post', question, 500, mayBeLost);
  const carried: { lane: number; sealed: Buffer }[] = [];
  b.broker.carry = (_lane, sealed) => {
    a.place.lanes.said(sealed);
    return true;
  };
  a.broker.carry = (lane, sealed) => {
    carried.push({ lane, sealed });
    b.place.lanes.said(sealed);
    return true;
  };
  await eventually('both to be seen at the broker', async () => {
    expect((await ask(true))?.reason).toBe(JSON.stringify(question));
    return carried.length > 0;
  });
  const { lane, sealed } = carried[0] ?? { lane: 0, sealed: Buffer.alloc(0) };
  expect(lane).toBe(b.place.lanes.own);
  expect(sealed.includes(BOX)).toBe(false);

  const before = b.asked.length;
  const changed = Buffer.from(sealed);
  changed[20] = (changed[20] ?? 0) ^ 1;
  for (const other of [changed, sealed.subarray(0, 20), Buffer.alloc(0)]) b.place.lanes.said(other);
  c.place.lanes.said(sealed);
  a.broker.carry = () => true;
  expect(await ask(true)).toBeUndefined();
  expect([b.asked.length, c.asked.length]).toEqual([before, 0]);
  // The second time it goes through the database, as without a broker.
  expect((await ask(false))?.status).toBe(202);
  a.broker.carry = () => false;
  expect((await ask(true))?.status).toBe(202);
});

it('SHA-4 a box that leaves while the database refuses is given up once the database takes that', async () => {
  const url = await database();
  const [a, b] = [await join(url, 'a'), await join(url, 'b')];
  const rows = new ClusterRows(url);
  await a.place.claim(sessionOf('one'));
  await rows.query('alter table cluster.box_sessions rename to away');
  a.place.release(BOX, 'one');
  await expect(a.place.lost(new Map())).rejects.toThrow('box_sessions');
  await rows.query('alter table cluster.away rename to box_sessions');
  expect(await b.place.elsewhere(BOX)).toBeDefined();
  expect(await a.place.lost(new Map())).toEqual([]);
  expect(await b.place.elsewhere(BOX)).toBeUndefined();

  await a.place.claim(sessionOf('two'));
  await rows.query('alter table cluster.box_sessions rename to away');
  a.place.release(BOX, 'two');
  await expect(a.place.lost(new Map())).rejects.toThrow('box_sessions');
  await rows.query('alter table cluster.away rename to box_sessions');
  // The box is here again, in the same session.
  await a.place.claim(sessionOf('two'));
  expect(await a.place.lost(new Map([[BOX, { sessionId: 'two' }]]))).toEqual([]);
  expect(await b.place.elsewhere(BOX)).toMatchObject({ sessionId: 'two' });
});

it('SHA-5 a box is on its way for some seconds after its gateway has sent it away or has gone, and not after it left', async () => {
  const url = await database();
  const [a, b] = [await join(url, 'a'), await join(url, 'b')];
  const isComing = () => b.place.isComing(BOX);
  await a.place.claim(sessionOf('one'));
  expect(await isComing()).toBe(false);
  a.place.release(BOX, 'one');
  expect(await a.place.lost(new Map())).toEqual([]);
  expect(await isComing()).toBe(false);
  await a.place.claim(sessionOf('two'));
  a.place.release(BOX, 'two', true);
  await eventually('the box to be on its way', isComing);
  await new ClusterRows(url).query(`update cluster.left_boxes set left_at = left_at - interval '5 s'`);
  expect(await isComing()).toBe(false);
  // A box of another session is not on its way.
  await a.place.claim(sessionOf('three'));
  a.place.release(BOX, 'two', true);
  expect(await a.place.lost(new Map([[BOX, { sessionId: 'three' }]]))).toEqual([]);
  expect(await isComing()).toBe(false);
  await a.close();
  expect(await isComing()).toBe(true);
  expect(await b.place.elsewhere(BOX)).toBeUndefined();
  // This gateway has it already, and its session begins.
  await new ClusterRows(url).query('delete from cluster.left_boxes');
  await b.place.claim(sessionOf('four'));
  expect(await isComing()).toBe(true);
});

it('SHA-1 a name keeps its lane, and a lane without a gateway gets a door', async () => {
  const url = await database();
  const [a, b] = [await join(url, 'a'), await join(url, 'b')];
  expect([a.place.lanes.own, b.place.lanes.own]).toEqual([1, 2]);
  const doors = () => [...a.place.lanes.doors(), ...b.place.lanes.doors()].toSorted();
  await eventually('one door for boxes that come', () => doors().join() === '0');
  const homes = () => new Set(Array.from({ length: 50 }, (_, i) => b.place.lanes.homeOf(`VVB${i}`)));
  await eventually('homes at both', () => homes().size === 2);
  a.broker.isThere = false;
  await eventually('doors elsewhere while it is not at the broker', () => b.place.lanes.doors().join() === '0,1');
  expect([[...homes()], a.place.lanes.doors()]).toEqual([[2], []]);
  a.broker.isThere = true;
  await eventually('its lane to be served again', () => homes().size === 2 && b.place.lanes.doors().join() === '0');
  // The broker was away for both.
  a.broker.isThere = b.broker.isThere = false;
  await eventually('no door without the broker', () => doors().length === 0);
  const opened: string[] = [];
  a.place.lanes.watch(() => opened.push(doors().join()));
  b.place.lanes.watch(() => opened.push(doors().join()));
  b.broker.isThere = true;
  await eventually('the first door', () => doors().join() === '0');
  a.broker.isThere = true;
  await eventually('both to be served', () => homes().size === 2);
  expect(opened.join()).not.toMatch(/[12]/);
  await a.close();
  await eventually('a door for its lane', () => b.place.lanes.doors().join() === '0,1');
  expect([...homes()]).toEqual([2]);
  const again = await join(url, 'a');
  expect(again.place.lanes.own).toBe(1);
  await eventually('the door to close', () => b.place.lanes.doors().join() === '0');
});

it('SHA-5 a run whose process has ended is gone sooner than one that is only silent', async () => {
  const url = await database();
  const { place } = await join(url, 'a');
  const rows = new ClusterRows(url);
  const names = new HostResolver({ clock: systemClock });
  const open = new DatabaseSession({ databaseUrl: url, names, application: applicationOf('silent') });
  const own = new DatabaseSession({ databaseUrl: url, names, application: 'test' });
  onTestFinished(async () => {
    await Promise.all([open.close(), own.close()]);
    names.close();
  });
  await open.query('select 1');
  let nowMs = 0;
  const gatewayRows = new GatewayRows(own, url, { ...systemClock, monotonicMs: () => nowMs });
  const seenBefore = async (ms: number) => {
    const seen = `clock_timestamp() - interval '${ms} ms'`;
    await rows.query(`update cluster.gateways set seen_at = ${seen} where name in ('ended', 'silent')`);
  };
  const gone = async () => (await gatewayRows.view('')).gone.map(({ name }) => name);
  await rows.query(
    `insert into cluster.lanes select lane, name, now() from (values (7, 'ended'), (8, 'silent')) as t (lane, name)`,
  );
  await rows.query(
    `insert into cluster.gateways (run, name, seen_at, file, alike) select name, name, now(), '', '{}' from cluster.lanes where lane > 6`,
  );
  await seenBefore(3_600_000);
  expect(await gone()).toEqual([]);
  nowMs += ENDED_MS + 1;
  // Right after this gateway reached the database, nobody had a chance to be seen.
  expect(await gone()).toEqual([]);
  await seenBefore(1_700);
  expect(await gone()).toEqual([]);
  nowMs += ENDED_MS + 1;
  expect(await gone()).toEqual(['ended']);
  expect([await gatewayRows.bury('ended'), await gatewayRows.bury('silent')]).toEqual([true, false]);
  await seenBefore(3_000);
  expect(await gone()).toEqual([]);
  nowMs += GONE_MS + 1;
  expect(await gone()).toEqual(['silent']);
  expect(await gatewayRows.bury('silent')).toBe(true);
  expect(place.others()).toEqual([]);
});

it('a gateway names the keys at which the file of another one differs, and no value', async () => {
  const url = await database();
  const a = await join(url, 'a');
  const apart = {
    adminToken: newSecret(systemRandom),
    qrLifetimeSeconds: 120,
    virtualAccounts: { '7770010002': '7770010003' },
  };
  const b = await join(url, 'b', apart);
  const keys = Object.keys(apart);
  const differences = () => a.place.seen()?.map(({ name, differs }) => ({ name, differs }));
  await eventually('both to be seen', () => differences()?.length === 2);
  expect(differences()).toEqual([
    { name: 'a', differs: [] },
    { name: 'b', differs: keys },
  ]);
  expect(b.place.seen()?.map(({ differs }) => differs)).toEqual([keys, []]);
  const logged = () => a.lines.filter(({ event }) => event === 'gateways-mismatched');
  await eventually('a line', () => logged().length > 0);
  expect(logged().map(({ reason }) => reason)).toEqual([`the file of gateway b differs: ${keys.join(', ')}`]);
  const rows = await new ClusterRows(url).query('select * from cluster.gateways');
  const told = JSON.stringify([rows, a.lines, b.lines]);
  for (const value of [ADMIN_TOKEN, apart.adminToken, '7770010002', '7770010003']) expect(told).not.toContain(value);
});
