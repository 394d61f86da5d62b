import { describe, expect, it } from 'vitest';
import type { NewCredit } from '../../src/gateway/store/repositories/credits.ts';
import {
  isSameAccount,
  isSameMoney,
  isSameReference,
  listedId,
  spelled,
} from '../../src/gateway/store/repositories/same-credit.ts';
import type { Store } from '../../src/gateway/store/store.ts';
import { temporaryFolder } from '../support/net.ts';
import { fc } from '../support/properties.ts';
import { ENGINES } from '../support/stores.ts';
import { credit, opened, order, tellCredit } from './rows.ts';

const MAIN = '0123456789';
const [V1, V2, OTHER] = ['VQRQ1', 'VQRQ2', '999'];
const KNOWN: ReadonlyMap<string, string> = new Map([
  [V1, MAIN],
  [V2, MAIN],
]);

interface View {
  bank: string;
  virtual?: string;
}
const named = ({ bank, virtual = '' }: View) => ({ bank_account: bank, virtual_account: virtual });

describe('CRE-9', () => {
  const rows: [a: View, b: View, same: boolean][] = [
    [{ bank: MAIN }, { bank: MAIN }, true],
    [{ bank: MAIN, virtual: V1 }, { bank: MAIN }, true],
    [{ bank: MAIN, virtual: V1 }, { bank: V1 }, true],
    [{ bank: MAIN, virtual: V1 }, { bank: V1, virtual: V1 }, true],
    [{ bank: V1 }, { bank: MAIN }, true],
    [{ bank: 'X1', virtual: 'Y1' }, { bank: 'Y1' }, true],
    [{ bank: 'X1', virtual: 'Y1' }, { bank: 'X1', virtual: 'Y2' }, false],
    [{ bank: MAIN, virtual: V1 }, { bank: MAIN, virtual: V2 }, false],
    [{ bank: MAIN, virtual: V1 }, { bank: V2 }, false],
    [{ bank: V1 }, { bank: V2 }, false],
    [{ bank: V1 }, { bank: OTHER }, false],
    [{ bank: MAIN }, { bank: OTHER }, false],
    [{ bank: MAIN, virtual: V1 }, { bank: OTHER, virtual: V2 }, false],
    [{ bank: 'X1' }, { bank: 'Y1' }, false],
  ];

  it.each(rows)('CRE-9 credits of one reference and amount to %o and %o are the same: %s', (a, b, same) => {
    const mainOf = (name: string) => KNOWN.get(name);
    expect(isSameAccount(named(a), named(b), mainOf)).toBe(same);
    expect(isSameAccount(named(b), named(a), mainOf)).toBe(same);
  });

  it('CRE-2 spells a reference without what sources write otherwise', () => {
    for (const it of ['ft26.001', 'FT 26-001', 'Ft26_001', 'FT26/001']) expect(spelled(it)).toBe('FT26001');
    const rows: [a: string, b: string, same: boolean][] = [
      ['FT1.23', 'ft1-23', true],
      ['FT1.23', 'FT123', true],
      ['FT1.23', 'FT.1 23', true],
      ['FT1.23', 'FT12.3', false],
      ['FT1.23', 'FT1.24', false],
      ['.FT1', 'FT1.', false],
    ];
    for (const [a, b, same] of rows) {
      expect([a, b, isSameReference(a, b), isSameReference(b, a)]).toEqual([a, b, same, same]);
    }
  });

  const HOUR_MS = 3_600_000;
  /** A quarter to midnight in Vietnam. */
  const lateMs = Date.parse('2026-01-05T23:45:00+07:00');
  const at = (change: Partial<NewCredit>) =>
    credit('x', { source: 'a', source_id: '1', reference: 'FT1', bank_account: MAIN, bank_time_ms: lateMs, ...change });
  const pairs: [what: string, stored: Partial<NewCredit>, told: Partial<NewCredit>, same: boolean][] = [
    ['told again', {}, { reference: 'FT2', amount: 7 }, true],
    ['another id of one source', {}, { source_id: '2' }, false],
    ['another source', {}, { source: 'b', source_id: '2' }, true],
    [
      'another source, half an hour later, on the next day',
      {},
      { source: 'b', bank_time_ms: lateMs + HOUR_MS / 2 },
      true,
    ],
    [
      'another source, two hours later, on the next day',
      {},
      { source: 'b', bank_time_ms: lateMs + 2 * HOUR_MS },
      false,
    ],
    ['another source, earlier on that day', {}, { source: 'b', bank_time_ms: lateMs - 20 * HOUR_MS }, true],
    ['another source, whose time is unknown', {}, { source: 'b', bank_time_ms: 0, time_is_known: false }, true],
    ['another amount', {}, { source: 'b', amount: 1 }, false],
    [
      'the number of one bank at another account',
      { source_id: 'FT1' },
      { source_id: 'FT1', bank_account: OTHER },
      false,
    ],
    ['an id of its own at another account', {}, { bank_account: OTHER }, true],
    ['its entry in a list of other ids', {}, { source_id: listedId('9') }, true],
    ['another entry of that list', { source_id: listedId('8') }, { source_id: listedId('9') }, false],
    ['its entry has the reference', { reference: '' }, { source_id: listedId('9'), webhook: 'told' }, true],
    ['an entry without a webhook', { reference: '' }, { source_id: listedId('9'), webhook: 'missed' }, false],
    ['its webhook has no reference', { source_id: listedId('9') }, { reference: '' }, true],
    ['neither has a reference', { source_id: listedId('9'), reference: '' }, { reference: '' }, true],
    ['another minute', { reference: '' }, { source_id: listedId('9'), bank_time_ms: lateMs + 61_000 }, false],
    ['another source, no reference', { reference: '' }, { source: 'b', reference: '' }, false],
    ['no reference, another id', { reference: '' }, { source_id: '2', reference: '' }, false],
  ];

  it.each(pairs)('CRE-2 %s: %o, %o, the same: %s', (_what, stored, told, same) => {
    expect(isSameMoney(at(stored), at(told), () => undefined)).toBe(same);
  });
});

