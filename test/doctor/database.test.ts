import { describe, expect, it, onTestFinished } from 'vitest';
import { databaseFindings } from '../../src/device/doctor/database.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { eventually, freePort } from '../support/net.ts';
import { startReplica } from '../support/postgres.ts';
import { missing, note, postgresServer } from '../support/stores.ts';

async function findingsAt(databaseUrl: string, clock = systemClock) {
  const all = await databaseFindings(databaseUrl, clock);
  return (check: string) => all.find((it) => it.check === check);
}

describe.skipIf(missing)(`paybox doctor --gateway at a PostgreSQL server that keeps what it has${note}`, () => {
  const server = postgresServer(['fsync=on', 'full_page_writes=on']);
  const change = async (url: string, settings: Record<string, string>) => {
    for (const [name, value] of Object.entries(settings))
      await server().run(url, `alter system set ${name} = '${value}'`);
    await server().run(url, 'select pg_reload_conf()');
  };

  it('STO-5 doctor says what a failover may lose, and that payments wait for a standby that is not there', async () => {
    const url = await server().database();
    const alone = await findingsAt(url);
    expect(alone('database')).toMatchObject({
      result: 'ok',
      found: expect.stringMatching(/^PostgreSQL \d+.*, a primary$/),
    });
    expect(alone('database disk')).toMatchObject({
      result: 'ok',
      found: expect.stringContaining('synchronous_commit is on'),
    });
    expect(alone('database standbys')).toMatchObject({
      result: 'ok',
      found: expect.stringContaining('none is connected'),
    });
    expect(alone('database clock')).toMatchObject({ result: 'ok' });

    const replica = await startReplica(server());
    onTestFinished(() => replica.remove());
    const standbys = async () => (await findingsAt(url))('database standbys');
    await eventually('the standby to be seen', async () => (await standbys())?.result === 'warning');
    expect(await standbys()).toMatchObject({
      found: `1 standby (${replica.name}), none of them synchronous: a failover loses the newest acknowledged payments`,
      fix: expect.stringContaining('set synchronous_standby_names'),
    });
    await change(url, { synchronous_standby_names: replica.name });
    await eventually('the standby to be synchronous', async () => (await standbys())?.result === 'ok');
    expect((await standbys())?.found).toBe(`1 standby, 1 of them synchronous (${replica.name})`);

    // A user of one database alone may not see the standbys.
    await server().run(url, "create role shop login password 'shop'");
    const asShop = Object.assign(new URL(url), { username: 'shop', password: 'shop' }).href;
    expect((await findingsAt(asShop))('database standbys')).toMatchObject({
      result: 'skipped',
      found: expect.stringContaining('pg_read_all_stats'),
    });
    await replica.disconnect();
    await eventually('payments to wait', async () => (await standbys())?.result === 'failed');
    expect((await standbys())?.found).toContain('every payment waits');

    const there = Object.assign(new URL(url), { port: String(replica.port) }).href;
    const standby = await findingsAt(there);
    expect(standby('database')).toMatchObject({ result: 'failed', fix: expect.stringContaining('the primary') });
    expect(standby('database standbys')).toMatchObject({ result: 'skipped' });
    await change(url, { synchronous_standby_names: '' });
  });

  it('STO-5 doctor says that the gateway waits for the disk, whatever the server does for others', async () => {
    const url = await server().database();
    await change(url, { synchronous_commit: 'off' });
    await eventually('the change', async () =>
      (await findingsAt(url))('database disk')?.found.includes('in place of off'),
    );
    expect((await findingsAt(url))('database disk')).toMatchObject({ result: 'ok' });
    await change(url, { synchronous_commit: 'on' });
  });

  it('SHA-10 doctor names the clock of this machine where it differs, and a server that is not there, never with the password', async () => {
    const url = await server().database();
    for (const [ms, found] of [
      [3_600_000, 'the clock of this machine is 3600 s ahead of that of the database'],
      [-90_000, 'the clock of this machine is 90 s behind that of the database'],
    ] as const) {
      const clock = { ...systemClock, wallMs: () => systemClock.wallMs() + ms };
      expect((await findingsAt(url, clock))('database clock')).toMatchObject({ result: 'warning', found });
    }
    const away = Object.assign(new URL(url), { port: String(await freePort()) }).href;
    const findings = await databaseFindings(away, systemClock);
    expect(findings[0]).toMatchObject({
      check: 'database',
      result: 'failed',
      found: expect.stringContaining('ECONNREFUSED'),
    });
    expect(JSON.stringify(findings)).not.toContain(server().password);
  });
});

describe.skipIf(missing)(`paybox doctor --gateway at a PostgreSQL server that may lose what it has${note}`, () => {
  const server = postgresServer();

  it('STO-5 doctor says that a PostgreSQL server may lose what it has', async () => {
    expect((await findingsAt(await server().database()))('database disk')).toEqual({
      ...{ check: 'database disk', result: 'failed' },
      found: expect.stringMatching(/^fsync and full_page_writes are off: .* may lose or damage acknowledged payments$/),
      fix: 'set fsync = on and full_page_writes = on at the server, and reload it',
    });
  });
});
