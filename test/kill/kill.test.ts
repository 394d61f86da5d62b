import { describe, expect, it } from 'vitest';
import { PROGRAMS, without } from '../support/programs.ts';
import { playSeries, type Tally } from './series.ts';

const RUNS = 200;
const FIRST_SEED = 1;
const LANES = 4;
const TIMEOUT_MS = 900_000;

const { missing, note } = without(PROGRAMS.mosquitto);

/** All runs, or the one that a failure named. */
function seedsToPlay(): number[] {
  const only = process.env.PAYBOX_KILL_SEED;
  return only === undefined ? Array.from({ length: RUNS }, (_, index) => FIRST_SEED + index) : [Number(only)];
}

function summary({ runs, kills, pushes, payments, silent, unanswered }: Tally): string {
  return (
    `${runs} runs; killed: agent ${kills.agent}, gateway ${kills.gateway}, broker ${kills.broker} times; ` +
    `${pushes} pushes and ${payments} payments checked, ${unanswered} requests unanswered, ${silent} payments shown but not spoken\n`
  );
}

describe.skipIf(missing)(`real programs, killed${note}`, () => {
  it(
    'MSG-7 no payment is lost or announced twice, and no QR outlives its time, whichever program is killed when',
    async () => {
      const seeds = seedsToPlay();
      const tally = await playSeries({ seeds, lanes: Math.min(LANES, seeds.length) });
      process.stdout.write(summary(tally));
      expect(tally.failures.join('\n\n')).toBe('');
      expect(tally.runs).toBe(seeds.length);
      expect(tally.payments).toBeGreaterThanOrEqual(seeds.length / 2);
      expect(tally.silent).toBeLessThanOrEqual(tally.kills.agent);
    },
    TIMEOUT_MS,
  );
});
