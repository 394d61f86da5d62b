import type { Scenario } from '../vocabulary/scenario.ts';
import type { TranscriptEntry } from './transcript.ts';

/** How a scenario came out. `missing`: what it needs was not there. */
export type Outcome = 'passed' | 'failed' | 'skipped' | 'missing';

/** The verdict on one scenario, with its transcript. */
export interface Result {
  scenario: Pick<Scenario, 'name' | 'file' | 'about'>;
  target: string;
  seed: number;
  outcome: Outcome;
  /** What was expected and is not so, or what is missing; empty when it passed. */
  reason: string;
  /** The step, as `happy-path.yaml:12`; undefined when it is about none. */
  where: string | undefined;
  /** Milliseconds of everybody's time. */
  tookMs: number;
  entries: readonly TranscriptEntry[];
  /** Entries that there was no room for. */
  entriesOmitted: number;
  latencies: ReadonlyMap<string, readonly number[]>;
}

/**
 * What reports tell of: a scenario that was run, or a check that was made. `differs`, of a check: another choice where the
 * specification leaves one.
 */
export type ReportRow = Omit<Result, 'outcome'> & { outcome: Outcome | 'differs' };
