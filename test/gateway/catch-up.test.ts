import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Asking, createAskSource } from '../../src/gateway/money/asking.ts';
import { CatchUp, type WaitingOrders } from '../../src/gateway/money/catch-up.ts';
import { SOURCE_KINDS } from '../../src/gateway/money/sources/registry.ts';
import type { AskSource, Credit, Source } from '../../src/gateway/money/sources/source.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { seededRandom } from '../../src/lib/random.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import {
  allOf,
  cassoList,
  failing,
  listServer,
  type ProviderList,
  payosList,
  sepayList,
  tooMany,
} from '../support/provider-lists.ts';
import { bankTime, linkOf, moved, PROVIDERS, type Provider } from '../support/providers.ts';
import { ACCOUNT, BOX1, testGateway } from './harness.ts';
import { worldOf } from './stage-records.ts';

const NOW_MS = Date.parse('2026-01-05T12:00:00+07:00');
const [MINUTE_MS, HOUR_MS, DAY_MS] = [60_000, 3_600_000, 86_400_000];
const URL_OF_LIST = 'http://127.0.0.1:1';

/** Money `minutes` before noon, told by no webhook. */
const ago = (minutes: number, change: Parameters<typeof moved>[0] = {}) =>
  moved({ id: minutes, reference: `FT${minutes}`, atMs: NOW_MS - minutes * MINUTE_MS, ...change });

/** The source of a list at `url`. */
function sourceOf(list: ProviderList, url = URL_OF_LIST, clock: Clock = new VirtualClock(NOW_MS)): Source {
  const options: Record<string, unknown> = { name: 'till', ...list.options(url) };
  const source = SOURCE_KINDS.get(String(options.kind))?.open(options, { clock, random: seededRandom(1) });
  if (source === undefined) throw new Error('no such kind');
  return source;
}

/** Asks a list without a network. */
const askOf =
  (list: ProviderList): AskSource =>
  async (url, { headers = {} } = {}) => {
    const { pathname: path, searchParams: query } = new URL(url);
    const { status, headers: sent, body } = list.answer({ path, query, headers });
    return { status, headers: sent, body: Buffer.from(body) };
  };

const period = (change: object = {}) => ({
  sinceMs: NOW_MS - HOUR_MS,
  untilMs: NOW_MS,
  orders: [{ bankAccount: ACCOUNT.bankAccount, orderId: '4711' }],
  ...change,
});
const LISTS = { sepay: sepayList, casso: cassoList, payos: () => payosList() };

describe.each(Object.entries(LISTS))('the list of %s', (kind, open) => {
  it('SRC-28 the list of %s has the credits of a period, as its webhooks report them', async () => {
    const list = open();
    const money = ago(20, { virtualAccount: 'VA01' });
    list.moved.push(money, ago(21, { out: true }));
    const { reference, bankAccount, virtualAccount, amount, text, atMs: bankTimeMs } = money;
    const credit = { sourceId: expect.any(String), reference, bankAccount, virtualAccount, amount, text, bankTimeMs };
    const listed = await allOf(sourceOf(list).list?.(period(), askOf(list)));
    const more = { sepay: { listed: 'missed' }, payos: { orderCode: 4711 } }[kind] ?? {};
    expect(listed).toEqual({ credits: [{ ...credit, ...more }], unread: [] });
    // The same key as the webhook's, where both have it; else the bank's reference finds the other.
    if (kind !== 'sepay') expect(listed?.credits[0]?.sourceId).toBe(kind === 'casso' ? '20' : `${linkOf(4711)}/FT20`);
  });

  it('SRC-28 the list of %s does not hold up entries for one that cannot be read', async () => {
    const list = open();
    list.moved.push(ago(20));
    list.strange.push({ id: 3, amount: 'x' });
    const listed = await allOf(sourceOf(list).list?.(period(), askOf(list)));
    expect(listed?.credits.map((it) => it.reference)).toEqual(['FT20']);
    expect(listed?.unread).toEqual([expect.stringMatching(/item 0: .*amount/)]);
  });

  it.each([
    ['an error of the service', failing(500)],
    ['no JSON', failing(200, 'x')],
    ['another form', failing(200, '{"data":7}')],
    ['too many requests', tooMany()],
  ])('SRC-28 fails on %s', async (_what, answer) => {
    const list = open();
    list.moved.push(ago(20));
    list.first.push(answer);
    await expect(allOf(sourceOf(list).list?.(period(), askOf(list)))).rejects.toThrow(/the list/);
  });

  it('SRC-28 the list of %s says that its token is wrong, and never the token', async () => {
    const list = open();
    const other = {
      ...list,
      options: (url: string) => ({
        ...list.options(url),
        apiKey: 'wrong',
        ...(kind === 'payos' ? {} : { api: { url, token: 'wrong' } }),
      }),
    };
    const options =
      kind === 'payos'
        ? other
        : {
            ...other,
            options: (url: string) => {
              const { apiKey: _none, ...rest } = other.options(url) as Record<string, unknown>;
              return rest;
            },
          };
    await expect(allOf(sourceOf(options).list?.(period(), askOf(list)))).rejects.toThrow(
      'the list was answered with HTTP 401: Unauthorized',
    );
  });
});

