import { cp, mkdir, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { CompiledQuery, Kysely, sql } from 'kysely';
import { describe, expect, it, onTestFinished } from 'vitest';
import { sqliteFile } from '../../src/gateway/store/engines/sqlite.ts';
import { verifyLedger } from '../../src/gateway/store/integrity/ledger.ts';
import { CallbackStore } from '../../src/gateway/store/repositories/callbacks.ts';
import { OrderStore } from '../../src/gateway/store/repositories/orders.ts';
import { PaymentStore } from '../../src/gateway/store/repositories/payments.ts';
import { PushReader } from '../../src/gateway/store/repositories/pushes.ts';
import type { Tables } from '../../src/gateway/store/schema/tables.ts';
import { openStore } from '../../src/gateway/store/store.ts';
import { ConfigError } from '../../src/lib/errors.ts';
import { ACCOUNT, BOXES, TEST_CALLBACK, testCallback } from '../gateway/harness.ts';
import { keptLog } from '../support/kept-log.ts';
import { freePort, temporaryFolder } from '../support/net.ts';
import { paybox, payboxToEnd, readyFile } from '../support/processes.ts';
import { seeded } from '../support/seeded.ts';
import { BOX, order, pay, push } from './rows.ts';

const STORE = 'gateway.sqlite';
const WAL = `${STORE}-wal`;
const MARK = 'gateway.mark';
const FLIPS = 60;
const MARK_HEAD_BYTES = 256;

/** By transaction id, what a payment says. */
type Acknowledged = Map<string, { content: string; amount: number }>;

/** Runs a gateway of its own in the folder, has it acknowledge so many payments, and ends it by the signal. */
async function payments(folder: string, count: number, signal: NodeJS.Signals, known: Acknowledged): Promise<void> {
  const file = join(folder, 'gateway.yaml');
  const partner = { username: 'demo', password: 'demo-secret', accounts: [ACCOUNT.bankAccount] };
  const port = await freePort();
  // Nobody answers there: what is owed to the partner stays owed.
  const partners = [{ ...partner, callback: { url: `http://127.0.0.1:${await freePort()}/` } }];
  const config = {
    http: { port },
    mqtt: null,
    dataDir: folder,
    accounts: [ACCOUNT],
    boxes: BOXES.slice(0, 2),
    partners,
  };
  await writeFile(file, JSON.stringify(config));
  await rm(join(folder, 'ready.json'), { force: true });
  const gateway = paybox('gateway', '--config', file, '--ready-file', join(folder, 'ready.json'));
  await readyFile(join(folder, 'ready.json'), gateway);
  const baseUrl = `http://127.0.0.1:${port}/vqr`;
  const basic = Buffer.from('demo:demo-secret').toString('base64');
  const login = { method: 'POST', headers: { authorization: `Basic ${basic}` } };
  const { access_token } = (await (await fetch(`${baseUrl}/api/token_generate`, login)).json()) as Record<
    string,
    string
  >;
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${access_token}` };
  for (let n = 0; n < count; n += 1) {
    const paid = { content: `DH${known.size}`, amount: 50_000 + known.size };
    const body = JSON.stringify(testCallback(paid));
    const answer = await fetch(`${baseUrl}${TEST_CALLBACK}`, { method: 'POST', headers, body });
    const { message } = (await answer.json()) as { message: string };
    if (answer.status === 200) known.set(message, paid);
  }
  await gateway.stop(signal);
}

/** What a start finds: everything as it was acknowledged, a loss that it names, or a loss that it does not. */
async function found(folder: string, known: Acknowledged): Promise<'whole' | 'named' | 'silent'> {
  const store = await openStore({ dataDir: folder }, keptLog().log).catch((error: unknown) => error);
  if (store instanceof ConfigError && store.message.startsWith('dataDir: ')) return 'named';
  if (store instanceof Error) throw store;
  const opened = store as Awaited<ReturnType<typeof openStore>>;
  try {
    const rows = await opened.payments.newest(1000);
    const callbacks = await opened.callbacks.ofPayments(rows.map(({ id }) => id));
    const isWhole = [...known].every(([id, { content, amount }]) => {
      const row = rows.find((it) => it.id === id);
      const told = JSON.parse(callbacks.find((it) => it.payment_id === id)?.body ?? '{}') as Record<string, unknown>;
      const same = row?.content === content && row.amount === amount && row.bank_account === ACCOUNT.bankAccount;
      return same && told.content === content && told.amount === amount && told.bankaccount === ACCOUNT.bankAccount;
    });
    return isWhole && rows.length === known.size ? 'whole' : 'silent';
  } catch {
    return 'silent';
  } finally {
    await opened.close();
  }
}

async function flipBit(file: string, at: number, bit: number): Promise<void> {
  const handle = await open(file, 'r+');
  const byte = Buffer.alloc(1);
  await handle.read(byte, 0, 1, at);
  await handle.write(Buffer.of((byte[0] ?? 0) ^ (1 << bit)), 0, 1, at);
  await handle.close();
}

describe('a gateway whose store is damaged while it is off', () => {
  it('MSG-7 has every payment that it acknowledged as it was, or names what is lost', async () => {
    const killed = { folder: await temporaryFolder(), known: new Map() as Acknowledged };
    await payments(killed.folder, 25, 'SIGTERM', killed.known);
    const stopped = { folder: join(await temporaryFolder(), 'stopped'), known: new Map(killed.known) };
    await cp(killed.folder, stopped.folder, { recursive: true });
    await payments(killed.folder, 25, 'SIGKILL', killed.known);
    expect(killed.known.size).toBe(50);
    const chance = seeded(13);
    const copy = join(await temporaryFolder(), 'copy');
    const startAfter = async ({ folder, known }: typeof killed, spoil: () => Promise<void>) => {
      await rm(copy, { recursive: true, force: true });
      await mkdir(copy);
      for (const name of [STORE, WAL, MARK]) await cp(join(folder, name), join(copy, name)).catch(() => undefined);
      await spoil();
      return found(copy, known);
    };
    for (const earlier of [stopped, killed]) expect(await startAfter(earlier, async () => undefined)).toBe('whole');
    for (const [earlier, name] of [
      [stopped, STORE],
      [killed, STORE],
      [killed, WAL],
      [killed, MARK],
    ] as const) {
      const counts = { whole: 0, named: 0, silent: [] as string[] };
      // Behind its head a mark only names payments; any other byte of these files matters.
      const size = name === MARK ? MARK_HEAD_BYTES : (await stat(join(earlier.folder, name))).size;
      for (let n = 0; n < FLIPS; n += 1) {
        const [at, bit] = [chance.below(size), chance.below(8)];
        const result = await startAfter(earlier, () => flipBit(join(copy, name), at, bit));
        if (result === 'silent') counts.silent.push(`bit ${bit} of byte ${at}`);
        else counts[result] += 1;
      }
      process.stdout.write(
        `${FLIPS} bits of ${name}: ${counts.whole} whole, ${counts.named} named, ${counts.silent.length} silent\n`,
      );
      expect.soft(counts.silent, name).toEqual([]);
    }
    expect(await startAfter(killed, () => rm(join(copy, WAL)))).toBe('named');
  });

  it('STO-3 is refused by name when one letter of a column in its schema is another, or it has a trigger of others', async () => {
    const dataDir = await temporaryFolder();
    const file = join(dataDir, STORE);
    const start = () => openStore({ dataDir }, keptLog().log);
    await (await start()).close();
    const change = (statements: string) => {
      const db = new DatabaseSync(file, { defensive: false });
      db.exec(statements);
      db.close();
    };
    const rename = (from: string, to: string) =>
      change(`pragma writable_schema = on;
        update sqlite_schema set sql = replace(sql, '"${from}"', '"${to}"') where name = 'callbacks'`);
    rename('next_at_ms', 'Next_at_ms');
    await expect(start()).rejects.toThrow(/^dataDir: the store .* is damaged: it has another table "callbacks"$/);
    rename('Next_at_ms', 'next_at_ms');
    change('analyze; create index amounts on payments (amount)');
    await (await start()).close();
    change('create trigger theft after insert on payments begin update payments set amount = 1; end');
    await expect(start()).rejects.toThrow('it has a trigger "theft"');
  });

  it('STO-3 is refused by name when a text in a row has become a BLOB of the same bytes', async () => {
    const dataDir = await temporaryFolder();
    const { log } = keptLog();
    const first = await openStore({ dataDir }, log);
    await first.orders.add(order('a'));
    await pay(first, 't a', { orderRef: 'a', notices: [], callback: { id: 'c a', url: 'u', body: 'b' } });
    await first.close();
    const db = new Kysely<Tables>({ dialect: sqliteFile(join(dataDir, STORE), log).dialect });
    await sql`update callbacks set body = cast(body as blob)`.execute(db);
    await db.destroy();
    await expect(openStore({ dataDir }, log)).rejects.toThrow('damaged in callbacks: c a of payment t a');
  });

  it('refuses its start by name when the newest payments are gone, and goes on without them once the loss is accepted', async () => {
    const folder = await temporaryFolder();
    const known: Acknowledged = new Map();
    await payments(folder, 3, 'SIGTERM', known);
    await payments(folder, 4, 'SIGKILL', known);
    await rm(join(folder, WAL));
    const refused = await payboxToEnd('gateway', '--config', join(folder, 'gateway.yaml'));
    expect(refused.code).toBe(2);
    expect(refused.output).toContain('payments 4 to 7 are missing, 4 of them, which had been acknowledged');
    const evidence = (await readdir(folder)).filter((it) => it.startsWith('gateway.missing-4-7-'));
    expect(evidence).toHaveLength(1);
    const { payments: lost } = JSON.parse(await readFile(join(folder, evidence[0] ?? ''), 'utf8')) as {
      payments: { number: number; transactionId: string; amount: number }[];
    };
    expect(lost.map((it) => [it.number, it.transactionId, it.amount])).toEqual(
      [...known].slice(3).map(([id, { amount }], i) => [4 + i, id, amount]),
    );
    const accept = join(folder, 'gateway.accept-loss');
    expect(refused.output).toContain(`make the empty file ${accept} to go on`);
    await writeFile(accept, '');
    await payments(folder, 1, 'SIGTERM', known);
    expect(await readFile(join(folder, MARK), 'latin1')).toMatch(/^4 [\da-f]{64} /);
  });
});

describe('a row that is damaged while the gateway runs', () => {
  it('is told to nobody and named, and the others are told', async () => {
    const dataDir = await temporaryFolder();
    const first = await openStore({ dataDir }, keptLog().log);
    const told = [{ terminal_code: BOX, push_id: null, told_at_ms: null }];
    for (const id of ['a', 'b']) {
      await first.orders.add(order(id));
      await pay(first, `t ${id}`, { orderRef: id, notices: told, callback: { id: `c ${id}`, url: 'u', body: 'b' } });
    }
    await first.close();
    const { log, lines } = keptLog();
    const db = new Kysely<Tables>({ dialect: sqliteFile(join(dataDir, STORE), log).dialect });
    onTestFinished(() => db.destroy());
    // As a disk does it: past the engine, which would refuse or sum it.
    for (const table of ['orders', 'payments', 'callbacks']) {
      const ddl = await sql<{ sql: string }>`select sql from sqlite_master where name = ${`${table}_updated`}`.execute(
        db,
      );
      await sql.raw(`drop trigger ${table}_updated`).execute(db);
      const id = { orders: 'a', payments: 't a', callbacks: 'c a' }[table];
      await sql`update ${sql.table(table)} set partner = 'other' where id = ${id}`.execute(db);
      await sql.raw(ddl.rows[0]?.sql ?? '').execute(db);
    }
    const [orders, payments] = [new OrderStore(db, log), new PaymentStore(db, log)];
    await expect(orders.find('a')).rejects.toThrow('the row a of orders is damaged');
    await expect(orders.startPush(push('p', 'a'), undefined)).rejects.toThrow('a row of orders is damaged: a');
    await expect(new CallbackStore(db, log).find('c a')).rejects.toThrow(
      'the row c a of payment t a of callbacks is damaged',
    );
    expect((await orders.newest(10)).map((it) => it.id)).toEqual(['b']);
    expect((await payments.newest(10)).map((it) => it.id)).toEqual(['t b']);
    expect((await payments.takeUnreported(BOX, 9)).notices.map((it) => it.id)).toEqual(['t b']);
    expect(JSON.stringify(lines.filter((it) => it.event === 'row-damaged'))).toContain('t a');
    expect((await verifyLedger(db)).problems).toEqual([
      'damaged in orders: a',
      'damaged in payments: t a',
      'damaged in callbacks: c a of payment t a',
      'payment 1 is not the one that was stored after 0',
    ]);
  });

  it('is asked for by an index, however many pushes a box has', async () => {
    const dataDir = await temporaryFolder();
    const store = await openStore({ dataDir }, keptLog().log);
    await store.close();
    const asked: string[] = [];
    const db = new Kysely<Tables>({
      dialect: sqliteFile(join(dataDir, STORE), keptLog().log).dialect,
      log: ({ query }) => void asked.push(query.sql),
    });
    onTestFinished(() => db.destroy());
    const orders = new OrderStore(db, keptLog().log);
    await new PushReader(db).pushOnBox('a', BOX, 'displayed', 1);
    await orders.openPushIds(BOX);
    await orders.toWithdraw(BOX);
    await orders.failUnfinished(1, 'displayed', { terminalCode: BOX, except: [] });
    const plans: string[] = [];
    for (const query of asked.slice()) {
      const plan = await db.executeQuery<{ detail: string }>(CompiledQuery.raw(`explain query plan ${query}`, []));
      plans.push(plan.rows.map(({ detail }) => detail).join(', '));
    }
    const unended = expect.stringMatching(/pushes_unended(?!.*TEMP B-TREE)/);
    expect(plans).toEqual([expect.stringMatching(/pushes_of_box(?!.*TEMP B-TREE)/), unended, unended, unended]);
  });
});
