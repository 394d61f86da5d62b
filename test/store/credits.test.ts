import { join } from 'node:path';
import { Kysely, Migrator } from 'kysely';
import { describe, expect, it } from 'vitest';
import { sqliteFile } from '../../src/gateway/store/engines/sqlite.ts';
import type { NewCredit } from '../../src/gateway/store/repositories/credits.ts';
import { MIGRATIONS } from '../../src/gateway/store/schema/migrations.ts';
import type { Tables } from '../../src/gateway/store/schema/tables.ts';
import type { Store } from '../../src/gateway/store/store.ts';
import { keptLog } from '../support/kept-log.ts';
import { temporaryFolder } from '../support/net.ts';
import { ENGINES } from '../support/stores.ts';
import { BOX, credit, opened, order, type Paying, pay, push, spoil, tellCredit } from './rows.ts';

const AMOUNT = 50_000;
const DAY_MS = 86_400_000;
const callback = (id: string) => ({ id, url: 'u', body: 'b' });
const told = [{ terminal_code: BOX, push_id: null, told_at_ms: null }];

/** Stores a credit that pays the order `a`, with a notice and a callback. */
const paid = (store: Store, change: Partial<NewCredit> & { id: string }, more: Paying = {}) =>
  tellCredit(store, credit(change.id, change), {
    ...{ orderRef: 'a', notices: told, callback: callback(`c ${change.id}`) },
    ...more,
  });
const counted = async (store: Store) => ({
  credits: (await store.credits.newest(100)).length,
  payments: (await store.payments.newest(100)).length,
  callbacks: (await store.callbacks.newest(100)).length,
});

const fileIn = (dataDir: string) =>
  new Kysely<Tables>({ dialect: sqliteFile(join(dataDir, 'gateway.sqlite'), keptLog().log).dialect });

