import type { Clock } from '../../../lib/clock.ts';
import { PayboxError } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Random } from '../../../lib/random.ts';
import type { Journal } from '../contract.ts';
import type { PageBranch } from '../pages/answer.ts';
import type { ConfiguredDisplay } from '../screen/screen.ts';
import { BoxFaults } from './box-faults.ts';
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

const AHEAD_MS = 2 * 3_600_000;

/** Returns a clock whose calendar runs ahead while the fault box-clock is active. Durations stay correct. */
function faultyClock(clock: Clock, faults: BoxFaults): Clock {
  return {
    monotonicMs: () => clock.monotonicMs(),
    wallMs: () => clock.wallMs() + (faults.isThere('box-clock') ? AHEAD_MS : 0),
    sleep: (ms, signal) => clock.sleep(ms, signal),
  };
}

const REASON = 'the disk is full by the fault disk-full';

/** Returns a journal that cannot be written while the fault disk-full is active. Reading still works. */
function faultyJournal(journal: Journal, faults: BoxFaults): Journal {
  let isRefused = false;
  return {
    load: () => journal.load(),
    append: async (entries) => {
      isRefused = faults.happens('disk-full') !== undefined;
      if (isRefused) {
        throw new PayboxError('STORAGE_FAULT', `the journal cannot be written: ${REASON}`, {
          severity: 'retryable',
          fix: 'wait for the end of the fault, or end it with DELETE /_mock/faults',
        });
      }
      await journal.append(entries);
    },
    reopen: () => journal.reopen(),
    status: () => (isRefused ? { ...journal.status(), ok: false, reason: REASON } : journal.status()),
    close: () => journal.close(),
  };
}
