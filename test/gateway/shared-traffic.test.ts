import { expect, it } from 'vitest';
import type { Place, Questions } from '../../src/gateway/common/place.ts';
import { placeAlone } from '../../src/gateway/common/place.ts';
import { notedCalls, ownTraffic, trafficSince } from '../../src/gateway/common/shared-traffic.ts';
import type { World } from '../../src/gateway/common/world.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { type WirePage, wirePage } from '../../src/protocol/wire.ts';
import { worldOf } from './stage-records.ts';

type Question = Questions['traffic']['question'];

/** Gateways of a database, by the names of their runs. `silent` ones answer nothing. */
function gateways(...runs: string[]) {
  const clock = new VirtualClock();
  const worlds = new Map<string, World>();
  const silent = new Set<string>();
  const start = (run: string) => {
    const place = {
      ...placeAlone(run),
      sharing: { name: run, run, application: run, generation: '' },
      others: () => [...worlds.keys()].filter((it) => it !== run),
      ask: async (to: string, _kind: string, question: Question) => {
        const world = worlds.get(to);
        return world === undefined || silent.has(to)
          ? undefined
          : JSON.parse(JSON.stringify(ownTraffic(world, question)));
      },
    } as Place;
    worlds.set(run, worldOf({ clock, machine: clock, place }));
  };
  for (const run of runs) start(run);
  const at = (run: string) => worlds.get(run) as World;
  return {
    clock,
    silent,
    at,
    start,
    end: (run: string) => worlds.delete(run),
    /** Something happens at a gateway, one millisecond after what happened before. */
    happens: async (run: string, ...names: string[]) => {
      for (const name of names) {
        await clock.advance(1);
        at(run).trafficLog.box(name, true, run);
      }
    },
    read: async (run: string, since: string | number = '0', limit = 100) =>
      wirePage.parse(await trafficSince(at(run), String(since), limit)),
  };
}

const boxesIn = ({ entries }: WirePage) => entries.map((it) => (it.kind === 'box' ? it.box : it.kind));

it('SHA-6 the traffic log at any gateway has the entries of all, by their time; a reader may ask another one each time', async () => {
  const { happens, read } = gateways('a', 'b', 'c');
  await happens('a', 'one');
  await happens('b', 'two', 'three');
  await happens('a', 'four');
  const first = await read('a');
  expect([boxesIn(first), first.lost]).toEqual([['one', 'two', 'three', 'four'], 0]);
  await happens('c', 'five');
  await happens('b', 'six');
  const second = await read('b', first.next);
  expect([boxesIn(second), second.run]).toEqual([['five', 'six'], first.run]);
  expect(boxesIn(await read('c', second.next))).toEqual([]);
});

it('SHA-6 pages of the traffic log have each entry once, however few a page takes', async () => {
  const { happens, read } = gateways('a', 'b');
  const names = Array.from({ length: 9 }, (_, n) => `box ${n}`);
  for (const [n, name] of names.entries()) await happens(n % 3 === 0 ? 'a' : 'b', name);
  const seen: string[] = [];
  let since: string | number = 0;
  for (let page = 0; page < 5; page += 1) {
    const part = await read(page % 2 === 0 ? 'a' : 'b', since, 2);
    seen.push(...boxesIn(part));
    since = part.next;
  }
  expect(seen).toEqual(names);
});

it('SHA-6 a gateway that does not answer in time is read later, one that starts from its beginning, and one that ended no more', async () => {
  const { happens, read, silent, start, end } = gateways('a', 'b');
  await happens('b', 'one');
  const first = await read('a');
  silent.add('b');
  await happens('b', 'two');
  const second = await read('a', first.next);
  expect([boxesIn(first), boxesIn(second)]).toEqual([['one'], []]);
  silent.delete('b');
  const third = await read('a', second.next);
  expect(boxesIn(third)).toEqual(['two']);
  end('b');
  start('c');
  await happens('c', 'three');
  const fourth = await read('a', third.next);
  expect([boxesIn(fourth), String(fourth.next)]).toEqual([['three'], 'a:0,c:1']);
});

it('SHA-6 the traffic log says how many entries were dropped at any gateway', async () => {
  const { at, happens, read } = gateways('a', 'b');
  for (let n = 0; n < 20_005; n += 1) at('b').trafficLog.box('many', true, 'b');
  await happens('a', 'last');
  const first = await read('a', 0, 2_000);
  expect(first.lost).toBe(5);
  expect((await read('b', first.next, 2_000)).lost).toBe(0);
});

it('SHA-6 the noted calls are those of all gateways, newest first', async () => {
  const { at, clock } = gateways('a', 'b');
  const call = { by: null, method: 'POST', status: 400, lenient: [], warnings: [], body: '', answer: '', tookMs: 1 };
  for (const [n, run] of ['a', 'b', 'a'].entries()) {
    at(run).trafficLog.call({ ...call, path: '/api/token_generate', reason: `reason ${n}` }, true);
    await clock.advance(10);
  }
  const reasons = async (run: string) => (await notedCalls(at(run))).map((it) => (it.kind === 'call' ? it.reason : ''));
  expect([await reasons('a'), await reasons('b')]).toEqual([
    ['reason 2', 'reason 1', 'reason 0'],
    ['reason 2', 'reason 1', 'reason 0'],
  ]);
});
