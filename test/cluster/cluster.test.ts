import { describe, expect, it, onTestFinished } from 'vitest';
import { seededRandom } from '../../src/lib/random.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { emptyReport, playKills } from './kills.ts';
import { ClusterWorld } from './world.ts';

const lacks = [PROGRAMS.postgres, PROGRAMS.mosquitto, PROGRAMS.haproxy].map(without);
const SEEDS = [1, 2, 3, 4];

describe.skipIf(lacks.some(({ missing }) => missing))(`a cluster${lacks.map(({ note }) => note).join('')}`, () => {
  it('sells and pays at three members as at one', async () => {
    const world = await ClusterWorld.open({ members: 3, shards: 6, accounts: 6, boxes: 12 });
    onTestFinished(() => world.close());
    await world.sell('quiet', { perAccount: 8, perSecond: 3 }, seededRandom(1));
    await world.judge();
    expect(world.tracker.problems).toEqual({ listed: [], omitted: 0 });
    expect(world.measured.answers).toEqual(new Map([['SUCCESS', 48]]));
    expect(world.measured.payments).toBeGreaterThan(10);
  }, 120_000);

  it('has the money right whatever dies', async () => {
    const world = await ClusterWorld.open({ members: 3, shards: 6, accounts: 6, boxes: 12 });
    onTestFinished(() => world.close());
    const report = emptyReport();
    for (const seed of SEEDS) await playKills(world, seed, report);
    expect(world.measured.payments).toBeGreaterThan(20);
    expect(report.heldAgainMs.length).toBeGreaterThan(0);
  }, 300_000);
});