describe('lists', () => {
  it.each([
    ['sepay', sepayList(10)],
    ['casso', cassoList(10)],
  ])('SRC-28 of %s are read page by page, also if a page has fewer rows than asked for', async (_kind, list) => {
    for (let minutes = 10; minutes < 45; minutes += 1) list.moved.push(ago(minutes));
    const listed = await allOf(sourceOf(list).list?.(period(), askOf(list)));
    expect(new Set(listed?.credits.map((it) => it.reference)).size).toBe(35);
    expect(list.asked).toHaveLength(4);
    // The third page of the second reading fails.
    list.first.push(
      ...[1, 2].map((page) =>
        list.answer({
          ...(list.asked[page - 1] ?? { path: '', headers: {} }),
          query: new URLSearchParams({ ...Object.fromEntries(list.asked[0]?.query ?? []), page: String(page) }),
        }),
      ),
      failing(502),
    );
    await expect(allOf(sourceOf(list).list?.(period(), askOf(list)))).rejects.toThrow('HTTP 502');
  });

  it('SRC-28 lists of SePay ask for the period, to the second', async () => {
    const list = sepayList();
    list.moved.push(ago(61), ago(60), ago(0), ago(-1));
    const listed = await allOf(sourceOf(list).list?.(period(), askOf(list)));
    expect(listed?.credits.map((it) => it.reference)).toEqual(['FT60', 'FT0']);
  });

  it('SRC-28 lists of SePay have money without a reference only if its webhook has failed for good', async () => {
    const list = sepayList();
    list.moved.push(ago(10, { reference: '' }), ago(50, { reference: '', amount: 7 }));
    const listed = await allOf(sourceOf(list).list?.(period(), askOf(list)));
    expect(listed?.credits).toMatchObject([{ amount: 7, reference: '' }]);
  });

  it('SRC-28 lists of Casso are asked for by days, and may have days alone', async () => {
    const list = cassoList();
    list.strange.push({ id: 5, tid: 'FT5', description: '', amount: 9, when: '2026-01-05', bankSubAccId: '1' });
    const listed = await allOf(sourceOf(list).list?.(period({ sinceMs: NOW_MS - 13 * HOUR_MS }), askOf(list)));
    expect(listed?.credits).toMatchObject([{ bankTimeMs: Date.parse('2026-01-05T00:00:00+07:00') }]);
    expect(list.asked[0]?.query.toString()).toContain('fromDate=2026-01-04&toDate=2026-01-05');
  });

  it('SRC-28 lists of payOS are asked for order by order, and an order that is not there is left out', async () => {
    const list = payosList();
    list.moved.push(ago(20), ago(30), ago(10, { orderCode: 4713 }));
    const orders = [1, 2, 4711, 4713].map((it) => ({ bankAccount: ACCOUNT.bankAccount, orderId: String(it) }));
    const listed = await allOf(sourceOf(list).list?.(period({ orders: [...orders, ...orders] }), askOf(list)));
    expect(listed?.credits.map((it) => it.reference)).toEqual(['FT20', 'FT30', 'FT10']);
    expect(list.asked.map((it) => it.path)).toEqual([1, 2, 4711, 4713].map((it) => `/v2/payment-requests/${it}`));
  });

  it('SRC-28 lists of payOS must fit their signature, if they have one', async () => {
    const list = payosList();
    list.moved.push(ago(20));
    const changed: AskSource = async (url, request) => {
      const answer = await askOf(list)(url, request);
      return { ...answer, body: Buffer.from(answer.body.toString().replace('"amount":50000', '"amount":50001')) };
    };
    await expect(allOf(sourceOf(list).list?.(period(), changed))).rejects.toThrow(
      'its signature does not fit checksumKey',
    );
    const unsigned = payosList(false);
    unsigned.moved.push(ago(20));
    expect((await allOf(sourceOf(unsigned).list?.(period(), askOf(unsigned)))).credits).toHaveLength(1);
  });

  it('SRC-28 lists are asked for only with what the file says', () => {
    for (const { options } of Object.values(PROVIDERS)) {
      expect(sourceOf({ ...sepayList(), options: () => options }).list).toBeUndefined();
    }
    for (const url of ['http://shop.example', 'ftp://127.0.0.1', 'https://a:b@shop.example', 'x']) {
      expect(() => sourceOf(sepayList(), url)).toThrow(/expected|address/);
    }
  });
});

