import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import type { Journal } from '../contract.ts';
import type { ConfiguredDisplay } from '../screen/screen.ts';
import { BoxFaults } from './box-faults.ts';
import { faultyClock } from './clock.ts';
import { faultyJournal } from './disk.ts';
import { faultyDisplay } from './display.ts';

interface Setup {
  /** The first display is the one that goes wrong. */
  displays: readonly [ConfiguredDisplay, ...ConfiguredDisplay[]];
  faults?: boolean;
}

interface Deps {
  clock: Clock;
  random: Random;
  log: Logger;
}

/** A box's displays, clock and disk, where its faults are made: what is between them knows nothing of faults. */
export interface Edges<S extends Setup, D extends Deps> {
  /** What can be ordered; undefined for a box that makes no faults, and has everything as it was given. */
  faults: BoxFaults | undefined;
  setup: S;
  deps: D;
  journal(journal: Journal): Journal;
}

export function edgesOf<S extends Setup, D extends Deps>(setup: S, deps: D): Edges<S, D> {
  if (setup.faults !== true) return { faults: undefined, setup, deps, journal: (journal) => journal };
  const { clock, log } = deps;
  log.warn('faults-allowed', { reason: 'whoever reaches the pages of this box can order faults of it' });
  const faults = new BoxFaults(deps);
  const [first, ...others] = setup.displays;
  return {
    faults,
    setup: { ...setup, displays: [faultyDisplay(first, faults, clock), ...others] },
    deps: { ...deps, clock: faultyClock(clock, faults) },
    journal: (journal) => faultyJournal(journal, faults),
  };
}