let told = 0;
/** Tells the store of money; by default it is new by its source, and gets its id as the gateway makes it. */
const tell = (store: Store, { bank, virtual = '' }: View, change: Partial<NewCredit> = {}, isPaid = true) => {
  told += 1;
  const { reference = 'FT1', amount = 50_000 } = change;
  const id = `${KNOWN.get(bank) ?? bank} ${spelled(reference)} ${amount}`;
  const other_ids = [`${id} ${virtual || bank}`, `${id} ${told}`];
  const names = { source: `s${told}`, source_id: `${told}` };
  const row = credit(id, { ...names, reference, ...named({ bank, virtual }), other_ids, ...change });
  return tellCredit(store, row, isPaid ? {} : undefined, KNOWN);
};
const results = async (store: Store, views: readonly View[]) => {
  const all: string[] = [];
  for (const view of views) all.push((await tell(store, view)).kind);
  return all;
};

describe.each(ENGINES)('credits on $name', ({ missing, places }) => {
  const place = places();

  describe.skipIf(missing)('are', () => {
    it('CRE-9 credits are one if one source names the account and another its virtual account, in whatever order', async () => {
      const views: View[] = [{ bank: MAIN }, { bank: V1 }, { bank: MAIN, virtual: V1 }];
      for (const first of [0, 1, 2]) {
        const store = await opened(await place());
        const turned = [...views.slice(first), ...views.slice(0, first)];
        expect(await results(store, [...turned, ...turned])).toEqual(['payment', ...Array(5).fill('duplicate')]);
        await store.close();
      }
    });

    it('CRE-9 credits are two if they name different virtual accounts, each once', async () => {
      const store = await opened(await place());
      const views = [{ bank: MAIN, virtual: V1 }, { bank: MAIN, virtual: V2 }, { bank: V1 }, { bank: V2 }];
      expect(await results(store, views)).toEqual(['payment', 'payment', 'duplicate', 'duplicate']);
      expect(await results(store, [{ bank: MAIN }])).toEqual(['duplicate']);
      expect(new Set((await store.payments.newest(9)).map(({ id }) => id)).size).toBe(2);
    });

    it('CRE-9 credits are one by the virtual account of a payment request', async () => {
      const store = await opened(await place());
      const request = { source: 'till', order_code: 7, virtual_account: 'VQRQ7', created_at_ms: 1, expires_at_ms: 9 };
      await store.orders.add(order('a', { bank_account: MAIN }), { request });
      expect(await results(store, [{ bank: 'VQRQ7' }, { bank: MAIN }])).toEqual(['payment', 'duplicate']);
      expect(await store.paymentRequests.accountBehind('VQRQ7')).toBe(MAIN);
      expect(await store.paymentRequests.accountBehind('')).toBeUndefined();
      expect(await store.paymentRequests.accountOf('till', 7)).toBe(MAIN);
      expect(await store.paymentRequests.accountOf('another', 7)).toBeUndefined();
    });

    it('CRE-9 credits are paid when they are reported again after their account has come into the system', async () => {
      const store = await opened(await place());
      expect((await tell(store, { bank: 'NEW' }, { source: 'bank', source_id: 'x' }, false)).kind).toBe('kept');
      expect((await tell(store, { bank: 'NEW' }, { source: 'bank', source_id: 'x' }, false)).kind).toBe('duplicate');
      expect((await tell(store, { bank: 'NEW' }, { source: 'other' })).kind).toBe('payment');
      expect((await tell(store, { bank: 'NEW' }, { source: 'bank', source_id: 'x' })).kind).toBe('duplicate');
      expect(await store.credits.newest(9)).toMatchObject([{ source: 'bank', payment_id: 'NEW FT1 50000' }]);
    });
  });
});

