import { closeSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startPartnerServer } from '../../src/bench/engine/clients/partner-server.ts';
import { takeover } from '../../src/commands/actions/takeover.ts';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { startGateway } from '../../src/gateway/gateway.ts';
import { writeHighWaterMark } from '../../src/gateway/store/integrity/high-water-mark.ts';
import { openStore } from '../../src/gateway/store/store.ts';
import { type TakeoverOptions, takeOver } from '../../src/gateway/store/takeover/takeover.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { newSecret } from '../../src/protocol/secret.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { earlierCluster, SHARDS } from './earlier-cluster/database.ts';

const TABLES = ['orders', 'pushes', 'payments', 'callbacks', 'callback_attempts', 'notices', 'credits', 'order_codes'];
const rowsIn = readFileSync(join(import.meta.dirname, 'earlier-cluster/rows.sql'), 'utf8').split('\n');
const rowsOf = (table: string) => rowsIn.filter((it) => it.includes(`.${table} VALUES`)).length;

describe.skipIf(missing)(`the shards of an earlier version${note}`, () => {
  const server = postgresServer();
  const open = async (databaseUrl: string) =>
    openStore({ dataDir: await temporaryFolder(), databaseUrl }, keptLog().log);
  const take = async (databaseUrl: string, options: TakeoverOptions = {}, dataDir?: string) =>
    takeOver({ dataDir: dataDir ?? (await temporaryFolder()), databaseUrl }, options);
  /** All that a half could leave: schemas, tables, and the payments and orders of each shard. */
  const stateOf = async (databaseUrl: string) => ({
    tables: await server().run(databaseUrl, 'select schemaname, tablename from pg_tables order by 1, 2'),
    shards: await Promise.all(
      Array.from({ length: SHARDS }, (_, i) =>
        server().run(
          databaseUrl,
          `select (select array_agg(it order by id) from shard_${i}.payments as it)::text as payments,
             (select array_agg(it order by id) from shard_${i}.orders as it)::text as orders,
             (select array_agg(it order by name) from shard_${i}.settings as it)::text as settings`,
        ),
      ),
    ),
  });

  it('STO-9 a start on the database of a cluster with shards is refused by name, and changes nothing', async () => {
    const databaseUrl = await earlierCluster(server());
    const before = await stateOf(databaseUrl);
    const opened = open(databaseUrl);
    await expect(opened).rejects.toThrow(/has the shards of an earlier version/);
    await expect(opened).rejects.toMatchObject({ fix: expect.stringContaining('paybox takeover') });
    expect(await stateOf(databaseUrl)).toEqual(before);
  });

  it('STO-9 a takeover moves all rows of all shards, and a gateway goes on with what was unconfirmed', async () => {
    const databaseUrl = await earlierCluster(server());
    const owed = async (of: string) =>
      server().run(
        databaseUrl,
        `select id, payment_id, body, status, tries::int from ${of}.callbacks where status = 'pending'`,
      );
    const before = (await Promise.all(['shard_0', 'shard_1', 'shard_2'].map(owed))).flat();
    expect(before.length).toBeGreaterThan(3);
    const { shards, rows } = await take(databaseUrl);
    expect(shards).toBe(SHARDS);
    for (const table of TABLES) expect([table, rows[table]]).toEqual([table, rowsOf(table)]);
    const after = await owed('public');
    expect(after.toSorted(byId)).toEqual(before.toSorted(byId));
    for (const table of ['orders', 'pushes', 'payments', 'callbacks', 'credits']) {
      const [numbers] = await server().run(
        databaseUrl,
        `select count(distinct seq)::int as numbers, count(*)::int as rows, min(seq)::int as first from ${table}`,
      );
      expect(numbers).toEqual({ numbers: rowsOf(table), rows: rowsOf(table), first: 1 });
    }
    // Each shard keeps its order, and orders of all shards are in the order of their time.
    for (const table of ['orders', 'payments']) {
      const moved = (await server().run(databaseUrl, `select id from ${table} order by seq`)).map(({ id }) => id);
      for (let i = 0; i < SHARDS; i += 1) {
        const old = await server().run(databaseUrl, `select id from before_takeover_shard_${i}.${table} order by seq`);
        const ids = old.map(({ id }) => id);
        expect(moved.filter((id) => ids.includes(id))).toEqual(ids);
      }
    }
    const times = await server().run(databaseUrl, 'select created_at_ms::float8 as at from orders order by seq');
    expect(times).toEqual(times.toSorted((a, b) => Number(a.at) - Number(b.at)));

    const store = await open(databaseUrl);
    try {
      for (const table of ['orders', 'pushes', 'payments', 'callbacks', 'credits']) {
        const next = await server().run(databaseUrl, `select nextval('${table}_seq')::int as next`);
        expect([table, next]).toEqual([table, [{ next: rowsOf(table) + 1 }]]);
      }
      expect(await store.payments.newest(1_000)).toHaveLength(rowsOf('payments'));
      expect(await store.callbacks.newest(1_000)).toHaveLength(rowsOf('callbacks'));
      // The first hello of each box, and the keys, are those of the cluster.
      for (const line of rowsIn.filter((it) =>
        /shard_0\.settings VALUES \('(paybox-box|token-secret|signing)/.test(it),
      )) {
        const [, name = '', value] = /VALUES \('([^']+)', '([^']+)'\)/.exec(line) ?? [];
        expect(await store.setting(name, () => 'another')).toBe(value);
      }
    } finally {
      await store.close();
    }
    // The chain of each shard goes on as it was, with what was pruned of it.
    for (let i = 0; i < SHARDS; i += 1) {
      const chain = `select end_seq::int, end_link, pruned_seq::int, pruned_link, pruned_count::int from`;
      expect(await server().run(databaseUrl, `${chain} ledger where name = 'shard-${i}'`)).toEqual(
        await server().run(databaseUrl, `${chain} before_takeover_shard_${i}.ledger`),
      );
    }
    const kept = await server().run(databaseUrl, `select nspname from pg_namespace where nspname like 'before%'`);
    expect(kept).toHaveLength(SHARDS + 1);
    await expect(take(databaseUrl)).rejects.toThrow(/was taken over before/);
  });

  it('STO-9 the secret that wraps the registry goes on, and the command says what it moved', async () => {
    const databaseUrl = await earlierCluster(server());
    const [before] = await server().run(databaseUrl, 'select secret from cluster.settings');
    const file = join(await temporaryFolder(), 'gateway.yaml');
    await writeFile(file, JSON.stringify({ dataDir: await temporaryFolder(), databaseUrl, mqtt: null }));
    const state = await stateOf(databaseUrl);
    await takeover({ config: file, check: true });
    expect(await stateOf(databaseUrl)).toEqual(state);
    await takeover({ config: file, drop: true });
    expect(await server().run(databaseUrl, 'select secret from cluster.settings')).toEqual([before]);
    const left = await server().run(databaseUrl, `select nspname from pg_namespace where nspname ~ 'shard|before'`);
    expect(left).toEqual([]);
  });

  it('STO-9 payments that were only tests in their shard stay tests, and the others money', async () => {
    const databaseUrl = await earlierCluster(server());
    const testsUpTo = [2, 8, 0];
    for (const [shard, afterSeq] of testsUpTo.entries()) {
      const kinds = [...(afterSeq > 0 ? [{ kind: 'test', afterSeq: 0 }] : []), { kind: 'money', afterSeq }];
      await server().run(
        databaseUrl,
        `update shard_${shard}.settings set value = '${JSON.stringify(kinds)}' where name = 'payment-kinds'`,
      );
    }
    const old = testsUpTo.map((seq, shard) => `select id from shard_${shard}.payments where seq <= ${seq}`);
    const tests = (await server().run(databaseUrl, old.join(' union all '))).map(({ id }) => id);
    await take(databaseUrl);
    const [row] = await server().run(databaseUrl, `select value from settings where name = 'payment-kinds'`);
    const kinds = JSON.parse(String(row?.value)) as { kind: string; afterSeq: number }[];
    const payments = await server().run(databaseUrl, 'select id, seq::int from payments order by seq');
    const kindOf = (seq: number) => kinds.findLast(({ afterSeq }) => afterSeq < seq)?.kind;
    const stillTests = payments.filter(({ seq }) => kindOf(Number(seq)) === 'test').map(({ id }) => id);
    expect(tests.length).toBeGreaterThan(5);
    expect(stillTests.toSorted()).toEqual(tests.toSorted());
    expect(kinds.at(-1)?.kind).toBe('money');
  });

  it('STO-9 a gateway of this version delivers what waits, with the same ids, and opens the secrets of before', async () => {
    const databaseUrl = await earlierCluster(server());
    await take(databaseUrl);
    const owed = await server().run(databaseUrl, `select payment_id from callbacks where status = 'pending'`);
    const partner = await startPartnerServer();
    onTestFinished(() => partner.close());
    const received: (string | undefined)[] = [];
    partner.onReceived(({ transactionId }) => received.push(transactionId));
    const accounts = Array.from({ length: 5 }, (_, i) => String(1_000_000_000 + i));
    const shop = {
      username: 'shop',
      password: 'sample-password-of-the-shop',
      callback: { url: partner.url },
      accounts,
    };
    const config = parseGatewayConfig(
      {
        ...{ cluster: { name: 'one' }, databaseUrl, dataDir: await temporaryFolder(), mqtt: null },
        ...{ http: { port: await freePort() }, adminToken: newSecret(systemRandom), partners: [shop] },
        accounts: accounts.map((bankAccount) => ({ bankAccount, bankCode: 'MB', userBankName: 'SHOP' })),
      },
      'test',
    );
    const gateway = await startGateway(config, { clock: systemClock, random: systemRandom, log: keptLog().log });
    onTestFinished(() => gateway.close());
    await eventually('the callbacks', () => received.length >= owed.length);
    expect(received.toSorted()).toEqual(owed.map((it) => it.payment_id).toSorted());
    // The secret of the cluster wrapped this password.
    const authorization = `Basic ${Buffer.from('kept:sample-password-kept-in-store').toString('base64')}`;
    const answer = await fetch(`${gateway.baseUrl}/api/token_generate`, { method: 'POST', headers: { authorization } });
    expect(answer.status).toBe(200);
  });

  it.each([
    [
      'a changed payment',
      'set search_path = shard_1; alter table payments disable trigger all; update payments set amount = 1 where seq = 5',
      /damaged in shard_1\.payments/,
    ],
    [
      'a payment that is missing',
      'set search_path = shard_0; delete from payments where seq = 2',
      /payment 3 of shard_0 does not follow/,
    ],
    [
      'the newest payment missing',
      'set search_path = shard_2; delete from payments where seq = (select max(seq) from payments)',
      /the ledger of shard_2 ends at/,
    ],
    ['a shard that is missing', 'drop schema shard_2 cascade', /lacks shard_2/],
    ['a half restore', 'create schema paybox_restore', /restore of an earlier version/],
    ['a store in public', 'create table public.payments (id text)', /has a store in the schema public/],
    [
      'a loss that is not settled',
      "insert into shard_1.settings values ('missing-payment', '9 abc')",
      /shard_1 lacks a payment/,
    ],
    [
      'a shard of an older version',
      "delete from shard_1.kysely_migration where name like '020%'",
      /is of an older version/,
    ],
  ])('STO-9 a takeover refuses %s by name, and changes nothing', async (_what, change, expected) => {
    const databaseUrl = await earlierCluster(server());
    await server().run(databaseUrl, change);
    const schemas = () => server().run(databaseUrl, 'select schemaname, tablename from pg_tables order by 1, 2');
    const before = await schemas();
    await expect(take(databaseUrl)).rejects.toThrow(expected);
    expect(await schemas()).toEqual(before);
  });

  it('STO-9 a takeover refuses a shard that lacks a payment which a gateway has acknowledged', async () => {
    const databaseUrl = await earlierCluster(server());
    const dataDir = await temporaryFolder();
    const [end] = await server().run(
      databaseUrl,
      'select end_seq::int as number, end_link as link from shard_1.ledger',
    );
    const { number, link } = end as { number: number; link: string };
    const file = join(dataDir, `gateway-${new URL(databaseUrl).pathname.slice(1)}-shard-1.mark`);
    closeSync(writeHighWaterMark(file, { number: number + 1, link }));
    await expect(take(databaseUrl, { check: true }, dataDir)).rejects.toThrow(/shard_1 lacks payment 12, which/);
    closeSync(writeHighWaterMark(file, { number, link }));
    await take(databaseUrl, {}, dataDir);
  });

  it('STO-9 a takeover refuses a database that a gateway uses', async () => {
    const databaseUrl = await earlierCluster(server());
    const member = new pg.Client({ connectionString: databaseUrl, application_name: 'paybox a-member' });
    await member.connect();
    await expect(take(databaseUrl)).rejects.toThrow(/a gateway uses the database/);
    await member.end();
    await take(databaseUrl, { check: true });
  });

  it('STO-9 a takeover that is killed midway has changed nothing, and runs again', async () => {
    const databaseUrl = await earlierCluster(server());
    const before = await stateOf(databaseUrl);
    // It waits for this table once it has moved those before it.
    const blocker = new pg.Client({ connectionString: databaseUrl });
    await blocker.connect();
    await blocker.query('begin; lock table shard_2.known_logins in access exclusive mode');
    const taking = take(databaseUrl).catch((error: unknown) => error);
    await eventually('the takeover to wait', async () => {
      const waiting = await server().run(
        databaseUrl,
        `select pg_terminate_backend(pid) from pg_stat_activity
           where application_name = 'paybox-takeover' and wait_event_type = 'Lock'`,
      );
      return waiting.length > 0;
    });
    expect(await taking).toBeInstanceOf(Error);
    await blocker.end();
    expect(await stateOf(databaseUrl)).toEqual(before);
    await take(databaseUrl);
  });
});

const byId = (a: Record<string, unknown>, b: Record<string, unknown>) => String(a.id).localeCompare(String(b.id));
