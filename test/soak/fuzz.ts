import { run } from '../fuzz/run.ts';
import type { Soak } from './soak.ts';

/** Invalid inputs for every decoder; see test/fuzz. */
export const fuzz: Soak = {
  name: 'fuzz',
  unit: 'inputs',
  amount: 1_000_000,
  run: async ({ amount, firstSeed, progress }) => {
    let inputs = 0;
    const { reports, failures } = await run({
      inputs: amount,
      seed: firstSeed,
      onProgress: (report) => {
        inputs += report.inputs;
        progress(inputs, report.name);
      },
    });
    return {
      figures: {
        targets: reports.length,
        inputs,
        taken: reports.reduce((sum, { taken }) => sum + taken, 0),
        refused: reports.reduce((sum, { refused }) => sum + refused, 0),
      },
      failures: failures.map((failure) => `seed ${firstSeed}: ${JSON.stringify(failure)}`),
    };
  },
};