/** Parts of catch-up in place of its own. */
type Change = Partial<Asking> & { clock?: VirtualClock; store?: WaitingOrders };

/** Catch-up on a virtual clock at noon, with a store in memory. */
async function caughtUp(
  list: ProviderList,
  { clock: itsClock, store: itsStore, ...change }: Change = {},
  kept = new Map<string, string>(),
) {
  const clock = new VirtualClock(NOW_MS);
  const { log, lines } = keptLog(clock);
  const received: Credit[] = [];
  const store: WaitingOrders = {
    setting: async (name, make) => {
      kept.set(name, kept.get(name) ?? make());
      return kept.get(name) ?? '';
    },
    settingsNamed: async (names) => new Map([...kept].filter(([name]) => names.includes(name))),
    replaceSetting: async (name, value) => void kept.set(name, value),
    orders: { newest: async () => [] },
    paymentRequests: { open: async () => [] },
  };
  const catchUp = new CatchUp(worldOf({ clock: itsClock ?? clock, log }), itsStore ?? store, {
    receiveCredit: async (_source, credit, isCaughtUp) => {
      expect(isCaughtUp).toBe(true);
      const isKnown = received.some((it) => it.reference === credit.reference);
      if (!isKnown) received.push(credit);
      return { result: isKnown ? 'duplicate' : 'paid', report: () => undefined };
    },
    heard: () => undefined,
    of: () => askOf(list),
    ...change,
  });
  await catchUp.add(sourceOf(list, URL_OF_LIST, clock));
  onTestFinished(() => catchUp.close());
  const status = async () => (await catchUp.status())[0];
  const start = async () => {
    catchUp.start();
    await clock.advance(0);
  };
  const references = () => received.map((it) => it.reference);
  const fromOf = (at: number) => list.asked.at(at)?.query.get('transaction_date_from');
  return { catchUp, clock, lines, references, status, start, kept, fromOf };
}

