import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CHECKED_TABLES } from '../../src/gateway/store/integrity/checksums.ts';
import type { Store } from '../../src/gateway/store/store.ts';
import { eventually, eventuallyDone, temporaryFolder } from '../support/net.ts';
import { ENGINES, missing, note, postgresServer } from '../support/stores.ts';
import { opened, order, pay } from './rows.ts';

/** All that an order, its push and its payment are kept in. */
const INSERTED = [
  ...['orders', 'order_codes', 'qr_codes', 'payment_requests', 'sales', 'pushes', 'credits', 'payments', 'notices'],
  ...['callbacks', 'callback_attempts', 'settings'],
];
/** Ends the sessions of the gateway. */
const ENDED = `select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and application_name = 'paybox-gateway'`;
const UPDATED = ['ledger', 'orders', 'pushes', 'settings'];

it('every table whose rows have checksums is tried by the probe', () => {
  expect(CHECKED_TABLES.filter((table) => ![...INSERTED, ...UPDATED].includes(table))).toEqual([]);
});

describe.each(ENGINES.filter((it) => !it.missing))('a probe of a store in $name', ({ places }) => {
  const newPlace = places();

  it('ERR-2 leaves nothing behind, and does not move the ledger', async () => {
    const place = await newPlace();
    const store = await opened(place);
    await store.orders.add(order('a'), { qrRef: 'ref', code: 'code' });
    await pay(store, 'p1', { orderRef: 'a', callback: { id: 'c', url: 'u', body: 'b' } });
    const all = () =>
      Promise.all([
        ...[store.orders.newest(10), store.payments.newest(10), store.credits.newest(10), store.callbacks.newest(10)],
        ...[store.payments.noticesOf(['p1', 'write-probe']), store.orders.pushesOf(['a', 'write-probe'])],
        ...[store.sales.made({ fromMs: 0, toMs: 9 }, 10), store.qrCodes.find('write-probe')],
      ]);
    const before = await all();
    for (let times = 0; times < 3; times += 1) await store.check();
    expect(await all()).toEqual(before);
    await pay(store, 'p2');
    expect((await store.payments.newest(10)).map(({ id, seq }) => [id, seq])).toEqual([
      ['p2', 2],
      ['p1', 1],
    ]);
    await store.close();
    // The start looks through the whole ledger.
    expect((await (await opened(place)).payments.newest(10)).map(({ id }) => id)).toEqual(['p2', 'p1']);
  });
});

it('a probe of a SQLite file leaves no row in any table but the settings', async () => {
  const dataDir = await temporaryFolder();
  const store = await opened({ dataDir });
  await store.check();
  await store.close();
  const db = new DatabaseSync(join(dataDir, 'gateway.sqlite'), { readOnly: true });
  onTestFinished(() => db.close());
  const rows = (table: string) => db.prepare(`select count(*) as count from ${table}`).get()?.count;
  const kept = ['settings', 'ledger'];
  const emptied = [...INSERTED, 'audit', 'damaged_rows'].filter((table) => !kept.includes(table));
  expect(emptied.map((table) => [table, rows(table)])).toEqual(emptied.map((table) => [table, 0]));
});

describe.skipIf(missing)(`a probe of a store in PostgreSQL${note}`, () => {
  const server = postgresServer();
  /** A database of a user who has no more rights than a gateway needs. */
  const setUp = async () => {
    const databaseUrl = await server().database();
    const name = new URL(databaseUrl).pathname.slice(1);
    const admin = (sql: string) => server().run(databaseUrl, sql);
    await admin(`create role ${name} login password 'poor-secret'`);
    await admin(`alter database ${name} owner to ${name}; alter schema public owner to ${name}`);
    const poor = Object.assign(new URL(databaseUrl), { username: name, password: 'poor-secret' }).href;
    const store = await opened({ dataDir: join(await temporaryFolder(), 'none'), databaseUrl: poor });
    return { store, admin, name, poor, databaseUrl };
  };
  const isWell = (store: Store) => eventuallyDone('a store that takes everything', () => store.check());

  it('ERR-2 names each table of money that takes no rows, or no changes', async () => {
    const { store, admin, name } = await setUp();
    await store.check();
    for (const [right, tables] of [['insert', INSERTED] as const, ['update', UPDATED] as const]) {
      for (const table of tables) {
        await admin(`revoke ${right} on ${table} from ${name}`);
        await expect(store.check(), `${right} on ${table}`).rejects.toThrow(`permission denied for table ${table}`);
        await admin(`grant ${right} on ${table} to ${name}`);
      }
    }
    await store.check();
  });

  it('refuses a start by name, where a table takes no rows', async () => {
    const { store, admin, name, poor } = await setUp();
    await store.close();
    await admin(`revoke insert on payments from ${name}`);
    const refused = opened({ dataDir: join(await temporaryFolder(), 'none'), databaseUrl: poor });
    await expect(refused).rejects.toMatchObject({
      code: 'CONFIG',
      message: expect.stringContaining('permission denied for table payments'),
      fix: expect.stringContaining('grant'),
    });
  });

  it('ERR-2 names a database that is read-only, and is well once it is not', async () => {
    const { store, name } = await setUp();
    const elsewhere = await server().database();
    const change = async (how: string) => {
      await server().run(elsewhere, `alter database ${name} ${how}`);
      await server().run(elsewhere, ENDED.replace('current_database()', `'${name}'`));
    };
    await change('set default_transaction_read_only = on');
    await eventually('the refusal', () =>
      store.check().then(
        () => false,
        (error: unknown) => /read-only transaction/.test(String(error)),
      ),
    );
    await change('reset default_transaction_read_only');
    await isWell(store);
  });

  it('ERR-2 gives up a table that somebody has locked, and holds up no payment', async () => {
    const { store, databaseUrl } = await setUp();
    const holder = new pg.Client(databaseUrl);
    onTestFinished(() => holder.end());
    await holder.connect();
    await holder.query('begin; lock table sales in access exclusive mode');
    const probe = store.check().then(
      () => 'well',
      (error: unknown) => String(error),
    );
    // They wait for the probe's turn on the one connection, which is shorter than the 5 s of any other query.
    const paid = Promise.all([pay(store, 'p1'), pay(store, 'p2')]);
    expect(await probe).toContain('lock timeout');
    await paid;
    await holder.query('rollback');
    await store.check();
  });
});

describe.skipIf(missing)(`a probe of a PostgreSQL server without a free connection${note}`, () => {
  const server = postgresServer(['max_connections=12']);

  it('ERR-2 says so once its own is lost, and is well when there is one again', async () => {
    const databaseUrl = await server().database();
    const store = await opened({ dataDir: join(await temporaryFolder(), 'none'), databaseUrl });
    const others: pg.Client[] = [];
    const endAll = () => Promise.all(others.splice(0).map((it) => it.end()));
    onTestFinished(async () => void (await endAll()));
    const isFull = async () => {
      const client = new pg.Client(databaseUrl);
      client.on('error', () => undefined);
      try {
        await client.connect();
      } catch {
        return true;
      }
      others.push(client);
      return false;
    };
    await isFull();
    const [first] = others;
    await first?.query(ENDED);
    while (!(await isFull()));
    await eventually('the refusal', () =>
      store.check().then(
        () =>
          first
            ?.query(ENDED)
            .then(isFull)
            .then(() => false),
        (error: unknown) => /too many clients|connection slots/.test(String(error)),
      ),
    );
    await endAll();
    await eventuallyDone('a connection again', () => store.check());
  });
});
