import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Store } from '../../src/gateway/store/store.ts';
import { eventually, eventuallyDone } from '../support/net.ts';
import { missing, note } from '../support/stores.ts';
import { stopped } from './own-sessions-fixture.ts';
import { BOX, credit, opened, order, pay, push } from './rows.ts';
import { barrier, sharedStores } from './shared-database-fixture.ts';

const AMOUNT = 100_000;

/** Stores a credit for an order, whose state follows from what was paid for it. */
function partPaid(store: Store, id: string, orderId: string, amount: number, met = async () => {}) {
  return store.within(async (tx) => {
    const taken = await tx.takeCredit(credit(id, { amount, text: orderId }), new Map(), true);
    if (taken.kind !== 'new') return taken.kind;
    const found = await tx.order(orderId);
    if (found === undefined) throw new Error('no order');
    const paid = (await tx.paidFor(orderId)) + amount;
    await met();
    const notices = [{ terminal_code: BOX, push_id: null, told_at_ms: null }];
    const payment = {
      ...{ id: taken.id, order_ref: orderId, partner: 'demo', order_id: '', reference_number: 'r', amount },
      ...{ bank_account: '1', bank_code: 'MB', content: 'x', trans_type: 'C' as const, paid_at_ms: 5 },
    };
    const callback = { id: `callback ${taken.id}`, url: 'http://partner', body: '{}' };
    await tx.addPayment({ payment, notices, callback }, 5);
    await tx.settle(found, paid >= found.amount ? 'paid' : 'open', notices, 5);
    return paid;
  });
}