describe('catch-up', () => {
  it('SRC-27 catch-up asks at the start for the last hour, then every 15 minutes with an overlap of an hour', async () => {
    const list = sepayList();
    list.moved.push(ago(64), ago(66));
    const { start, clock, references, status, fromOf } = await caughtUp(list);
    expect(await status()).toMatchObject({ hasList: true, agreedAtMs: null, agreedUpToMs: null, found: 0 });
    await start();
    expect(references()).toEqual(['FT64']);
    expect(fromOf(-1)).toBe('2026-01-05 10:55:00');
    expect(await status()).toMatchObject({ agreedAtMs: NOW_MS, found: 1, problem: null });
    // The list got it late.
    list.moved.push(ago(45));
    await clock.advance(15 * MINUTE_MS - 1);
    expect(list.asked).toHaveLength(1);
    await clock.advance(1);
    expect(references()).toEqual(['FT64', 'FT45']);
    expect(fromOf(-1)).toBe('2026-01-05 10:55:00');
    await clock.advance(15 * MINUTE_MS);
    expect(fromOf(-1)).toBe('2026-01-05 11:10:00');
    expect(await status()).toMatchObject({ found: 2 });
  });

  it('SRC-27 catch-up leaves fresh money to its webhook, and asks again when that would be late', async () => {
    const list = sepayList();
    list.moved.push(ago(2));
    const { start, clock, references, lines } = await caughtUp(list);
    await start();
    expect(references()).toEqual([]);
    await clock.advance(3 * MINUTE_MS);
    expect(references()).toEqual([]);
    await clock.advance(1);
    expect(references()).toEqual(['FT2']);
    expect(lines.filter((it) => it.event === 'credits-caught-up')).toMatchObject([
      { level: 'warn', source: 'till', found: 1 },
    ]);
  });

  it('SRC-29 catch-up leaves the mark where it was when a page fails, and asks again after 1, 2, 4 and 8 minutes', async () => {
    const list = sepayList();
    const { start, clock, references, status, fromOf, lines } = await caughtUp(list);
    await start();
    const agreed = (await status())?.agreedUpToMs;
    list.moved.push(ago(20));
    list.first.push(failing(500), failing(200, 'x'), failing(502), failing(503), failing(500), failing(500));
    await clock.advance(15 * MINUTE_MS);
    expect(await status()).toMatchObject({ agreedUpToMs: agreed, problem: 'the list was answered with HTTP 500' });
    const waits = [1, 2, 4, 8, 15];
    for (const [i, wait] of waits.entries()) {
      expect(list.asked).toHaveLength(2 + i);
      await clock.advance(wait * MINUTE_MS - 1);
      expect(list.asked).toHaveLength(2 + i);
      await clock.advance(1);
    }
    expect(references()).toEqual([]);
    expect((await status())?.agreedUpToMs).toBe(agreed);
    await clock.advance(15 * MINUTE_MS);
    expect(references()).toEqual(['FT20']);
    expect(await status()).toMatchObject({ problem: null });
    expect(fromOf(-1)).toBe('2026-01-05 10:55:00');
    expect(lines.filter((it) => it.event === 'source-list-failed')).toHaveLength(6);
    expect(lines.filter((it) => it.event === 'source-recovered')).toHaveLength(1);
  });

  it.each([
    ['has the same page again and again', 2, 1, 'the list has no end: its pages 1 and 2 are the same'],
    ['has another page each time', 1_000, 1_000, 'the list has no end: it has more than 1000 pages'],
  ])('SRC-29 keeps what a list without an end has, which %s, and says so', async (_what, pages, found, problem) => {
    const list = sepayList();
    const page = (number: number) => {
      const one = sepayList();
      one.moved.push(ago(20 + (number % found)));
      const { status, headers, body } = one.answer(asked);
      return { status, headers, body: body.replace('"has_more":false', '"has_more":true') };
    };
    const asked = {
      path: '/v2/transactions',
      query: new URLSearchParams(),
      headers: { authorization: 'Bearer sample-api-token-of-a-test' },
    };
    list.first.push(...Array.from({ length: 1_200 }, (_, i) => page(i)));
    const { start, references, status, lines } = await caughtUp(list);
    await start();
    expect(list.asked).toHaveLength(pages);
    expect(new Set(references()).size).toBe(found);
    expect(await status()).toMatchObject({ agreedAtMs: null, problem, found });
    expect(lines.filter((it) => it.event === 'source-list-failed')).toHaveLength(1);
  });

  it('SRC-29 catch-up gives up a list that takes longer than 10 minutes, and keeps what it had', async () => {
    const list = sepayList(1);
    for (let i = 0; i < 50; i += 1) list.moved.push(ago(20 + (i % 30), { reference: `FT${i}` }));
    const clock = new VirtualClock(NOW_MS);
    const slow = await caughtUp(list, {
      clock,
      of: () => async (url, request) => {
        await clock.sleep(19_000);
        return askOf(list)(url, request);
      },
    });
    await slow.start();
    await clock.advance(11 * MINUTE_MS);
    expect(await slow.status()).toMatchObject({
      agreedAtMs: null,
      problem: 'the list has no end: it was read for 10 min',
    });
    expect(slow.references()).toHaveLength(32);
  });

  it('SRC-29 catch-up leaves the mark where it was when the store fails', async () => {
    const list = sepayList();
    list.moved.push(ago(20));
    let isFull = true;
    const result = 'paid' as const;
    const { start, clock, status } = await caughtUp(list, {
      receiveCredit: async () => {
        if (isFull) throw new Error('disk full');
        return { result, report: () => undefined };
      },
    });
    await start();
    expect(await status()).toMatchObject({ agreedAtMs: null, found: 0, problem: 'disk full' });
    isFull = false;
    await clock.advance(MINUTE_MS);
    expect(await status()).toMatchObject({ found: 1, problem: null });
  });

  it('SRC-29 catch-up goes on after a restart where it was, day by day, at most 30 days back', async () => {
    const list = sepayList();
    const mark = (agoMs: number) =>
      new Map([
        ['source-till', JSON.stringify({ agreedUpToMs: NOW_MS - agoMs, agreedAtMs: 1, found: 5, toldAtMs: 2 })],
      ]);
    list.moved.push(ago(3 * 24 * 60), ago(60), ago(20));
    const away = await caughtUp(list, {}, mark(3 * DAY_MS));
    await away.start();
    expect(away.references()).toEqual(['FT4320', 'FT60', 'FT20']);
    expect(list.asked.map((it) => it.query.get('transaction_date_from'))).toEqual(
      ['02', '03', '04', '05'].map((day) => `2026-01-${day} 11:00:00`),
    );
    expect(await away.status()).toMatchObject({ found: 8, toldAtMs: 2 });
    // A day that was read is not read again, although the next one failed.
    const other = sepayList();
    other.first.push(
      ...Array.from({ length: 2 }, () =>
        failing(200, '{"status":"success","data":[],"meta":{"pagination":{"has_more":false}}}'),
      ),
      failing(500),
    );
    const cut = await caughtUp(other, {}, mark(3 * DAY_MS));
    await cut.start();
    await cut.clock.advance(MINUTE_MS);
    expect(cut.fromOf(3)).toBe('2026-01-04 10:00:00');
    const long = sepayList();
    await (await caughtUp(long, {}, mark(90 * DAY_MS))).start();
    expect(long.asked[0]?.query.get('transaction_date_from')).toBe('2025-12-06 12:00:00');
    expect(long.asked).toHaveLength(30);
    // A clock that was ahead does not make it skip anything.
    const ahead = sepayList();
    await (await caughtUp(ahead, {}, mark(-DAY_MS))).start();
    expect(ahead.asked[0]?.query.get('transaction_date_from')).toBe('2026-01-05 11:00:00');
  });

  it('SRC-30 the gateway knows after a kill when a source last reported something, with one write a minute', async () => {
    const kept = new Map<string, string>();
    const toldAt = async () => (await (await caughtUp(sepayList(), {}, new Map(kept))).status())?.toldAtMs;
    const killed = await caughtUp(sepayList(), {}, kept);
    expect(await toldAt()).toBeNull();
    killed.catchUp.told('till');
    expect(await toldAt()).toBe(NOW_MS);
    await killed.clock.advance(MINUTE_MS - 1);
    killed.catchUp.told('till');
    expect(await toldAt()).toBe(NOW_MS);
    await killed.clock.advance(1);
    killed.catchUp.told('till');
    expect(await toldAt()).toBe(NOW_MS + MINUTE_MS);
  });

  it('SRC-27 catch-up asks a minute after something was lost', async () => {
    const list = sepayList();
    const { start, clock, catchUp } = await caughtUp(list);
    await start();
    for (let i = 0; i < 3; i += 1) catchUp.lost('till');
    catchUp.lost('another');
    await clock.advance(MINUTE_MS);
    expect(list.asked).toHaveLength(2);
    await clock.advance(15 * MINUTE_MS - 1);
    expect(list.asked).toHaveLength(2);
  });

  it('SRC-29 catch-up logs entries that cannot be read, and goes on', async () => {
    const list = sepayList();
    list.strange.push({ id: 1 });
    list.moved.push(ago(20));
    const { start, references, lines, status } = await caughtUp(list);
    await start();
    expect(references()).toEqual(['FT20']);
    expect(lines.filter((it) => it.event === 'source-entry-skipped')).toMatchObject([{ source: 'till' }]);
    expect((await status())?.problem).toBeNull();
  });

  it('SRC-28 catch-up asks payOS for the orders that wait for money and have a number', async () => {
    const list = payosList();
    const order = (order_id: string, status = 'created') => ({ order_id, status });
    const orders = [
      order('4711'),
      order('DH001'),
      order('12', 'paid'),
      order('4711'),
      order('0'),
      order('99999999999999999'),
    ];
    const newest = async () => orders as Awaited<ReturnType<WaitingOrders['orders']['newest']>>;
    const kept = {
      setting: async (_name: string, make: () => string) => make(),
      settingsNamed: async () => new Map<string, string>(),
      replaceSetting: async () => undefined,
      paymentRequests: { open: async () => [] },
    };
    const { start } = await caughtUp(list, { store: { ...kept, orders: { newest } } });
    await start();
    expect(list.asked.map((it) => it.path)).toEqual(['/v2/payment-requests/4711']);
  });
});

