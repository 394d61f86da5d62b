import type { Clock } from '../../../lib/clock.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Random } from '../../../lib/random.ts';
import type { Journal } from '../contract.ts';
import type { PageBranch } from '../pages/answer.ts';
import type { ConfiguredDisplay } from '../screen/screen.ts';
import { BoxFaults } from './box-faults.ts';
import { faultyClock } from './clock.ts';
import { faultyJournal } from './disk.ts';
import { faultyDisplay } from './display.ts';
import { FAULTS_PATH } from './none.ts';
import { faultsAnswer } from './routes.ts';

/** The parts of a box that faults wrap. */
interface Setup {
  /** Faults are injected into the first display only. */
  displays: readonly [ConfiguredDisplay, ...ConfiguredDisplay[]];
}

interface Deps {
  clock: Clock;
  random: Random;
  log: Logger;
}

/** Wraps a box's displays, clock and disk, so that a bench can inject faults. No other code knows of faults. */
export interface FaultInjection<S extends Setup, D extends Deps> {
  setup: S;
  deps: D;
  journal(journal: Journal): Journal;
  branch: PageBranch;
  faults: BoxFaults;
}

export function injectFaults<S extends Setup, D extends Deps>(setup: S, deps: D): FaultInjection<S, D> {
  const { clock, log } = deps;
  log.warn('faults-allowed', { reason: 'everyone who can reach the pages of this box can inject faults' });
  const faults = new BoxFaults(deps);
  const [first, ...others] = setup.displays;
  return {
    setup: { ...setup, displays: [faultyDisplay(first, faults, clock), ...others] },
    deps: { ...deps, clock: faultyClock(clock, faults) },
    journal: (journal) => faultyJournal(journal, faults),
    branch: { path: FAULTS_PATH, answer: (request) => faultsAnswer(request, faults) },
    faults,
  };
}
