import { writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { PROGRAMS, without } from '../support/programs.ts';
import { BROKERS } from './brokers.ts';
import { emptyReport, type KillsReport, playKills, SERVED_AGAIN_MS } from './kills.ts';
import { ClusterWorld } from './world.ts';

const { postgres, mosquitto, haproxy, rabbitmq, nats } = PROGRAMS;
const lacks = [postgres, mosquitto, haproxy, rabbitmq, nats].map(without);
/** `npm run test:cluster` and the soak have others, and more of them. */
const { PAYBOX_CLUSTER_SEED = '3', PAYBOX_CLUSTER_RUNS = '2', PAYBOX_CLUSTER_BOXES = '12' } = process.env;
const { PAYBOX_CLUSTER_FIGURES } = process.env;
/** Three worlds on one machine take longer. */
const SLACK_MS = 25_000;
const RUNS = Number(PAYBOX_CLUSTER_RUNS);
/** To judge takes as long as some runs. */
const SEEDS_A_VERDICT = 20;
const RUN_MS_MAX = 120_000;

describe.skipIf(lacks.some(({ missing }) => missing))(
  `gateways of one database${lacks.map(({ note }) => note).join('')}`,
  () => {
    it.concurrent.for(BROKERS)(
      'SHA-4 SHA-5 has the money right whatever dies, over %s',
      { timeout: RUN_MS_MAX * (RUNS + 1) },
      async (broker, { onTestFinished }) => {
        const boxes = Number(PAYBOX_CLUSTER_BOXES);
        const world = await ClusterWorld.open({ gateways: 3, accounts: 6, boxes, broker });
        onTestFinished(() => world.close());
        const report = emptyReport();
        onTestFinished(async () => {
          if (PAYBOX_CLUSTER_FIGURES !== undefined) {
            await writeFile(`${PAYBOX_CLUSTER_FIGURES}.${broker}`, figuresOf(world, report));
          }
        });
        // Others over each broker.
        const first = Number(PAYBOX_CLUSTER_SEED) + BROKERS.indexOf(broker) * RUNS;
        const seeds = Array.from({ length: RUNS }, (_, i) => first + i);
        for (let at = 0; at < RUNS; at += SEEDS_A_VERDICT) {
          await playKills(world, seeds.slice(at, at + SEEDS_A_VERDICT), report);
        }
        expect(world.measured.payments).toBeGreaterThan(10);
        // The figures of a soak, beside much else, say how long it took.
        if (PAYBOX_CLUSTER_FIGURES === undefined) {
          for (const how of ['killed', 'stopped'] as const) {
            expect(Math.max(0, ...report.servedAgainMs[how])).toBeLessThan(SERVED_AGAIN_MS[how] + SLACK_MS);
          }
        }
      },
    );
  },
);

function figuresOf({ measured }: ClusterWorld, { runs, kills, servedAgainMs }: KillsReport): string {
  const answers = [...measured.answers.values()].reduce((sum, it) => sum + it, 0);
  const figures = { runs, ...kills, pushes: answers, SUCCESS: 0, ...Object.fromEntries(measured.answers) };
  return JSON.stringify({
    ...{ ...figures, payments: measured.payments },
    'kills after which a box waited for more than 5 s': servedAgainMs.killed.filter((it) => it > SERVED_AGAIN_MS.killed)
      .length,
    'stops after which a box waited for more than 10 s': servedAgainMs.stopped.filter(
      (it) => it > SERVED_AGAIN_MS.stopped,
    ).length,
    'longest ms until every box was served after a kill': Math.round(Math.max(0, ...servedAgainMs.killed)),
    'longest ms until every box was served after a stop': Math.round(Math.max(0, ...servedAgainMs.stopped)),
  });
}
