import { describe, expect, it } from 'vitest';
import { GroupCommit } from '../../src/gateway/store/engines/group-commit.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually, eventuallyDone } from '../support/net.ts';
import { missing, note } from '../support/stores.ts';
import { groupCommits, ids, WRITER } from './group-commit-fixture.ts';
import { opened, order } from './rows.ts';

describe.skipIf(missing)(`a commit in PostgreSQL that waits for the disk outside its connection${note}`, () => {
  const { server, pidOf, place, end, committed, stopSecond } = groupCommits();
  const unwritten = async (url: string) =>
    (await server().run(url, 'select pg_current_wal_insert_lsn() > pg_current_wal_flush_lsn() as is_so'))[0]?.is_so;

  it('a commit in PostgreSQL is reported, and shown to readers, only once the disk has it', async () => {
    const given = await place();
    const store = await opened(given);
    await store.orders.add(order('a'));
    const signal = await stopSecond(given.databaseUrl);
    const told: string[] = [];
    const written = ['b', 'c', 'd'].map((id) => store.orders.add(order(id)).then(() => told.push(id)));
    await committed(given.databaseUrl, 4);
    const read = ids(store).then((found) => told.push(found.join()));
    await server().run(given.databaseUrl, 'select 1');
    expect([told, await unwritten(given.databaseUrl)]).toEqual([[], true]);
    signal('SIGCONT');
    await Promise.all([...written, read]);
    expect(told).toEqual(['b', 'c', 'd', 'a,b,c,d']);
  });

  it('a commit fails when PostgreSQL crashes before the commit is on the disk, although a new connection works', async () => {
    const given = await place();
    const store = await opened(given);
    await store.orders.add(order('a'));
    const signal = await stopSecond(given.databaseUrl);
    const lost = store.orders.add(order('lost'));
    const seen = lost.then(
      () => 'told',
      (error: unknown) => error,
    );
    await committed(given.databaseUrl, 2);
    // A killed process has the server drop its memory and recover from the disk, all within a moment.
    process.kill(await pidOf(given.databaseUrl, WRITER), 'SIGKILL');
    signal('SIGKILL');
    expect(await seen).toBeInstanceOf(Error);
    await eventuallyDone('the server', () => server().run(given.databaseUrl, 'select 1'));
    await eventuallyDone('the store', () => store.orders.add(order('b')));
    expect(await ids(store)).toEqual(['a', 'b']);
  });

  it('STO-2 a commit fails when another gateway has taken over before the disk has it', async () => {
    const given = await place();
    const first = await opened(given);
    const signal = await stopSecond(given.databaseUrl);
    const late = first.orders.add(order('late')).then(
      () => 'told',
      (error: unknown) => String(error),
    );
    await committed(given.databaseUrl, 1);
    const next = opened({ ...given, standby: true });
    await eventually('the next to wait', async () => {
      return (await server().run(given.databaseUrl, WRITER.replace('granted', 'not granted'))).length === 1;
    });
    await end(given.databaseUrl, WRITER);
    await ids(await next);
    signal('SIGCONT');
    expect(await late).toContain('has taken over');
  });

  it('a commit waits for a standby that the server waits for', async () => {
    const given = await place();
    const store = await opened(given);
    const configure = async (standby: string) => {
      await server().run(given.databaseUrl, `alter system set synchronous_standby_names = '${standby}'`);
      await server().run(given.databaseUrl, 'select pg_reload_conf()');
    };
    let written = Promise.resolve();
    let isTold = true;
    let orders = 0;
    try {
      await configure('nobody');
      // Commits wait for it a little after its sessions know of it: another process of the server tells them.
      await eventually('a wait for it', async () => {
        if (isTold) {
          isTold = false;
          orders += 1;
          written = store.orders.add(order(`a${orders}`)).then(() => {
            isTold = true;
          });
        }
        const waiting = `select pid from pg_stat_activity where wait_event = 'SyncRep'`;
        return (await server().run(given.databaseUrl, waiting)).length === 1;
      });
      expect(isTold).toBe(false);
    } finally {
      await configure('');
    }
    await written;
  });

  it('a commit is as durable for a user who may have one connection, which the log says once', async () => {
    const { databaseUrl, dataDir } = await place();
    const name = new URL(databaseUrl).pathname.slice(1);
    await server().run(databaseUrl, "create role poor login password 'poor-secret' connection limit 1");
    await server().run(databaseUrl, `alter database ${name} owner to poor`);
    await server().run(databaseUrl, 'alter schema public owner to poor');
    const { log, lines } = keptLog();
    const poor = Object.assign(new URL(databaseUrl), { username: 'poor', password: 'poor-secret' }).href;
    const store = await opened({ databaseUrl: poor, dataDir }, log);
    await Promise.all(['a', 'b', 'c'].map((id) => store.orders.add(order(id))));
    await server().stop('SIGQUIT');
    await server().start();
    await eventuallyDone('a new connection', () => store.orders.add(order('d')));
    expect(await ids(store)).toEqual(['a', 'b', 'c', 'd']);
    const warnings = lines.filter((it) => it.event === 'second-connection-failed');
    expect(warnings).toMatchObject([{ reason: expect.stringContaining('too many connections for role "poor"') }]);
    expect(JSON.stringify(warnings)).not.toContain('poor-secret');
  });
});

describe('a wait for the disk', () => {
  /** Waits on both connections, which end when the test says so. */
  const setUp = () => {
    const waits: PromiseWithResolvers<boolean>[] = [];
    const sync = () => {
      const wait = Promise.withResolvers<boolean>();
      waits.push(wait);
      return wait.promise;
    };
    let onWriter: () => void = () => undefined;
    const writer = { sync: async () => onWriter(), isBusy: () => false };
    const commits = new GroupCommit(writer);
    const commit = () => {
      commits.written(commits.begin());
      return commits.settled();
    };
    const second = { sync, close: () => undefined };
    return {
      ...{ waits, commits, commit, second },
      writerDoes: (what: () => void) => {
        onWriter = what;
      },
    };
  };

  it('a wait for the disk serves every commit that came before it', async () => {
    const { waits, commits, commit, second } = setUp();
    commits.openedSecond(second);
    const first = commit();
    const later = [commit(), commit(), commit()];
    waits[0]?.resolve(true);
    await first;
    await eventually('the second wait', () => waits.length === 2);
    waits[1]?.resolve(true);
    await Promise.all(later);
    expect(waits).toHaveLength(2);
  });

  it('a wait for the disk on a connection of the writer that was opened after the commit proves nothing', async () => {
    const { commits, commit, writerDoes } = setUp();
    writerDoes(() => commits.writerOpened());
    await expect(commit()).rejects.toMatchObject({ code: 'STORAGE_FAULT', severity: 'retryable' });
    writerDoes(() => undefined);
    await commit();
  });

  it('a wait for the disk is not asked of a second connection that was opened after the commit', async () => {
    const { waits, commits, commit, second, writerDoes } = setUp();
    commits.openedSecond(second);
    const waiting = commit();
    commits.openedSecond({ ...second });
    let asked = 0;
    writerDoes(() => {
      asked += 1;
    });
    waits[0]?.resolve(false);
    await waiting;
    expect([asked, waits.length]).toEqual([1, 1]);
  });
});