describe('a source is asked', () => {
  const ownPorts = new Set<number>();
  const lookup = () => () => undefined;
  /** Waits of the asking, which end at once. */
  function quick() {
    const waits: number[] = [];
    let nowMs = 0;
    const clock: Clock = {
      monotonicMs: () => nowMs,
      wallMs: () => NOW_MS,
      sleep: async (ms, signal) => {
        // Timeouts end when their request does.
        if (ms === 20_000 && signal !== undefined)
          return new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
        if (ms > 0) waits.push(ms);
        nowMs += Math.max(0, ms);
      },
    };
    return { clock, waits };
  }

  it('SRC-31 a source is asked at most twice a second, and after a 429 when it says so', async () => {
    const list = sepayList();
    const url = await listServer(list);
    const { clock, waits } = quick();
    const ask = createAskSource(clock, { ownPorts, lookup });
    list.first.push(tooMany('7'), tooMany(new Date(NOW_MS + 9_000).toUTCString()), tooMany(), tooMany('x'));
    const headers = { authorization: 'Bearer sample-api-token-of-a-test' };
    expect((await ask(`${url}/v2/transactions`, { headers })).status).toBe(200);
    expect(waits).toEqual([7000, 9000, 5000, 5000]);
    expect((await ask(`${url}/v2/transactions`, { headers })).status).toBe(200);
    expect(waits.at(-1)).toBe(500);
    list.first.push(...Array.from({ length: 5 }, () => tooMany('99')));
    expect((await ask(`${url}/v2/transactions`, { headers })).status).toBe(429);
    expect(list.asked).toHaveLength(11);
  });

  it('SRC-31 a source is asked at no link-local, metadata or own address, and no redirect is followed', async () => {
    const list = sepayList();
    const url = await listServer(list);
    list.first.push({ status: 302, headers: { location: `${url}/secret` }, body: '' });
    const { clock } = quick();
    const ask = createAskSource(clock, { ownPorts, lookup });
    expect(
      (await ask(`${url}/v2/transactions`, { headers: { authorization: 'Bearer sample-api-token-of-a-test' } })).status,
    ).toBe(302);
    expect(list.asked).toHaveLength(1);
    ownPorts.add(Number(new URL(url).port));
    for (const to of ['http://169.254.169.254/', 'http://[fe80::1]/', 'http://100.100.100.200/', url]) {
      await expect(ask(to)).rejects.toThrow('is not allowed');
    }
    const rebound = createAskSource(clock, {
      ownPorts: new Set(),
      lookup: () => (_host, _options, callback) => callback(null, [{ address: '169.254.169.254', family: 4 }]),
    });
    await expect(rebound('http://api.example/')).rejects.toThrow('is not allowed');
  });

  it('SRC-31 a source is asked until the gateway stops', async () => {
    const server = createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      server.close();
      server.closeAllConnections();
    });
    const closing = new AbortController();
    const ask = createAskSource(systemClock, { ownPorts: new Set(), lookup });
    const { signal } = closing;
    const asked = ask(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { signal });
    const waiting = expect(asked).rejects.toThrow('the gateway is stopping');
    await eventually('a connection', async () => {
      const count = await new Promise((resolve) => server.getConnections((_error, count) => resolve(count)));
      return count === 1;
    });
    closing.abort(new Error('the gateway is stopping'));
    await waiting;
    await expect(ask('http://127.0.0.1:1/', { signal })).rejects.toThrow('the gateway is stopping');
  });
});

