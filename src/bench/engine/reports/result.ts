import type { Scenario } from '../../scenarios/scenario.ts';
import type { SourceLine } from '../../scenarios/source.ts';
import type { TranscriptEntry } from './transcript.ts';

/** The outcome of a scenario. `missing`: a precondition was not met. */
export type Outcome = 'passed' | 'failed' | 'skipped' | 'missing';

/** The details that explain a failed step, besides its reason. */
export interface FailureDetail {
  /** The step in its file; empty for a step that comes from no file. */
  lines: readonly SourceLine[];
  /** The expected value, cut to where the two differ. Both are undefined where the reason says everything. */
  expected?: string | undefined;
  actual?: string | undefined;
  /** Further observations, for example to which box the paid order belongs. */
  notes: readonly string[];
}

/** The outcome with retries. `flaky`: it failed first, and passed when it ran again. */
export type Verdict = Outcome | 'flaky';

/** The verdict on one scenario, with its transcript. */
export interface Result {
  scenario: Pick<Scenario, 'name' | 'file' | 'about'> & Partial<Pick<Scenario, 'source'>>;
  target: string;
  seed: number;
  outcome: Outcome;
  /** The unmet expectation, or what is missing; empty when it passed. */
  reason: string;
  /** The position of the step, for example `happy-path.yaml:12`; undefined when no step is concerned. */
  where: string | undefined;
  /** The details of a failed step, which `reports/text.ts` prints; undefined unless a step failed. */
  failure?: FailureDetail | undefined;
  /** The duration in milliseconds of real time. */
  tookMs: number;
  entries: readonly TranscriptEntry[];
  /** The number of entries beyond the transcript's limit. */
  entriesOmitted: number;
  latencies: ReadonlyMap<string, readonly number[]>;
}

/** The verdict after all runs of a scenario. The transcript is that of the last run. */
export type Judged = Omit<Result, 'outcome'> & {
  outcome: Verdict;
  /** The runs before the last one, none of which passed. */
  earlier: readonly Result[];
};

/**
 * One row of a report: a scenario or a check of a judge. `differs` (checks only): a different choice where the
 * specification allows several.
 */
export type ReportRow = Omit<Result, 'outcome'> & {
  outcome: Verdict | 'differs';
  earlier?: readonly Result[];
};
