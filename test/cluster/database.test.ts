import { describe, expect, it, onTestFinished } from 'vitest';
import { ClusterDatabase } from '../../src/gateway/store/engines/cluster-database.ts';
import { ClusterSession } from '../../src/gateway/store/engines/cluster-session.ts';
import { DatabaseClock } from '../../src/gateway/store/engines/database-clock.ts';
import { openStore } from '../../src/gateway/store/store.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { HostResolver } from '../../src/lib/resolver.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually, eventuallyDone, temporaryFolder } from '../support/net.ts';
import { missing, note, postgresServer } from '../support/stores.ts';

const SETTINGS = { shards: 4, secret: 'first' };

describe.skipIf(missing)(`the database of a cluster${note}`, () => {
  const server = postgresServer();
  const member = (databaseUrl: string, id: string, heard: (text: string) => void = () => undefined) => {
    const time = new DatabaseClock(systemClock, keptLog().log);
    const database = new ClusterDatabase(databaseUrl, { id, url: `http://${id}`, file: '', alike: {} }, time, heard);
    onTestFinished(() => database.close());
    return database;
  };

  it('the database of a cluster is made once, by whoever comes first of many', async () => {
    const url = await server().database();
    const secrets = ['first', 'second', 'third'];
    const made = await Promise.all(secrets.map((secret, i) => member(url, `m${i}`).setUp({ shards: 4, secret })));
    expect(new Set(made.map(({ secret }) => secret)).size).toBe(1);
    await expect(member(url, 'late').setUp({ ...SETTINGS, shards: 8 })).rejects.toThrow(
      'cluster.shards: expected 4, with which the cluster was made, not 8',
    );
  });

  it('the database of a cluster is not accepted by a gateway alone, nor the other way round', async () => {
    const [cluster, single] = [await server().database(), await server().database()];
    await member(cluster, 'a').setUp(SETTINGS);
    const dataDir = await temporaryFolder();
    const { log } = keptLog();
    await expect(openStore({ dataDir, databaseUrl: cluster }, log)).rejects.toThrow(/is the database of a cluster/);
    await (await openStore({ dataDir, databaseUrl: single }, log)).close();
    await expect(member(single, 'a').setUp(SETTINGS)).rejects.toThrow(
      /has the store of a gateway that is in no cluster/,
    );
  });

  it('the database of a cluster shows which members live and what they hold, and forgets who left or fell silent', async () => {
    const url = await server().database();
    const [a, b] = [member(url, 'a'), member(url, 'b')];
    await a.setUp(SETTINGS);
    await a.beat([0, 1]);
    const seen = await b.beat([2]);
    expect(seen.members.map(({ id }) => id)).toEqual(['a', 'b']);
    expect(seen.holders).toEqual(
      new Map([
        [0, 'a'],
        [1, 'a'],
        [2, 'b'],
      ]),
    );
    await a.beat([1]);
    expect((await b.beat([2, 0])).holders.get(0)).toBe('b');
    await b.beat([2, 0], true);
    expect((await a.beat([1])).members.map(({ id, leaving }) => [id, leaving])).toEqual([
      ['a', false],
      ['b', true],
    ]);
    await b.leave();
    expect((await a.beat([1])).members.map(({ id }) => id)).toEqual(['a']);
    await b.beat([]);
    await eventually('a to be gone', async () => (await b.beat([])).members.every(({ id }) => id !== 'a'));
  });

  it('the database of a cluster carries news to every member, also after a crash of the server', async () => {
    const url = await server().database();
    const heard: string[] = [];
    const [a, b] = [member(url, 'a'), member(url, 'b', (text) => heard.push(text))];
    await a.setUp(SETTINGS);
    await b.beat([]);
    await a.tell('one');
    await eventually('the news', () => heard.includes('one'));
    await server().stop('SIGQUIT');
    await expect(a.tell('lost')).rejects.toThrow();
    await server().start();
    await eventually('b to be there again', () => b.beat([]).catch(() => undefined));
    await eventuallyDone('a to be there again', () => a.tell('two'));
    await eventually('the news', () => heard.includes('two'));
    // Told while b has no connection, which it notices later.
    const sessions = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'paybox-member'";
    await server().run(url, `${sessions} and pid <> pg_backend_pid()`);
    await eventuallyDone('a to be there again', () => a.tell('three'));
    await eventually('b to be there again', () => b.beat([]).catch(() => undefined));
    await eventually('the news', () => heard.includes('three'));
    expect(heard).toEqual(['one', 'two', 'three']);
  });

  it('the database of a cluster reports when a crash has emptied the table of members, until they are all back', async () => {
    const url = await server().database();
    const [a, b] = [member(url, 'a'), member(url, 'b')];
    await a.setUp(SETTINGS);
    for (const it of [a, b, a]) expect(await it.beat([])).toMatchObject({ isEmptied: false });
    await server().stop('SIGKILL');
    await server().start();
    expect(await eventually('the server', () => a.beat([]).catch(() => undefined))).toMatchObject({ isEmptied: true });
    expect(await eventually('the server', () => b.beat([]).catch(() => undefined))).toMatchObject({ isEmptied: true });
    expect(await a.beat([])).toMatchObject({ isEmptied: false, members: [{ id: 'a' }, { id: 'b' }] });
  });

  it('a member leaves no connection behind when the server refuses its first query, as a standby does', async () => {
    const databaseUrl = await server().database();
    const names = new HostResolver({ clock: systemClock });
    onTestFinished(() => names.close());
    const session = new ClusterSession({ databaseUrl, names, application: 'refused', greeting: 'select 1 / 0' });
    onTestFinished(() => session.close());
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await expect(session.query('select 1')).rejects.toThrow('division by zero');
    }
    const sessions = "select pid from pg_stat_activity where application_name = 'refused'";
    await eventually('no connection', async () => (await server().run(databaseUrl, sessions)).length === 0, 5_000);
  });

  it('the database of a cluster accepts heartbeats while many shards are taken over', async () => {
    const database = member(await server().database(), 'a');
    await database.setUp(SETTINGS);
    const takeovers = Array.from({ length: 600 }, () => database.endHolder(0, []).catch(() => undefined));
    expect((await database.beat([])).members.map(({ id }) => id)).toEqual(['a']);
    await Promise.all(takeovers);
  });

  it('the database of a cluster ends the session that holds a shard for a member that is gone, and no other', async () => {
    const databaseUrl = await server().database();
    const database = member(databaseUrl, 'b');
    await database.setUp(SETTINGS);
    const { log } = keptLog();
    const dataDir = await temporaryFolder();
    const open = (index: number, id: string) => openStore({ dataDir, databaseUrl, shard: { index, member: id } }, log);
    const [zero, one] = [await open(0, 'a'), await open(1, 'c')];
    onTestFinished(async () => {
      for (const store of [zero, one]) await store.close().catch(() => undefined);
    });
    await database.endHolder(1, [{ id: 'c' }]);
    await expect(open(1, 'b')).rejects.toThrow(/another gateway uses shard 1/);
    // It takes the lock again at once, unless somebody queues for it already.
    const taken = await eventually('the shard to be taken', async () => {
      const opening = open(1, 'b').catch(() => undefined);
      await database.endHolder(1, [{ id: 'b' }]);
      return opening;
    });
    onTestFinished(() => taken.close());
    const gone = one.superseded ?? Promise.reject(new Error('cannot be superseded'));
    const error = await Promise.race([gone, systemClock.sleep(20_000)]);
    expect(String(error)).toMatch(/has taken over shard 1 of/);
    await expect(one.check()).rejects.toThrow(/has taken over/);
    await zero.check();
  });
});
