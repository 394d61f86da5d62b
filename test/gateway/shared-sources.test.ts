import { expect, it, onTestFinished } from 'vitest';
import { CatchUp } from '../../src/gateway/money/catch-up.ts';
import type { Listed, Source } from '../../src/gateway/money/sources/source.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { opened } from '../store/rows.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { SharedPlaces } from './shared-places.ts';
import { only, worldOf } from './stage-records.ts';

const NOW_MS = Date.parse('2026-01-05T12:00:00Z');
const MINUTE_MS = 60_000;

/** Two gateways with one source: which of them has asked for its list, from when on. */
async function twoGateways() {
  const clock = new VirtualClock(NOW_MS);
  const store = await opened({ dataDir: await temporaryFolder() });
  const places = new SharedPlaces();
  const asked: { run: string; sinceMs: number }[] = [];
  let failure: Error | undefined;
  const gatewayOf = async (run: string) => {
    const source = only<Source>({
      name: 'till',
      kind: 'sepay',
      isAskedByOrder: undefined,
      async *list({ sinceMs }: { sinceMs: number }): AsyncGenerator<Listed> {
        asked.push({ run, sinceMs });
        if (failure !== undefined) throw failure;
        yield { credits: [], unread: [] };
      },
    });
    const catchUp = new CatchUp(worldOf({ clock, place: places.join(run) }), store, {
      receiveCredit: async () => ({ result: 'paid', report: () => undefined }),
      heard: () => undefined,
      of: () => async () => Promise.reject(new Error('nobody is asked')),
    });
    await catchUp.add(source);
    onTestFinished(() => catchUp.close());
    return catchUp;
  };
  const [a, b] = [await gatewayOf('a'), await gatewayOf('b')];
  const fail = (error: Error | undefined) => {
    failure = error;
  };
  const runs = () => asked.map((it) => it.run);
  return { a, b, clock, places, asked, runs, fail };
}

it('SRC-27 SRC-29 one of two gateways asks a source, and the other goes on from its agreement when it ends', async () => {
  const { a, b, clock, places, asked, runs } = await twoGateways();
  a.start();
  await eventually('the first list', async () => (await b.status())[0]?.agreedAtMs === NOW_MS);
  b.start();
  await eventually('the wait', () => clock.sleeping().includes(1_000));
  expect(runs()).toEqual(['a']);
  await clock.advance(15 * MINUTE_MS);
  await eventually('the second list', async () => (await b.status())[0]?.agreedAtMs === NOW_MS + 15 * MINUTE_MS);
  await a.close();
  places.end('a');
  await clock.advance(1_000);
  await eventually('the list that another has asked for', () => runs().length === 3);
  expect(runs()).toEqual(['a', 'a', 'b']);
  // It asks with an overlap of an hour before what the other gateway had agreed on.
  expect(asked[2]?.sinceMs).toBe((asked[1]?.sinceMs ?? 0) + 15 * MINUTE_MS);
});

it('SRC-30 any gateway shows the last agreement with a source, its problem, and its last webhook', async () => {
  const { a, b, clock, fail } = await twoGateways();
  fail(new Error('HTTP 500'));
  for (const it of [a, b]) it.start();
  await eventually('the problem', async () => (await b.status())[0]?.problem === 'HTTP 500');
  b.told('till');
  await eventually('the webhook', async () => (await a.status())[0]?.toldAtMs === NOW_MS);
  fail(undefined);
  await clock.advance(MINUTE_MS);
  await eventually('the list', async () => (await b.status())[0]?.problem === null);
  await b.close();
  expect((await a.status())[0]).toMatchObject({ agreedAtMs: NOW_MS + MINUTE_MS, problem: null, toldAtMs: NOW_MS });
  expect(await b.status()).toEqual(await a.status());
});

it('SRC-27 the gateway that asks a source does so soon when another one could not store a credit', async () => {
  const { a, b, clock, places, runs } = await twoGateways();
  a.start();
  await eventually('the first list', () => clock.sleeping().includes(15 * MINUTE_MS));
  for (let i = 0; i < 3; i += 1) b.lost('till');
  expect(places.told).toEqual([{ about: 'credit-lost', source: 'till' }]);
  a.lostElsewhere('till');
  a.lost('till');
  expect(places.told).toHaveLength(1);
  await clock.advance(MINUTE_MS);
  await eventually('the second list', () => runs().length === 2);
  expect(runs()).toEqual(['a', 'a']);
});
