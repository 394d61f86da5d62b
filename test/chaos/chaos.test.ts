import { describe, expect, it } from 'vitest';
import { withoutDisks } from '../support/disk.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { FAULT_KINDS, SEEDS_OF_ALL_KINDS } from './plan.ts';
import { playChaosSeries } from './series.ts';

const lacks = [without(PROGRAMS.postgres), withoutDisks('memory')];
/** One short run; `npm run test:chaos` has 40. */
const { PAYBOX_CHAOS_SEED = '2', PAYBOX_CHAOS_RUNS = '1', PAYBOX_CHAOS_LANES = '1' } = process.env;
const RUNS = Number(PAYBOX_CHAOS_RUNS);
const FIRST = Number(PAYBOX_CHAOS_SEED);
/** A run may take so long with a hang of 20 s, and with all the patience that it has. */
const RUN_MS_MAX = 180_000;

describe.skipIf(lacks.some(({ missing }) => missing))(`PostgreSQL${lacks.map(({ note }) => note).join('')}`, () => {
  it(
    'MSG-7 STO-3 a gateway loses no acknowledged payment in silence, whatever faults its PostgreSQL has',
    async () => {
      const seeds = Array.from({ length: RUNS }, (_, index) => FIRST + index);
      const { failures, figures, runs } = await playChaosSeries({ seeds, lanes: Number(PAYBOX_CHAOS_LANES) });
      process.stdout.write(`${summary(figures)}\n`);
      expect(failures.join('\n\n')).toBe('');
      expect(runs).toBe(RUNS);
      expect(figures.acknowledged).toBeGreaterThan(5 * RUNS);
      if (RUNS >= SEEDS_OF_ALL_KINDS) expect(FAULT_KINDS.filter((it) => figures[it] === undefined)).toEqual([]);
    },
    RUN_MS_MAX * Math.max(1, RUNS / 3),
  );
});

function summary(figures: Readonly<Record<string, number>>): string {
  return Object.entries(figures)
    .map(([name, figure]) => `${name} ${figure}`)
    .join('; ');
}
