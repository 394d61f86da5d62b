import { writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/net.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { joined } from './joined.ts';
import { pay } from './rows.ts';

describe.skipIf(missing)(`stores of gateways that share a PostgreSQL database${note}`, () => {
  const server = postgresServer();

  it('STO-3 they store payments at once, each in its own chain', async () => {
    const databaseUrl = await server().database();
    const all = [await joined(databaseUrl, 'a'), await joined(databaseUrl, 'b'), await joined(databaseUrl, 'c')];
    await Promise.all(
      all.flatMap(({ store }, i) => Array.from({ length: 20 }, (_, n) => pay(store, `${i} ${n}`, { atMs: n }))),
    );
    const found = await server().run(
      databaseUrl,
      'select name, end_seq::int as number, (select count(*)::int from payments where writer = name) as count from ledger order by name',
    );
    expect(found).toEqual([
      { name: '', number: 0, count: 0 },
      ...['a', 'b', 'c'].map((name) => ({ name, number: 20, count: 20 })),
    ]);
    await all[0]?.store.close();
    await all[0]?.open();
  });

  it('STO-5 all refuse while payments of one are missing, and go on once an admin has accepted the loss at one', async () => {
    const databaseUrl = await server().database();
    const [a, b] = [await joined(databaseUrl, 'a'), await joined(databaseUrl, 'b')];
    for (const n of [1, 2, 3]) await pay(a.store, `a${n}`);
    await pay(b.store, 'b1');
    await server().run(
      databaseUrl,
      `delete from payments where id = 'a3';
       update ledger set end_seq = 2, end_link = (select link from payments where id = 'a2') where name = 'a'`,
    );
    await server().run(databaseUrl, a.ended);
    const problem = 'payment 3 of gateway a is missing';
    for (const { store, lines } of [a, b]) {
      await eventually('it to say so', () => lines.some(({ event }) => event === 'payments-missing'));
      await expect(pay(store, 'more')).rejects.toThrow(problem);
    }
    await b.store.close();
    await expect(b.open()).rejects.toThrow(problem);
    await writeFile(b.accept, '');
    await pay(await b.open(), 'b2');
    await eventually('a to go on', () => a.lines.some(({ event }) => event === 'payments-recovered'));
    await pay(a.store, 'a3 again');
    const ids = (await a.store.payments.newest(10)).map(({ id }) => id);
    expect(ids.toReversed()).toEqual(['a1', 'a2', 'b1', 'b2', 'a3 again']);
  });
});