describe.each(ENGINES)('credits on $name', ({ missing, places }) => {
  const place = places();

  describe.skipIf(missing)('are stored', () => {
    it('CRE-1 CRE-2 a credit is stored once with payment, notice and callback, by the key of the source or by the bank', async () => {
      const store = await opened(await place());
      await store.orders.add(order('a', { amount: AMOUNT }));
      expect(await paid(store, { id: 'x', reference: 'FT1' })).toMatchObject({ kind: 'payment', due: null });
      const again: (Partial<NewCredit> & { id: string })[] = [
        { id: 'x', reference: 'FT1' },
        { id: 'y', source_id: 'x', reference: 'FT2' },
        { id: 'y', source: 'other', source_id: '1', reference: 'FT1' },
      ];
      for (const change of again) expect(await paid(store, change)).toEqual({ kind: 'duplicate' });
      expect(await counted(store)).toEqual({ credits: 1, payments: 1, callbacks: 1 });
      const others: (Partial<NewCredit> & { id: string })[] = [
        { id: 'b', reference: 'FT1', amount: AMOUNT + 1 },
        { id: 'c', reference: 'FT1', bank_account: '2' },
        { id: 'd', reference: '' },
        { id: 'e', reference: '' },
      ];
      for (const change of others) expect(await paid(store, change)).toMatchObject({ kind: 'payment' });
      expect(await counted(store)).toEqual({ credits: 5, payments: 5, callbacks: 5 });
      expect((await store.orders.find('a'))?.status).toBe('paid');
    });

    it('CRE-2 a credit is stored once when two sources report it at the same time', async () => {
      const store = await opened(await place());
      const results = await Promise.all(
        Array.from({ length: 8 }, (_, n) =>
          paid(store, { id: 'same', source: `s${n % 2}`, source_id: `${n % 2}`, reference: 'FT1' }, { orderRef: '' }),
        ),
      );
      expect(results.map(({ kind }) => kind).toSorted()).toEqual([...Array(7).fill('duplicate'), 'payment']);
      expect(await counted(store)).toEqual({ credits: 1, payments: 1, callbacks: 1 });
    });

    it('CRE-1 a credit is not stored at all when a part of it fails', async () => {
      const store = await opened(await place());
      await expect(tellCredit(store, credit('x'), { notices: [...told, ...told] })).rejects.toThrow();
      expect(await counted(store)).toEqual({ credits: 0, payments: 0, callbacks: 0 });
      expect(await paid(store, { id: 'x' }, { orderRef: '' })).toMatchObject({ kind: 'payment' });
    });

    it('CRE-4 a credit is stored without a payment for an unknown account, and when it is too old', async () => {
      const store = await opened(await place());
      expect(await tellCredit(store, credit('x'), undefined)).toEqual({ kind: 'kept' });
      expect(await paid(store, { id: 'old', received_at_ms: 31 * DAY_MS })).toEqual({ kind: 'kept' });
      expect(await counted(store)).toEqual({ credits: 2, payments: 0, callbacks: 0 });
      expect((await store.credits.newest(9)).map((it) => [it.id, it.payment_id])).toEqual([
        ['old', null],
        ['x', null],
      ]);
    });

    it('MAT-5 a credit is stored with what is due: an open order goes on, an ended one ends, more than enough pays', async () => {
      const store = await opened(await place());
      await store.history.begin('money');
      const made = order('a', { amount: 3 * AMOUNT, created_at_ms: 1 });
      await store.orders.startPush(push('p', 'a'), made);
      await store.orders.confirmPush('p', BOX, 'shown', 3);
      const status = async () => (await store.orders.find('a'))?.status;
      const first = await paid(store, { id: '1' }, { settlement: 'open' });
      expect(first).toMatchObject({ due: { amount: 3 * AMOUNT, paid: AMOUNT }, stored: { withdrawn: [] } });
      expect(await status()).toBe('shown');
      expect(await paid(store, { id: '2' }, { settlement: 'ended' })).toMatchObject({
        due: { amount: 3 * AMOUNT, paid: 2 * AMOUNT },
        stored: { withdrawn: [{ id: 'p', terminal_code: BOX }] },
      });
      expect(await status()).toBe('underpaid');
      expect(await paid(store, { id: '3' })).toMatchObject({ due: null });
      expect(await status()).toBe('paid');
      expect(await paid(store, { id: '4' }, { settlement: 'ended' })).toMatchObject({
        due: { amount: 3 * AMOUNT, paid: 4 * AMOUNT },
      });
      expect(await status()).toBe('paid');
      expect(await store.credits.paidFor(['a', 'b'])).toEqual(new Map([['a', 4 * AMOUNT]]));
      const { notices } = await store.payments.takeUnreported(BOX, 9);
      expect(notices.map(({ due }) => due?.paid)).toEqual([AMOUNT, 2 * AMOUNT, undefined, 4 * AMOUNT]);
    });

    it('CRE-5 a late credit is stored as late, and reported so again after a restart', async () => {
      const at = await place();
      const first = await opened(at);
      await paid(first, { id: 'x', late: 1 }, { orderRef: '' });
      await first.close();
      const { notices } = await (await opened(at)).payments.takeUnreported(BOX, 9);
      expect(notices).toMatchObject([{ id: 'x', late: true, due: null, repeated: false }]);
    });

    it('CRE-5 a credit is late once it is old news where the box gets it, also without the word of the gateway', async () => {
      const store = await opened(await place());
      await paid(store, { id: 'x' }, { orderRef: '' });
      await pay(store, 't', { notices: told });
      const late = async (atMs: number) =>
        (await store.payments.takeUnreported(BOX, atMs)).notices.map((it) => [it.id, it.late]);
      const [paidAtMs, freshMs] = [5, 300_000];
      expect(await late(paidAtMs + freshMs)).toEqual([
        ['x', false],
        ['t', false],
      ]);
      expect(await late(paidAtMs + freshMs + 1)).toEqual([
        ['x', true],
        ['t', false],
      ]);
    });

    it('MSG-14 a credit is late once the gateway says that it is no news, and from then on', async () => {
      const store = await opened(await place());
      await pay(store, 't', { notices: told });
      const late = async (isNews: boolean) =>
        (await store.payments.takeUnreported(BOX, 9, () => isNews)).notices.map((it) => it.late);
      const asked = [];
      for (const isNews of [true, false, true]) asked.push(await late(isNews));
      expect(asked).toEqual([[false], [true], [true]]);
      expect(await store.payments.noticesOf(['t'])).toMatchObject([{ late: 1, reported_at_ms: null }]);
    });

    it('CRE-7 a credit is stored for 30 days, as long as its payment is there, and codes as long as their order', async () => {
      const store = await opened(await place());
      const nowMs = 100 * DAY_MS;
      const rows = { created_at_ms: nowMs - 31 * DAY_MS, updated_at_ms: nowMs - 31 * DAY_MS };
      expect(await store.orders.add(order('o', rows), { code: 'PBCODE' })).toBe(true);
      expect(await store.orders.add(order('o2', rows), { code: 'PBCODE' })).toBe(false);
      expect((await store.orders.newest(9)).map(({ id }) => id)).toEqual(['o']);
      const at = (days: number) => ({ bank_time_ms: nowMs - days * DAY_MS, received_at_ms: nowMs - days * DAY_MS });
      await paid(store, { id: 'unreported', ...at(31) }, { orderRef: '' });
      await paid(store, { id: 'done', ...at(31) }, { orderRef: '', notices: [], callback: undefined });
      await tellCredit(store, credit('nobody', at(31)), undefined);
      await paid(store, { id: 'new', ...at(29) }, { orderRef: '', notices: [], callback: undefined });
      let credits = 0;
      for await (const { kind, deleted } of store.prune(nowMs)) credits += kind === 'credits' ? deleted : 0;
      expect(credits).toBe(2);
      expect((await store.credits.newest(9)).map(({ id }) => id)).toEqual(['new', 'unreported']);
      expect(await store.orders.add(order('o3', { created_at_ms: nowMs }), { code: 'PBCODE' })).toBe(true);
    });
  });
});

