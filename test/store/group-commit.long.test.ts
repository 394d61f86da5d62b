import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../support/net.ts';
import { missing, note } from '../support/stores.ts';
import { groupCommits, ids, SECOND, WRITER } from './group-commit-fixture.ts';
import { opened, order } from './rows.ts';

describe.skipIf(missing)(`a commit in PostgreSQL that waits for the disk outside its connection${note}`, () => {
  const { server, place, end, committed, stopSecond } = groupCommits();

  it('a commit waits on the other connection when the second one is ended, and is reported', async () => {
    const given = await place();
    const store = await opened(given);
    const holder = new pg.Client(given.databaseUrl);
    onTestFinished(() => holder.end());
    await holder.connect();
    await holder.query("begin; select from settings where name = 'holder' for update");
    let isTold = false;
    const written = store.orders.add(order('a')).then(() => {
      isTold = true;
    });
    await committed(given.databaseUrl, 1);
    await end(given.databaseUrl, SECOND);
    await eventually('the writer to wait', async () => {
      const waiting = `select pid from pg_stat_activity where wait_event_type = 'Lock' and pid in (${WRITER})`;
      return (await server().run(given.databaseUrl, waiting)).length === 1;
    });
    expect(isTold).toBe(false);
    await holder.query('rollback');
    await written;
    await store.orders.add(order('b'));
    await eventually(
      'a second connection again',
      async () => (await server().run(given.databaseUrl, SECOND)).length === 1,
    );
  });

  it('a commit fails in bounded time when the second connection hangs, and the next one goes another way', async () => {
    const given = await place();
    const store = await opened(given);
    await stopSecond(given.databaseUrl);
    await expect(store.orders.add(order('a'))).rejects.toThrow('timeout');
    await store.orders.add(order('b'));
    expect(await ids(store)).toEqual(['a', 'b']);
  });
});
