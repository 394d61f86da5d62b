import { describe, expect, it, onTestFinished } from 'vitest';
import { seededRandom } from '../../src/lib/random.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { ClusterWorld } from './world.ts';
import { rivalWrites } from './write-history.ts';

const { postgres, mosquitto, haproxy } = PROGRAMS;
const lacks = [postgres, mosquitto, haproxy].map(without);

it('the test of a cluster finds a session that writes to a shard after another one has', () => {
  const write = (backend: string, shard = 1) => ({ shard, backend });
  expect(rivalWrites([write('a'), write('a'), write('b'), write('c', 2), write('a', 2), write('b')])).toEqual([]);
  expect(rivalWrites([write('a'), write('b'), write('a')])).toEqual(['session a wrote to shard 1 after b had']);
});

describe.skipIf(lacks.some(({ missing }) => missing))(`a cluster${lacks.map(({ note }) => note).join('')}`, () => {
  it('SHA-5 a cluster sells and pays at three members as at one', async () => {
    const world = await ClusterWorld.open({ members: 3, shards: 6, accounts: 6, boxes: 12 });
    onTestFinished(() => world.close());
    await world.sell('quiet', { perAccount: 8, perSecond: 3 }, seededRandom(1));
    await world.judge();
    expect(world.tracker.problems).toEqual({ listed: [], omitted: 0 });
    expect(world.measured.answers).toEqual(new Map([['SUCCESS', 48]]));
    expect(world.measured.payments).toBeGreaterThan(10);
    expect((await world.writes()).length).toBeGreaterThan(world.measured.payments);
  }, 120_000);
});