it('CRE-7 STO-3 a damaged credit or code refuses the start by name', async () => {
  const changes = [
    ['credits', 'amount = amount + 1', 'damaged in credits: x'],
    ['credits', 'late = 1', 'damaged in credits: x'],
    ['order_codes', "order_ref = 'b'", 'damaged in order_codes: PBCODE'],
  ] as const;
  for (const [table, change, named] of changes) {
    const dataDir = await temporaryFolder();
    const store = await opened({ dataDir });
    await store.orders.add(order('a'), { code: 'PBCODE' });
    await paid(store, { id: 'x' }, { orderRef: '' });
    await store.close();
    spoil(join(dataDir, 'gateway.sqlite'), table, change);
    await expect(opened({ dataDir }, keptLog().log)).rejects.toThrow(named);
  }
});

it('CRE-3 CRE-2 a credit whose row was lost is no second payment', async () => {
  const dataDir = await temporaryFolder();
  const first = await opened({ dataDir });
  await paid(first, { id: 'x', reference: 'FT1' }, { orderRef: '' });
  await first.close();
  const db = fileIn(dataDir);
  await db.deleteFrom('credits').execute();
  await db.destroy();
  const store = await opened({ dataDir });
  expect(await paid(store, { id: 'x', reference: 'FT1' }, { orderRef: '' })).toEqual({ kind: 'duplicate' });
  expect(await counted(store)).toEqual({ credits: 1, payments: 1, callbacks: 1 });
});

it('CRE-1 the store of a version before sources is opened, and takes credits', async () => {
  const dataDir = await temporaryFolder();
  const db = fileIn(dataDir);
  const older = Object.fromEntries(Object.entries(MIGRATIONS).filter(([name]) => name < '012'));
  const { error } = await new Migrator({ db, provider: { getMigrations: async () => older } }).migrateToLatest();
  await db.destroy();
  expect([error, Object.keys(older).length]).toEqual([undefined, 11]);
  const store = await opened({ dataDir });
  expect(await paid(store, { id: 'x' }, { orderRef: '' })).toMatchObject({ kind: 'payment' });
});