interface Real {
  reference: string;
  amount: number;
  account: string;
  /** By which names its tellers know it. */
  views: View[];
}

it('CRE-9 never joins two credits, and never pays one twice, whoever tells them by whatever names', async () => {
  const store = await opened({ dataDir: await temporaryFolder() });
  let run = 0;
  const viewsOf: Record<string, View[]> = {
    [V1]: [{ bank: V1 }, { bank: MAIN, virtual: V1 }, { bank: V1, virtual: V1 }],
    [V2]: [{ bank: V2 }, { bank: MAIN, virtual: V2 }],
    [OTHER]: [{ bank: OTHER }],
  };
  const real = fc
    .record({
      reference: fc.constantFrom('FT1', 'ft 2', 'MBVCB.3'),
      amount: fc.constantFrom(1, 2),
      account: fc.constantFrom(V1, V2, OTHER),
      picks: fc.array(fc.nat(9), { minLength: 1, maxLength: 3 }),
    })
    .map(({ picks, ...it }): Real => {
      const views = viewsOf[it.account] ?? [];
      return { ...it, views: picks.map((pick) => views[pick % views.length] ?? { bank: it.account }) };
    });
  const all = fc.uniqueArray(real, {
    maxLength: 6,
    selector: ({ reference, amount, account }) => JSON.stringify([reference, amount, account]),
  });
  const order = fc.infiniteStream(fc.nat(1000));
  await fc.assert(
    fc.asyncProperty(all, order, async (reals, chance) => {
      run += 1;
      const before = (await store.payments.newest(100_000)).length;
      const tellings = reals
        .flatMap((it) => it.views.map((view) => ({ ...it, view, at: chance.next().value })))
        .toSorted((a, b) => a.at - b.at);
      for (const { reference, amount, view } of tellings)
        await tell(store, view, { reference: `${run}x${reference}`, amount });
      expect((await store.payments.newest(100_000)).length - before).toBe(reals.length);
    }),
    { numRuns: 60 },
  );
});
