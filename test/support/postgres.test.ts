import { describe, expect, it, onTestFinished } from 'vitest';
import { startReplica } from './postgres.ts';
import { missing, note, postgresServer } from './stores.ts';

describe.skipIf(missing)(`a standby for tests${note}`, () => {
  const server = postgresServer();

  it('has what it received before it was disconnected, catches up, and takes writes once it is promoted', async () => {
    const url = await server().database();
    await server().run(url, 'create table t (n int)');
    const replica = await startReplica(server());
    onTestFinished(() => replica.remove());
    const there = url.replace(`:${server().port}/`, `:${replica.port}/`);
    const rows = async () => (await replica.run(there, 'select n from t order by n')).map((it) => it.n);
    await server().run(url, 'insert into t values (1)');
    await replica.catchUp();
    expect(await rows()).toEqual([1]);
    await replica.disconnect();
    await server().run(url, 'insert into t values (2)');
    await replica.catchUp();
    expect(await rows()).toEqual([1, 2]);
    await replica.disconnect();
    await server().run(url, 'insert into t values (3)');
    await replica.promote();
    await replica.run(there, 'insert into t values (4)');
    expect(await rows()).toEqual([1, 2, 4]);
    expect(await server().run(url, 'select count(*)::int as count from t')).toEqual([{ count: 3 }]);
  });
});
