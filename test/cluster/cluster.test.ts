import { writeFile } from 'node:fs/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { seededRandom } from '../../src/lib/random.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { BROKERS } from './brokers.ts';
import { emptyReport, HELD_AGAIN_MS, type KillsReport, playKills } from './kills.ts';
import { ClusterWorld } from './world.ts';
import { rivalWrites } from './write-history.ts';

const { postgres, mosquitto, haproxy, rabbitmq, nats } = PROGRAMS;
const lacks = [postgres, mosquitto, haproxy, rabbitmq, nats].map(without);
/** The soak has others, and more of them. */
const { PAYBOX_CLUSTER_SEED = '3', PAYBOX_CLUSTER_RUNS = '4', PAYBOX_CLUSTER_BROKER } = process.env;
const QUICK_BOXES = 12;
/** A busy machine takes longer to see that a shard has a holder. */
const SLACK_MS = 5_000;
const { PAYBOX_CLUSTER_BOXES = `${QUICK_BOXES}`, PAYBOX_CLUSTER_FIGURES } = process.env;
const SEEDS = Array.from({ length: Number(PAYBOX_CLUSTER_RUNS) }, (_, i) => Number(PAYBOX_CLUSTER_SEED) + i);
/** To judge takes as long as some runs. */
const SEEDS_A_VERDICT = 5;
const RUN_MS_MAX = 120_000;

it('finds a session that writes to a shard after another one has', () => {
  const write = (backend: string, shard = 1) => ({ shard, backend });
  expect(rivalWrites([write('a'), write('a'), write('b'), write('c', 2), write('a', 2), write('b')])).toEqual([]);
  expect(rivalWrites([write('a'), write('b'), write('a')])).toEqual(['session a wrote to shard 1 after b had']);
});

describe.skipIf(lacks.some(({ missing }) => missing))(`a cluster${lacks.map(({ note }) => note).join('')}`, () => {
  it('SHA-5 sells and pays at three members as at one', async () => {
    const world = await ClusterWorld.open({ members: 3, shards: 6, accounts: 6, boxes: 12 });
    onTestFinished(() => world.close());
    await world.sell('quiet', { perAccount: 8, perSecond: 3 }, seededRandom(1));
    await world.judge();
    expect(world.tracker.problems).toEqual({ listed: [], omitted: 0 });
    expect(world.measured.answers).toEqual(new Map([['SUCCESS', 48]]));
    expect(world.measured.payments).toBeGreaterThan(10);
    expect((await world.writes()).length).toBeGreaterThan(world.measured.payments);
  }, 120_000);

  it.each(BROKERS.filter((it) => PAYBOX_CLUSTER_BROKER === undefined || it === PAYBOX_CLUSTER_BROKER))(
    'SHA-4 SHA-5 has the money right whatever dies, over %s',
    async (broker) => {
      const boxes = Number(PAYBOX_CLUSTER_BOXES);
      const world = await ClusterWorld.open({ members: 3, shards: 6, accounts: 6, boxes, broker });
      onTestFinished(() => world.close());
      const report = emptyReport();
      onTestFinished(async () => {
        if (PAYBOX_CLUSTER_FIGURES !== undefined) await writeFile(PAYBOX_CLUSTER_FIGURES, figuresOf(world, report));
      });
      for (let at = 0; at < SEEDS.length; at += SEEDS_A_VERDICT) {
        await playKills(world, SEEDS.slice(at, at + SEEDS_A_VERDICT), report);
      }
      expect(world.measured.payments).toBeGreaterThan(20);
      if (boxes <= QUICK_BOXES) expect(Math.max(0, ...report.heldAgainMs)).toBeLessThan(HELD_AGAIN_MS + SLACK_MS);
    },
    RUN_MS_MAX * (SEEDS.length + 1),
  );
});

function figuresOf({ measured }: ClusterWorld, { runs, kills, heldAgainMs }: KillsReport): string {
  const answers = [...measured.answers.values()].reduce((sum, it) => sum + it, 0);
  const figures = { runs, ...kills, pushes: answers, SUCCESS: measured.answers.get('SUCCESS') ?? 0 };
  return JSON.stringify({
    ...{ ...figures, payments: measured.payments },
    'without a holder for more than 5 s': heldAgainMs.filter((it) => it > HELD_AGAIN_MS).length,
    'longest ms without a holder': Math.round(Math.max(0, ...heldAgainMs)),
  });
}
