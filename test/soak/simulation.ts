import { GatewayDisk } from '../simulation/gateway-disk.ts';
import { simulate } from '../simulation/simulation.ts';
import { run } from '../simulation/twin.ts';
import { playSeeds } from './seeds.ts';
import type { Soak } from './soak.ts';

const STEPS = 100_000;

/** Stops programs at each of their writes; see test/simulation. */
export const twin: Soak = {
  name: 'twin',
  unit: 'sessions',
  amount: 2_000,
  run: async (options) => {
    const disk = await GatewayDisk.make();
    return playSeeds(options, async (seed) => ({ ...(await run({ sessions: 1, firstSeed: seed }, disk)) }));
  },
};

/** Gateway and boxes with a virtual clock and a faulty network; see test/simulation. */
export const simulation: Soak = {
  name: 'simulation',
  unit: `worlds of ${STEPS} steps`,
  amount: 100,
  run: async (options) => {
    const disk = await GatewayDisk.make();
    return playSeeds(options, async (seed) => {
      const { steps, virtualSeconds, payments } = await simulate(seed, STEPS, disk);
      return { steps, 'virtual seconds': virtualSeconds, payments };
    });
  },
};
