import { readdir, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { readHighWaterMark } from '../../src/gateway/store/integrity/high-water-mark.ts';
import { temporaryFolder } from '../support/net.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { OneWriter } from './one-writer.ts';
import { BOX, credit, pay, tellCredit } from './rows.ts';

const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1);

describe.skipIf(missing)(`gateways that write into one PostgreSQL database${note}`, () => {
  const server = postgresServer();

  /** Writers by their names, each with a folder of its own. */
  async function writers<Name extends string>(...names: Name[]) {
    const databaseUrl = await server().database();
    const all = {} as Record<Name, OneWriter>;
    const folders = {} as Record<Name, string>;
    for (const name of names) {
      folders[name] = await temporaryFolder();
      all[name] = await new OneWriter(name, databaseUrl, folders[name]).start();
    }
    const again = (name: Name) => new OneWriter(name, databaseUrl, folders[name]).start();
    const file = (name: Name, suffix: string) =>
      join(folders[name], `gateway-${new URL(databaseUrl).pathname.slice(1)}${suffix}`);
    /** As a standby that lags: the database has no payment of this writer after this number. */
    const loseAfter = (name: Name, number: number) =>
      server().run(
        databaseUrl,
        `delete from payments where writer = '${name}' and number > ${number};
         update ledger set end_seq = ${number}, end_link = coalesce((select link from payments where writer = '${name}' and number = ${number}), '')
           where name = '${name}'`,
      );
    return { databaseUrl, ...all, again, file, loseAfter };
  }

  it('STO-3 each continues a chain of its own, whatever they store at once', async () => {
    const { a, b } = await writers('a', 'b');
    const each = 40;
    const paid = [a, b].flatMap((writer) => upTo(each).map((n) => pay(writer, `${writer.mark.writer}${n}`)));
    await Promise.all(paid);
    const numbers = await a.numbers();
    expect(Object.keys(numbers).toSorted()).toEqual(['a', 'b']);
    for (const name of ['a', 'b']) expect(numbers[name]?.toSorted((x, y) => x - y)).toEqual(upTo(each));
    const seqs = await a.db.selectFrom('payments').select('seq').distinct().execute();
    expect(seqs).toHaveLength(2 * each);
    expect(await a.problems()).toEqual([]);
    for (const writer of [a, b]) {
      expect(readHighWaterMark(writer.mark.file).newest).toMatchObject({ number: each });
      expect(await writer.guard.check(writer.db, true)).toBe(true);
    }
  });

  it('CRE-2 CBK-6 they store one payment of a credit that all hear at once, with one notice a box and one callback', async () => {
    const { a, b } = await writers('a', 'b');
    const notices = [{ terminal_code: BOX, push_id: null, told_at_ms: null }];
    const told = upTo(12).flatMap((n) =>
      [a, b, a, b].map((writer, i) =>
        tellCredit(writer, credit(`${n}`), { notices, callback: { id: `callback ${n} ${i}`, url: 'u', body: 'b' } }),
      ),
    );
    const kinds = (await Promise.all(told)).map(({ kind }) => kind);
    expect(kinds.filter((it) => it === 'payment')).toHaveLength(12);
    const count = async (table: 'payments' | 'notices' | 'callbacks' | 'credits') =>
      (await a.db.selectFrom(table).selectAll().execute()).length;
    for (const table of ['payments', 'notices', 'callbacks', 'credits'] as const) expect(await count(table)).toBe(12);
    expect(await a.problems()).toEqual([]);
  });

  it('STO-5 the one whose newest payments are gone names them, and no other goes on until an admin accepts the loss', async () => {
    const { a, b, again, file, loseAfter } = await writers('a', 'b');
    for (const n of upTo(5)) await pay(a, `a${n}`);
    for (const n of upTo(3)) await pay(b, `b${n}`);
    await loseAfter('a', 3);
    // b has lost nothing, and has no word of it yet.
    await b.guard.hear(b.db);
    expect(b.guard.isRefusing).toBe(false);
    expect(await a.guard.check(a.db, true)).toBe(false);
    const problem = 'payments 4 to 5 of gateway a are missing, 2 of them, which had been acknowledged';
    await expect(pay(a, 'a6')).rejects.toThrow(problem);
    const named = a.lines.filter(({ event }) => event === 'payment-missing');
    expect(named.map(({ number, transactionId }) => [number, transactionId])).toEqual([
      [4, 'a4'],
      [5, 'a5'],
    ]);
    await b.guard.hear(b.db);
    await expect(pay(b, 'b4')).rejects.toThrow(problem);
    expect(b.lines.filter(({ event }) => event === 'payments-missing')).toMatchObject([{ level: 'error', problem }]);
    for (const name of ['a', 'b'] as const) await expect(again(name)).rejects.toThrow(problem);

    await writeFile(file('b', '.accept-loss'), '');
    const accepted = await again('b');
    expect(accepted.lines.map(({ event }) => event)).toContain('store-loss-accepted');
    await pay(accepted, 'b4');
    // a was running all the time.
    expect(await a.guard.check(a.db, true)).toBe(true);
    expect(a.lines.at(-1)).toMatchObject({ event: 'payments-recovered', newest: 3 });
    await pay(a, 'a again');
    expect(readHighWaterMark(a.mark.file)).toMatchObject({
      newest: { number: 4 },
      recent: [{ id: 'a1' }, { id: 'a2' }, { id: 'a3' }, { id: 'a again' }],
    });
    expect(await a.problems()).toEqual([]);
    expect(await a.numbers()).toMatchObject({ a: [1, 2, 3, 4], b: [1, 2, 3, 4] });
    await again('a');
  });

  it('STO-5 the start of one whose payments are gone stops the others too', async () => {
    const { a, b, again, loseAfter } = await writers('a', 'b');
    for (const n of upTo(2)) await pay(a, `a${n}`);
    await pay(b, 'b1');
    await loseAfter('a', 0);
    await expect(again('a')).rejects.toThrow('payments 1 to 2 of gateway a are missing');
    await b.guard.hear(b.db);
    await expect(pay(b, 'b2')).rejects.toThrow('payments 1 to 2 of gateway a are missing');
  });

  it('STO-5 two that miss payments at once are both named to a third', async () => {
    const { a, b, c, again, loseAfter } = await writers('a', 'b', 'c');
    for (const writer of [a, b, c]) for (const n of upTo(2)) await pay(writer, `${writer.mark.writer}${n}`);
    await loseAfter('a', 1);
    await loseAfter('b', 1);
    for (const writer of [a, b]) expect(await writer.guard.check(writer.db, true)).toBe(false);
    await expect(again('c')).rejects.toThrow(
      /payment 2 of gateway a is missing, .*; payment 2 of gateway b is missing, /,
    );
  });

  it('STO-3 a start checks the chains of all, and an acceptance restarts them', async () => {
    const { a, b, again, file } = await writers('a', 'b');
    for (const writer of [a, b]) for (const n of upTo(3)) await pay(writer, `${writer.mark.writer}${n}`);
    await sql`delete from payments where id = 'b2'`.execute(a.db);
    await sql`update payments set number = 7 where id = 'a3'`.execute(a.db);
    const broken = [
      'payments 3 to 6 of gateway a are missing, 4 of them',
      'the ledger of gateway a ends at payment 3, the payments at 7',
      'payment 2 of gateway b is missing',
    ];
    expect(await a.problems()).toEqual(broken);
    await expect(again('b')).rejects.toThrow(broken.join('; '));
    await expect(again('a')).rejects.toThrow('payments 4 to 6 of gateway a are missing, 3 of them');
    await writeFile(file('a', '.accept-loss'), '');
    await again('a');
    expect(await a.problems()).toEqual([]);
    const other = await again('b');
    await pay(other, 'b4');
    expect(await a.problems()).toEqual([]);
    await sql`update payments set writer = 'c' where id = 'b4'`.execute(a.db);
    expect(await a.problems()).toEqual(['the ledger of gateway c is gone', 'payment 4 of gateway b is missing']);
  });

  it('a start of one checks a whole state, while another stores payments', async () => {
    const { a, again } = await writers('a', 'b');
    let isOver = false;
    const paying = (async () => {
      for (let n = 0; !isOver; n += 1) await pay(a, `a${n}`);
    })();
    for (const _ of upTo(5)) await again('b');
    isOver = true;
    await paying;
  });

  it('prunes the payments of all, and records how many of each', async () => {
    const { a, b, again } = await writers('a', 'b');
    for (const n of upTo(15)) for (const writer of [a, b]) await pay(writer, `${writer.mark.writer}${n}`);
    await a.prune(6);
    expect(await a.numbers()).toEqual({ a: [13, 14, 15], b: [13, 14, 15] });
    expect(await a.problems()).toEqual([]);
    const counts = a.db.selectFrom('ledger').select(['name', 'pruned_seq', 'pruned_count']).orderBy('name');
    expect(await counts.execute()).toEqual([
      { name: '', pruned_seq: 0, pruned_count: 0 },
      { name: 'a', pruned_seq: 12, pruned_count: 12 },
      { name: 'b', pruned_seq: 12, pruned_count: 12 },
    ]);
    expect(await b.guard.check(b.db, true)).toBe(true);
    await again('b');
    await a.prune(0);
    await pay(b, 'b16');
    expect(await a.numbers()).toEqual({ b: [16] });
    expect(await a.problems()).toEqual([]);
  });

  it('STO-5 a gateway that gets a name, and then is alone again, continues each chain and compares both', async () => {
    const [databaseUrl, dataDir] = [await server().database(), await temporaryFolder()];
    const start = (name: string) => new OneWriter(name, databaseUrl, dataDir).start();
    const first = await start('');
    for (const n of upTo(3)) await pay(first, `alone ${n}`);
    const named = await start('a');
    for (const n of upTo(2)) await pay(named, `named ${n}`);
    const last = await start('');
    await pay(last, 'alone 4');
    expect(await last.numbers()).toEqual({ '': [1, 2, 3, 4], a: [1, 2] });
    expect(await last.problems()).toEqual([]);
    expect(last.lines).toEqual([]);
    const database = new URL(databaseUrl).pathname.slice(1);
    expect((await readdir(dataDir)).toSorted()).toEqual([`gateway-${database}.a.mark`, `gateway-${database}.mark`]);
    // It has acknowledged these as well.
    await sql`delete from payments where writer = 'a' and number = 2`.execute(last.db);
    await sql`update ledger set end_seq = 1, end_link = (select link from payments where writer = 'a') where name = 'a'`.execute(
      last.db,
    );
    expect(await last.problems()).toEqual([]);
    expect(await last.guard.check(last.db, true)).toBe(false);
    await expect(start('')).rejects.toThrow('payment 2 of gateway a is missing, which had been acknowledged');
    await writeFile(join(dataDir, `gateway-${database}.accept-loss`), '');
    await start('');
    await start('a');
  });

  it('STO-3 a damaged mark of a former name is refused by its file until an admin accepts that', async () => {
    const [databaseUrl, dataDir] = [await server().database(), await temporaryFolder()];
    const start = (name: string) => new OneWriter(name, databaseUrl, dataDir).start();
    await pay(await start(''), 'alone');
    const beside = join(dataDir, `gateway-${new URL(databaseUrl).pathname.slice(1)}`);
    await writeFile(`${beside}.mark`, 'what was a mark');
    for (const _ of upTo(2)) await expect(start('a')).rejects.toThrow(`${beside}.mark is damaged`);
    await writeFile(`${beside}.accept-loss`, '');
    for (const _ of upTo(2)) await start('a');
    expect(await readdir(dataDir)).toEqual([`${basename(beside)}.a.mark`]);
  });

  it('STO-6 a restored database has marks of its own, and those of before do not count', async () => {
    const { a, databaseUrl, file, loseAfter } = await writers('a');
    for (const n of upTo(2)) await pay(a, `a${n}`);
    await loseAfter('a', 1);
    const dataDir = join(file('a', ''), '..');
    const restored = await new OneWriter('a', databaseUrl, dataDir, '7f3').start();
    expect(restored.lines).toMatchObject([{ event: 'mark-created', file: file('a', '-7f3.a.mark'), payments: 1 }]);
    await pay(restored, 'a2 again');
    await rm(file('a', '-7f3.a.mark'));
    expect(await restored.problems()).toEqual([]);
  });

  it('MOD-3 payments of all gateways before a change of the mode were tests, those after it are not', async () => {
    const { a, b } = await writers('a', 'b');
    for (const { history } of [a, b]) await history.begin('test');
    for (const writer of [a, b]) await pay(writer, `test ${writer.mark.writer}`);
    for (const { history } of [a, b]) await history.begin('money');
    for (const writer of [b, a]) await pay(writer, `money ${writer.mark.writer}`);
    const ids = ['test a', 'test b', 'money a', 'money b'];
    for (const { history } of [a, b])
      expect([...(await history.testsAmong(ids))].toSorted()).toEqual(['test a', 'test b']);
  });
});
