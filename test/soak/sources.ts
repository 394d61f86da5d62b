import { playSources } from '../kill/sources.ts';
import { SOURCES_KINDS } from '../kill/sources-plan.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { playLanes } from './lanes.ts';
import type { Soak } from './soak.ts';

/** Real money of all sources, with gateway and box killed; see test/kill. */
export const sources: Soak = {
  name: 'sources',
  unit: 'runs',
  amount: 1_000,
  run: (options) => {
    const { missing } = without(PROGRAMS.postgres);
    return playLanes(
      options,
      SOURCES_KINDS.filter(({ store }) => store === undefined || !missing),
      playSources,
    );
  },
};
