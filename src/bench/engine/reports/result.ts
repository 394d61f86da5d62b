import type { Scenario } from '../../scenarios/scenario.ts';
import type { SourceLine } from '../../scenarios/source.ts';
import type { TranscriptEntry } from './transcript.ts';

/** Outcome of a scenario. `missing`: a precondition was not met. */
export type Outcome = 'passed' | 'failed' | 'skipped' | 'missing';

/** Details that explain a failed step, besides its reason. */
export interface FailureDetail {
  /** The step in its file; empty where it comes from no file. */
  lines: readonly SourceLine[];
  /** Both undefined where the reason says all; else cut to where they differ. */
  expected?: string | undefined;
  actual?: string | undefined;
  /** Further observations, as which box an order that was paid belongs to. */
  notes: readonly string[];
}

/** Outcome with retries. `flaky`: it failed first, and passed when it ran again. */
export type Verdict = Outcome | 'flaky';

/** The verdict on one scenario, with its transcript. */
export interface Result {
  scenario: Pick<Scenario, 'name' | 'file' | 'about'> & Partial<Pick<Scenario, 'source'>>;
  target: string;
  seed: number;
  outcome: Outcome;
  /** The unmet expectation, or what is missing; empty when it passed. */
  reason: string;
  /** Position of the step, for example `happy-path.yaml:12`; undefined when no step is concerned. */
  where: string | undefined;
  /** Undefined unless a step failed; `reports/failure.ts` makes lines of it. */
  failure?: FailureDetail | undefined;
  /** Milliseconds of real time. */
  tookMs: number;
  entries: readonly TranscriptEntry[];
  /** Entries beyond the transcript's limit. */
  entriesOmitted: number;
  latencies: ReadonlyMap<string, readonly number[]>;
}

/** The verdict after all runs of a scenario; the transcript is of the last one. */
export type Judged = Omit<Result, 'outcome'> & {
  outcome: Verdict;
  /** Runs before the last one, none of which passed. */
  earlier: readonly Result[];
};

/**
 * A row of a report: a scenario or a conformance check. `differs` (checks only): a different choice where the specification allows
 * several.
 */
export type ReportRow = Omit<Result, 'outcome'> & {
  outcome: Verdict | 'differs';
  earlier?: readonly Result[];
};