describe('a gateway', () => {
  it('SRC-27 SRC-30 a gateway finds at its start what no webhook reported, reports it late, and knows its webhook then', async () => {
    const list = sepayList();
    const url = await listServer(list);
    const agoMs = Date.now() - 10 * MINUTE_MS;
    const money = moved({ id: 77, atMs: agoMs - (agoMs % 1000), bankAccount: ACCOUNT.bankAccount, text: 'DH001 ck' });
    list.moved.push(money);
    const source = { name: 'till', ...list.options(url) };
    const gateway = await testGateway({ config: { sources: [source] } });
    const sources = () => gateway.mock('/sources');
    await eventually('the credit', async () => (await sources())[0]?.found === 1);
    expect(await sources()).toMatchObject([
      { name: 'till', kind: 'sepay', list: true, found: 1, lastWebhook: null, problem: null },
    ]);
    expect(await gateway.mock('/payments')).toMatchObject([
      { amount: 50_000, bankAccount: ACCOUNT.bankAccount, content: money.text },
    ]);
    expect(gateway.logged('credit-received')).toMatchObject([{ source: 'till', late: true }]);
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
    const { transactionId, orderId, amount } = await box.next('payment');
    await box.send({ type: 'paid', transactionId, orderId, amount, recorded: true }, transactionId);
    await eventually('its line', () => gateway.logged('payment-listed').length === 1);
    expect(gateway.logged('payment-announced')).toEqual([]);
    const [payment] = await gateway.mock<{ boxes: { terminalCode: string; late: boolean }[] }[]>('/payments');
    expect(payment?.boxes.find((it) => it.terminalCode === BOX1.terminalCode)).toMatchObject({ late: true });
    const call = PROVIDERS['sepay signed']?.call(PROVIDERS['sepay signed'].body(money), { nowMs: Date.now() });
    const told = await fetch(`${gateway.origin}/hooks/till`, {
      method: 'POST',
      headers: call?.headers ?? {},
      body: call?.body ?? '',
    });
    expect([told.status, await told.json()]).toEqual([200, { success: true }]);
    expect(await gateway.mock('/payments')).toHaveLength(1);
    const [shown] = await sources();
    expect(shown).toMatchObject({
      lastWebhook: expect.stringMatching(/Z$/),
      lastCatchUp: expect.stringMatching(/Z$/),
      found: 1,
    });
    expect(JSON.stringify(shown)).not.toContain('sample');
  });
});

