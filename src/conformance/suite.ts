import type { ReportRow } from '../bench/reports/reported.ts';
import type { TestTime } from '../bench/test-time.ts';
import { type Check, type CheckResult, type RunChecksOptions, runChecks } from './check.ts';
import type { NotJudged } from './unjudged.ts';

export type JudgeOptions = Pick<
  RunChecksOptions<unknown, string>,
  'strict' | 'signal' | 'onBegin' | 'onStep' | 'onEnd'
>;

/** Checks, and whom they judge. */
export interface Suite {
  /** Throws only the reason of the signal. */
  judge(options: JudgeOptions): Promise<CheckResult[]>;
  close(): Promise<void>;
}

/** Whom to judge. */
export interface JudgeTarget {
  readonly target: string;
  /** How many checks that is. */
  readonly size: number;
  /** Clauses that nobody judges, and why. */
  readonly unjudged: readonly NotJudged[];
  /** Throws MissingPeerError where nobody is. */
  open(signal: AbortSignal): Promise<Suite>;
}

/** A suite of checks of one kind of subject. */
export function createSuite<Subject, Need extends string>(
  checks: readonly Check<Subject, Need>[],
  {
    subject,
    time,
    lacks,
    masked,
    close,
  }: {
    subject: Subject;
    time: TestTime;
    lacks(need: Need): string | undefined;
    masked?(text: string): string;
    close(): Promise<void>;
  },
): Suite {
  return {
    judge: (options) => runChecks(checks, subject, { ...options, time, lacks, ...(masked && { redact: masked }) }),
    close,
  };
}

/** A verdict as reports of any run of the bench tell it. */
export function toReported(result: CheckResult, { target, seed }: { target: string; seed: number }): ReportRow {
  const { clause, title, level, outcome, reason, tookMs, evidence } = result;
  return {
    scenario: { name: `${clause} ${title}`, file: clause, about: level },
    target,
    seed,
    outcome,
    reason,
    where: undefined,
    tookMs,
    entries: evidence.entries,
    entriesOmitted: evidence.omitted,
    latencies: new Map(),
  };
}