describe.skipIf(missing)(`stores that share a PostgreSQL database${note}`, () => {
  const { server, place, database, open, bury, sessions } = sharedStores(['wal_writer_delay=10s']);
  const ids = async (store: Store | undefined) =>
    ((await store?.orders.newest(1000)) ?? []).map((it) => it.id).toSorted();

  it('STO-1 two gateways begin an empty database at once, each reads what the other has stored, and both run on', async () => {
    const stores = await open(await database());
    await Promise.all(stores.map((store, i) => store.orders.add(order(`of ${i}`))));
    for (const store of stores) expect(await ids(store)).toEqual(['of 0', 'of 1']);
    for (const store of stores) await store.check();
  });

  it('CRE-2 CRE-3 money for one order that arrives at two gateways at once is counted once, whichever hears of it', async () => {
    const databaseUrl = await database();
    const [a, b] = (await open(databaseUrl)) as [Store, Store];
    const names = Array.from({ length: 8 }, (_, i) => `o${i}`);
    for (const id of names) await a.orders.add(order(id, { amount: AMOUNT, content: id }));
    const told: Awaited<ReturnType<typeof partPaid>>[] = [];
    for (const id of names) {
      // Each part has read what was paid before the other one is stored.
      const met = barrier(2);
      const parts = [partPaid(a, `${id} first`, id, 40_000, met), partPaid(b, `${id} second`, id, 60_000, met)];
      // Two sources have reported the second one.
      told.push(...(await Promise.all([...parts, partPaid(a, `${id} second`, id, 60_000)])));
    }
    expect(told.filter((it) => it === 'duplicate')).toHaveLength(names.length);
    // Of the two parts of an order, the later one has found the earlier one.
    expect(told.filter((it) => it === AMOUNT)).toHaveLength(names.length);
    const stored = await server().run(
      databaseUrl,
      `select status, (select sum(amount)::int from payments where order_ref = orders.id) as paid,
         (select count(*)::int from notices join payments on payment_id = payments.id where order_ref = orders.id) as notices,
         (select count(*)::int from callbacks join payments on payment_id = payments.id where order_ref = orders.id) as callbacks
         from orders`,
    );
    expect(stored).toEqual(names.map(() => ({ status: 'paid', paid: AMOUNT, notices: 2, callbacks: 2 })));
    for (const store of [a, b]) await store.close();
    // The start checks the chains of both.
    const again = await opened(await place(databaseUrl, 'c'));
    expect(await again.payments.newest(100)).toHaveLength(2 * names.length);
  });

  it('SND-6 an order that one gateway cancels while another stores its payment is paid, and one of them withdraws its push', async () => {
    const [a, b] = (await open(await database())) as [Store, Store];
    const names = Array.from({ length: 20 }, (_, i) => `o${i}`);
    for (const id of names) {
      await a.orders.startPush(push(`push ${id}`, id), order(id));
      await a.orders.confirmPush(`push ${id}`, BOX, 'shown', 3);
    }
    const done = await Promise.all(
      names.map(async (id) => {
        const [cancelled, paid] = await Promise.all([
          a.orders.cancel(id, 4),
          pay(b, `payment ${id}`, { orderRef: id }),
        ]);
        return [...(cancelled?.withdrawn ?? []), ...paid.withdrawn].map((it) => it.id);
      }),
    );
    expect(done).toEqual(names.map((id) => [`push ${id}`]));
    const statuses = (await a.orders.newest(100)).map((it) => it.status);
    expect(statuses).toEqual(names.map(() => 'paid'));
  });

  it('two transactions that wait for each other both succeed, because one of them is repeated', async () => {
    const [a, b] = (await open(await database())) as [Store, Store];
    for (const id of ['x', 'y']) await a.orders.add(order(id));
    const met = barrier(2);
    let runs = 0;
    const both = (store: Store, names: readonly [string, string]) =>
      store.within(async (tx) => {
        runs += 1;
        const [first, second] = [await tx.order(names[0]), await tx.order(names[1])];
        if (first === undefined || second === undefined) throw new Error('no order');
        await tx.settle(first, 'paid', [], 5);
        await met();
        await tx.settle(second, 'paid', [], 5);
      });
    await Promise.all([both(a, ['x', 'y']), both(b, ['y', 'x'])]);
    expect(runs).toBeGreaterThan(2);
    expect((await b.orders.newest(10)).map((it) => it.status)).toEqual(['paid', 'paid']);
  });

  it('a statement that waited at the server while others buried its run writes nothing, and neither does a later one', async () => {
    const databaseUrl = await database();
    const [a, b] = (await open(databaseUrl)) as [Store, Store];
    await a.orders.startPush(push('p', 'o'), order('o'));
    const other = new pg.Client({ connectionString: databaseUrl });
    other.on('error', () => undefined);
    await other.connect();
    onTestFinished(() => other.end());
    await other.query("begin; select 1 from pushes where id = 'p' for update");
    const waiting = a.orders.confirmPush('p', BOX, 'shown', 3).catch((error: unknown) => error);
    await eventually('the statement to wait', async () => {
      const rows = await server().run(
        databaseUrl,
        "select 1 from pg_locks where not granted and locktype <> 'advisory'",
      );
      return rows.length > 0;
    });
    expect((await sessions(databaseUrl, 'a')).count).toBe(2);
    await bury(databaseUrl, 'a');
    await other.query('rollback');
    expect(await waiting).toBeInstanceOf(Error);
    expect(String(await a.superseded)).toContain('have taken over the work of this one');
    await expect(a.orders.add(order('late'))).rejects.toThrow('have taken over the work of this one');
    await expect(a.orders.newest(1)).rejects.toThrow('have taken over the work of this one');
    expect(await b.orders.isConfirmed('p', 'accepted')).toBe(false);
    expect(await ids(b)).toEqual(['o']);
    expect((await sessions(databaseUrl, 'a')).count).toBe(0);
  });

  it('what a gateway answers of another one is on the disk, although that one has not acknowledged it, and a crash takes nothing of it', async () => {
    const databaseUrl = await database();
    const [a, b] = (await open(databaseUrl)) as [Store, Store];
    const [ofA, ofB] = [await sessions(databaseUrl, 'a'), await sessions(databaseUrl, 'b')];
    const goOn = [stopped(ofA.second), stopped(ofB.second)];
    const unacknowledged = a.orders.add(order('seen')).catch(() => undefined);
    await eventually('the commit', async () => (await server().run(databaseUrl, 'select 1 from orders')).length === 1);
    let isAnswered = false;
    const read = b.orders.newest(10).finally(() => {
      isAnswered = true;
    });
    await eventually('the end of the query', async () => {
      const done = `select 1 from pg_stat_activity where pid = ${ofB.writer} and state = 'idle' and query like '%orders%'`;
      return (await server().run(databaseUrl, done)).length === 1;
    });
    await server().run(databaseUrl, 'select 1');
    expect(isAnswered).toBe(false);
    goOn[1]?.();
    expect((await read).map(({ id }) => id)).toEqual(['seen']);
    const crashed = server().stop('SIGKILL');
    goOn[0]?.();
    await crashed;
    await server().start();
    await unacknowledged;
    await eventuallyDone('an answer', () => b.orders.newest(1));
    expect(await ids(b)).toEqual(['seen']);
  });
});