it('SRC-28 CRE-2 a gateway knows money in a list whose webhook had no reference, and two of them are two', async () => {
  const list = sepayList();
  const source = { name: 'till', ...list.options(await listServer(list)) };
  const dataDir = await temporaryFolder();
  const agoMs = Date.now() - 10 * MINUTE_MS;
  const money = moved({ id: 77, atMs: agoMs - (agoMs % 1000), bankAccount: ACCOUNT.bankAccount, reference: '' });
  const gateway = await testGateway({ dataDir, config: { sources: [source] } });
  const { call, body } = PROVIDERS['sepay signed'] as Provider;
  const { headers, body: sent } = call(body(money), { nowMs: Date.now() });
  expect((await fetch(`${gateway.origin}/hooks/till`, { method: 'POST', headers, body: sent })).status).toBe(200);
  await gateway.close();
  const entry = { transaction_date: bankTime(money.atMs), account_number: money.bankAccount, transfer_type: 'in' };
  const entries = [
    { reference_number: 'FT1', webhook_success: 1 },
    { reference_number: 'FT2', webhook_success: 0 },
    { reference_number: 'FT2', webhook_success: 0 },
  ];
  list.strange.push(...entries.map((it, i) => ({ ...entry, id: `list-${i}`, amount_in: money.amount, ...it })));
  const again = await testGateway({ dataDir, config: { sources: [source] } });
  await eventually('the list', async () => (await again.mock('/sources'))[0]?.found === 2);
  expect((await again.mock('/credits')).map(({ sourceId }) => sourceId)).toEqual(['list list-2', 'list list-1', '77']);
});
