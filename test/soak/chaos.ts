import { playChaosSeries } from '../chaos/series.ts';
import { withoutDisks } from '../support/disk.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import type { Soak } from './soak.ts';

/** A world waits for most of its time, so that more of them than cores keep a machine busy. */
const LANES_PER_CORE = 2;

/** PostgreSQL with a standby that fails in every way under a gateway that sells; see test/chaos. */
export const chaos: Soak = {
  name: 'chaos',
  unit: 'runs',
  amount: 500,
  async run({ amount, firstSeed, lanes, signal, progress }) {
    const lacks = [without(PROGRAMS.postgres), withoutDisks('memory')].filter(({ missing }) => missing);
    if (lacks.length > 0) return { figures: {}, failures: lacks.map(({ note }) => `not run:${note}`) };
    const { figures, failures } = await playChaosSeries({
      seeds: Array.from({ length: amount }, (_, index) => firstSeed + index),
      lanes: lanes * LANES_PER_CORE,
      signal,
      onProgress: (tally) => {
        progress(tally.runs, `${tally.figures.payments ?? 0} payments, ${tally.failures.length} failures`);
      },
    });
    return { figures, failures };
  },
};
