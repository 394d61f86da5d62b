import type { ReportRow } from '../engine/reports/result.ts';
import {
  type Check,
  type CheckResult,
  type Finding,
  type RunOptions,
  runChecks,
  type TargetAccess,
  unfinishedChecks,
} from './check.ts';

/** Clauses, or groups such as `THR`, that no check judges, with the reason. */
export interface NotJudged {
  clauses: readonly string[];
  why: string;
}

export const THREATS_NOT_JUDGED: NotJudged = {
  clauses: ['THR'],
  why: 'a list of threats: the clauses that it names stand against them',
};

export const DIALECT_NOT_JUDGED: NotJudged = {
  clauses: ['VQD', 'DIA'],
  why: 'the public MQTT dialect, which confirms no screen: paybox judge dialect judges a box that speaks it',
};

/** An open target, with the data for its checks. */
interface OpenTarget<Subject, Need extends string> extends TargetAccess<Need> {
  subject: Subject;
  close(): Promise<void>;
}

/** A service or box, and its checks. */
interface JudgedTarget<Subject, Need extends string, Context> {
  target: string;
  checks: readonly Check<Subject, Need, Context>[];
  notJudged: readonly NotJudged[];
  /** Throws MissingPeerError when the target does not answer. */
  open(signal: AbortSignal): Promise<OpenTarget<Subject, Need>>;
}

/** Returns true if a clause is to be judged in this run. */
export type IsWanted = (clause: string) => boolean;

export interface JudgeTarget {
  readonly target: string;
  /** The number of checks. */
  readonly size: number;
  readonly notJudged: readonly NotJudged[];
  /** Opens the target, judges it and closes it. Throws MissingPeerError, or the reason of the signal. */
  judge(options: RunOptions): Promise<void>;
}

/** Returns a target with its wanted checks. */
export function judgeTarget<Subject, Need extends string, Context>(
  isWanted: IsWanted,
  { target, checks, notJudged, open }: JudgedTarget<Subject, Need, Context>,
): JudgeTarget {
  const wanted = checks.filter(({ clause }) => isWanted(clause));
  return {
    target,
    size: wanted.length,
    notJudged: notJudged
      .map(({ clauses, why }) => ({ clauses: clauses.filter(isWanted), why }))
      .filter(({ clauses }) => clauses.length > 0),
    judge: async (options) => {
      const { subject, close, ...opened } = await open(options.signal);
      try {
        await runChecks(wanted, subject, { ...options, ...opened });
      } finally {
        await close();
      }
    },
  };
}

/** A target and the results of its checks. */
export interface TargetResults {
  target: string;
  results: readonly CheckResult[];
  notJudged?: readonly NotJudged[] | undefined;
}

interface JudgeAllOptions {
  strict: boolean;
  /** Returns why a deviation of a target is accepted; undefined if it is not. */
  accepted(target: string, result: Finding): string | undefined;
  signal: AbortSignal;
  onBegin(title: string, number: number, of: number): void;
  onStep(title: string): void;
  onEnd(result: CheckResult, target: string): void;
}

/**
 * Judges one target after the other. When the signal aborts, the results name the number of missing checks. Throws
 * MissingPeerError when a target does not answer.
 */
export async function judgeAll(
  targets: readonly JudgeTarget[],
  { strict, accepted, signal, onBegin, onStep, onEnd }: JudgeAllOptions,
): Promise<TargetResults[]> {
  const of = targets.reduce((sum, { size }) => sum + size, 0);
  const all: (TargetResults & { results: CheckResult[] })[] = [];
  let begun = 0;
  for (const { target, size, notJudged, judge } of targets) {
    const results: CheckResult[] = [];
    all.push({ target, results, notJudged });
    try {
      signal.throwIfAborted();
      await judge({
        strict,
        accepted: (finding) => accepted(target, finding),
        signal,
        onBegin: ({ clause, title }) => {
          begun += 1;
          onBegin(`${clause} ${title}`, begun, of);
        },
        onStep,
        onEnd: (result) => {
          results.push(result);
          onEnd(result, target);
        },
      });
    } catch (error) {
      if (!signal.aborted) throw error;
      if (results.length < size) results.push(unfinishedChecks(size - results.length));
    }
  }
  return all;
}

/** Returns the result of a check in the format of the bench's reports. */
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
