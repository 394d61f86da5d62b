import { mkdir, readFile, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { postgresProblem } from '../../src/gateway/store/engines/postgres.ts';
import { readHighWaterMark } from '../../src/gateway/store/integrity/high-water-mark.ts';
import { openStore, type Store } from '../../src/gateway/store/store.ts';
import { ConfigError } from '../../src/lib/errors.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { BOX, opened, order, pay } from './rows.ts';

const locks = "select pid from pg_locks where locktype = 'advisory' and granted";

describe.skipIf(missing)(`a store in PostgreSQL${note}`, () => {
  const server = postgresServer();
  const place = async () => ({
    dataDir: join(await temporaryFolder(), 'none'),
    databaseUrl: await server().database(),
  });
  const ids = async (store: Store) => (await store.orders.newest(1000)).map((it) => it.id).toSorted();

  it('fails while the server is away, and is there again with it', async () => {
    const { log, lines } = keptLog();
    const store = await opened(await place(), log);
    await store.orders.add(order('before'));
    await server().stop();
    await expect(store.orders.add(order('meanwhile'))).rejects.toThrow();
    await expect(store.orders.newest(1)).rejects.toThrow();
    await server().start();
    await store.orders.add(order('after'));
    expect(await ids(store)).toEqual(['after', 'before']);
    expect(lines.map((it) => it.event)).toContain('database-lost');
    expect(JSON.stringify(lines)).not.toContain(server().password);
  });

  it('has every payment that it acknowledged, whole, after a crash of the server', async () => {
    const store = await opened(await place());
    const names = Array.from({ length: 300 }, (_, i) => `n${i}`);
    for (const name of names.slice(0, 20)) await store.orders.add(order(name));
    const kept: string[] = [];
    const paying = names.map(async (id) => {
      await pay(store, id, {
        notices: [{ terminal_code: BOX, push_id: null, told_at_ms: null }],
        callback: { id, url: 'u', body: 'b' },
      });
      kept.push(id);
      if (kept.length === 30) void server().stop('SIGQUIT');
    });
    const settled = await Promise.allSettled(paying);
    expect(settled.filter((it) => it.status === 'rejected').length).toBeGreaterThan(0);
    await server().stop('SIGQUIT');
    await server().start();
    const stored = await store.payments.newest(1000);
    const found = stored.map((it) => it.id);
    expect(kept.filter((id) => !found.includes(id))).toEqual([]);
    // Others may be there too: they were committed, and waited for the disk together.
    expect(found.filter((id) => !names.includes(id))).toEqual([]);
    expect(new Set(found).size).toBe(found.length);
    expect(await store.payments.noticesOf(found)).toHaveLength(found.length);
    expect(await store.callbacks.ofPayments(found)).toHaveLength(found.length);
    const paid = (await store.orders.newest(1000)).filter((it) => it.status === 'paid').map((it) => it.id);
    expect(paid.toSorted()).toEqual(
      stored
        .slice(-20)
        .map((it) => it.order_ref)
        .toSorted(),
    );
  });

  it('goes on over a new connection, under the lock, when the server ended the old one', async () => {
    const { databaseUrl, dataDir } = await place();
    const store = await opened({ databaseUrl, dataDir });
    const [before] = await server().run(databaseUrl, locks);
    await server().run(databaseUrl, `select pg_terminate_backend(${before?.pid})`);
    await eventually('the lock of a new connection, which nobody had to ask for', async () => {
      const after = await server().run(databaseUrl, locks);
      return after.length === 1 && after[0]?.pid !== before?.pid;
    });
    await store.orders.add(order('a'));
  });

  it('STO-6 makes its dataDir for its user alone, with the mark of every payment in it', async () => {
    const given = await place();
    const { log, lines } = keptLog();
    const store = await opened(given, log);
    expect((await stat(given.dataDir)).mode & 0o777).toBe(0o700);
    const file = join(given.dataDir, `gateway-${new URL(given.databaseUrl).pathname.slice(1)}.mark`);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    await pay(store, 'a');
    expect(await readFile(file, 'latin1')).toMatch(/^1 [\da-f]{64} /);
    await store.close();
    expect(lines).toEqual([]);
    await rm(given.dataDir, { recursive: true });
    await (await opened(given, log)).close();
    expect(lines).toMatchObject([{ event: 'mark-created', file, payments: 1 }]);
    expect(await readFile(file, 'latin1')).toMatch(/^1 [\da-f]{64} /);
  });

  it('STO-6 has its mark again after somebody has deleted it, and says so while it has none', async () => {
    const given = await place();
    const { log, lines } = keptLog();
    const store = await opened(given, log);
    const file = join(given.dataDir, `gateway-${new URL(given.databaseUrl).pathname.slice(1)}.mark`);
    await rm(given.dataDir, { recursive: true });
    for (const id of ['a', 'b']) await pay(store, id);
    expect(lines).toMatchObject([{ event: 'mark-not-written', level: 'warn', file }]);
    await mkdir(given.dataDir);
    await pay(store, 'c');
    expect(lines).toMatchObject([{ event: 'mark-not-written' }, { event: 'mark-replaced', file }]);
    expect(await readFile(file, 'latin1')).toMatch(/^3 [\da-f]{64} /);
    await pay(store, 'd');
    const { newest, recent } = readHighWaterMark(file);
    expect(newest).toMatchObject({ number: 4 });
    expect(recent.map(({ id }) => id)).toEqual(['a', 'b', 'c', 'd']);
  });

  it('STO-6 refuses to open a store whose dataDir cannot be created, or whose mark cannot be read or written', async () => {
    const { databaseUrl, dataDir } = await place();
    const { log, lines } = keptLog();
    const first = await opened({ databaseUrl, dataDir });
    await pay(first, 'a');
    await first.close();
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'file'), '');
    const mark = join(folder, `gateway-${new URL(databaseUrl).pathname.slice(1)}.mark`);
    const isRefused = (at: string, what: string) =>
      expect(openStore({ databaseUrl, dataDir: at }, log)).rejects.toMatchObject({
        code: 'CONFIG',
        message: expect.stringContaining(what),
        fix: expect.stringContaining('let the user that runs the gateway'),
      });
    await isRefused(join(folder, 'file', 'data'), `dataDir: the folder ${join(folder, 'file', 'data')} cannot be made`);
    await isRefused(join(folder, 'file'), `dataDir: the folder ${join(folder, 'file')} cannot be made`);
    await mkdir(mark);
    await isRefused(folder, `dataDir: the mark ${mark} cannot be read`);
    await rmdir(mark);
    await mkdir(`${mark}.new`);
    await isRefused(folder, `dataDir: the mark ${mark} cannot be written`);
    expect(lines.map(({ event }) => event)).toEqual([]);
  });

  it('waits for a gateway that is just ending', async () => {
    const given = await place();
    const first = await opened(given);
    await first.orders.add(order('a'));
    const second = opened(given);
    await eventually('the second to wait', async () => {
      const waiting = await server().run(given.databaseUrl, locks.replace('granted', 'not granted'));
      return waiting.length === 1;
    });
    await first.close();
    expect(await ids(await second)).toEqual(['a']);
  });

  it('is left as it was when a migration breaks off', async () => {
    const given = await place();
    await server().run(given.databaseUrl, 'create table notices (x text)');
    const refused = opened(given);
    await expect(refused).rejects.toThrow(ConfigError);
    await expect(refused).rejects.toThrow('notices');
    expect(await server().run(given.databaseUrl, "select from pg_tables where tablename = 'orders'")).toEqual([]);
    await server().run(given.databaseUrl, 'drop table notices');
    expect(await ids(await opened(given))).toEqual([]);
  });

  it('of a newer version is refused by name, and left as it is', async () => {
    const given = await place();
    await (await opened(given)).close();
    await server().run(given.databaseUrl, "insert into kysely_migration values ('999-of-tomorrow', '2030-01-01')");
    await expect(opened(given)).rejects.toMatchObject({
      code: 'CONFIG',
      message: expect.stringContaining('a newer version: it has 999-of-tomorrow'),
      fix: expect.stringContaining('newer version'),
    });
  });
});

it('a certificate that is not believed is told from a database that cannot be used', () => {
  const error = postgresProblem('postgres://a@db.example/b', new Error('self-signed certificate in certificate chain'));
  expect(error).toMatchObject({ code: 'CONFIG', fix: expect.stringContaining('sslrootcert') });
});
