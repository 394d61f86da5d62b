import { systemClock, withAbortAfter } from '../../lib/clock.ts';
import { ConfigError, MissingPeerError, PayboxError, reasonOf } from '../../lib/errors.ts';
import { Transcript, type TranscriptEntry } from '../engine/reports/transcript.ts';
import { type TestTime, waitUntilRight } from '../engine/test-time.ts';

/**
 * Source of a clause. `spec`: the service specification; EMVCo and NAPAS for a QR payload; PROTOCOL.md between gateway
 * and box. `gap`: the specification says "not shown", and the clause is a default of PROTOCOL.md. Another choice there
 * is reported, not failed, unless it is a Breach.
 */
export type Level = 'spec' | 'gap';

/**
 * `missing`: the target did not answer. `differs`: another choice in a gap, such as another code for a refusal, or a
 * deviation that the baseline of the run accepts.
 */
export type CheckOutcome = 'passed' | 'failed' | 'differs' | 'skipped' | 'missing';

/** The run of one check. */
export interface CheckRun<Subject> {
  readonly subject: Subject;
  /** Requests, answers and other observations. The code that adds one removes its secrets. */
  readonly evidence: Transcript;
  /** Aborts at the timeout of the check, or when the run ends. */
  readonly signal: AbortSignal;
  /** Shows the current step of the check. */
  step(title: string): void;
  /** Waits until `isSo` is true, on the clock of the target. Returns whether that came in time. */
  isSoon(withinMs: number, isSo: () => boolean | Promise<boolean>): Promise<boolean>;
}

/** A target that is ready for a check. */
export interface Prepared<Context> {
  context: Context;
  /** Leaves the target ready for the next check. Called at the end of a check, also when it failed. */
  tearDown?(isFailed: boolean): Promise<void>;
}

/** One test of a clause; a clause has one or several. */
export interface Check<Subject, Need extends string = string, Context = unknown> {
  /** A clause of PROTOCOL.md, as `TOK-4`. */
  readonly clause: string;
  /** True when the check passes. Clause and title together are unique. */
  readonly title: string;
  readonly level: Level;
  /** If one of these is not met, the check is skipped with the reason. */
  readonly needs: readonly Need[];
  /** In real time. */
  readonly timeoutMs: number;
  /** Prepares the target for the check. Throws PreconditionFailed if that cannot be done. */
  setUp(run: CheckRun<Subject>): Promise<Prepared<Context>>;
  /**
   * Resolves if the target follows the clause. Throws Mismatch if it does not, PreconditionFailed if that cannot be
   * judged.
   */
  run(context: Context): Promise<void>;
}

/** Makes a check. The judge throws Mismatch when the target does not follow the clause. */
type MakeCheck<Subject, Need extends string, Context> = (
  clause: string,
  title: string,
  needs: readonly Need[],
  judge: (t: Context) => Promise<void>,
  timeoutMs?: number,
) => Check<Subject, Need, Context>;

/** Returns the makers of the checks of both levels that share a preparation and a time limit. */
export function checksOf<Subject, Need extends string, Context>(
  setUp: Check<Subject, Need, Context>['setUp'],
  usualTimeoutMs = CHECK_TIMEOUT_MS,
): Record<Level, MakeCheck<Subject, Need, Context>> {
  const ofLevel =
    (level: Level): MakeCheck<Subject, Need, Context> =>
    (clause, title, needs, run, timeoutMs = usualTimeoutMs) => ({ clause, title, level, needs, timeoutMs, setUp, run });
  return { spec: ofLevel('spec'), gap: ofLevel('gap') };
}

/** The verdict on a check, without its evidence. */
export interface Finding {
  clause: string;
  title: string;
  outcome: CheckOutcome;
  /** Empty when it passed. */
  reason: string;
}

/** The verdict of one check, with its evidence. */
export interface CheckResult extends Finding {
  level: Level;
  /** In real time. */
  tookMs: number;
  evidence: Evidence;
}

/** Everything that a report shows of a check. A Transcript is one. */
interface Evidence {
  readonly entries: readonly TranscriptEntry[];
  /** Number of entries that had no room. */
  readonly omitted: number;
}

/** Evidence of a check that was not run. */
const NO_EVIDENCE: Evidence = { entries: [], omitted: 0 };

/** Says that the target does not follow the clause. */
export class Mismatch extends PayboxError {
  constructor(message: string, cause?: unknown) {
    super('MISMATCH', message, { severity: 'fatal', cause });
    this.name = 'Mismatch';
  }
}

/**
 * Says that the target accepted what must be refused, or said what is not true, for example another amount in a
 * callback. No gap of the specification allows that.
 */
export class Breach extends Mismatch {
  constructor(message: string, cause?: unknown) {
    super(message, cause);
    this.name = 'Breach';
  }
}

/** Says that the target accepted a request, but did not answer it completely in time. */
export class NoAnswer extends Mismatch {
  constructor(message: string, cause?: unknown) {
    super(message, cause);
    this.name = 'NoAnswer';
  }
}

/** Says that the check cannot judge, because something that another check judges does not work. */
export class PreconditionFailed extends PayboxError {
  constructor(message: string, cause?: unknown) {
    super('UNMET', message, { severity: 'fatal', cause });
    this.name = 'PreconditionFailed';
  }
}

/** Runs a preparation that another check judges. Throws PreconditionFailed instead of its Mismatch. */
export async function precondition<T>(what: string, prepare: () => Promise<T>): Promise<T> {
  try {
    return await prepare();
  } catch (error) {
    if (error instanceof Mismatch) throw new PreconditionFailed(`needs ${what}: ${error.message}`, error);
    throw error;
  }
}

/** Returns the answer, or undefined when a precondition of it failed. */
export async function ifKnown<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof PreconditionFailed) return undefined;
    throw error;
  }
}

/** The names of a check. */
interface Named {
  readonly clause: string;
  readonly title: string;
  readonly level: Level;
}

/** The part of a target that all its checks use. */
export interface TargetAccess<Need extends string> {
  readonly time: TestTime;
  /** Returns why a need is not met, with the option that would meet it; undefined if it is met. */
  lacks(need: Need): string | undefined;
  /** Removes secrets from a reason, because the target may repeat them in an answer. */
  redact?(text: string): string;
}

/** How checks are run, whatever the target. */
export interface RunOptions {
  /** True if another choice in a gap is a failure. */
  strict: boolean;
  /** Returns why a deviation is accepted; undefined if it is not. A failure that nobody accepted stays one. */
  accepted?(finding: Finding): string | undefined;
  /** Ends the run, which throws the signal's reason. */
  signal: AbortSignal;
  onBegin?(check: Named, number: number, of: number): void;
  onStep?(title: string): void;
  onEnd?(result: CheckResult): void;
}

export const CHECK_TIMEOUT_MS = 60_000;
/** After this many checks in a row without an answer, the others are not tried, so that a run ends in bounded time. */
const UNANSWERED_MAX = 3;

/** Runs the checks one after the other. Throws only the reason of its signal. */
export async function runChecks<Subject, Need extends string, Context>(
  checks: readonly Check<Subject, Need, Context>[],
  subject: Subject,
  options: RunOptions & TargetAccess<Need>,
): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  let unanswered = 0;
  for (const [index, check] of checks.entries()) {
    options.onBegin?.(check, index + 1, checks.length);
    const { result, isAnswered } =
      unanswered < UNANSWERED_MAX
        ? await judged(check, subject, options)
        : { result: notTried(check), isAnswered: false };
    if (result.outcome !== 'skipped') unanswered = isAnswered ? 0 : unanswered + 1;
    results.push(result);
    options.onEnd?.(result);
  }
  return results;
}

async function judged<Subject, Need extends string, Context>(
  check: Check<Subject, Need, Context>,
  subject: Subject,
  options: RunOptions & TargetAccess<Need>,
): Promise<{ result: CheckResult; isAnswered: boolean }> {
  const evidence = new Transcript(options.time.clock);
  const beganMs = systemClock.monotonicMs();
  const { clause, title, level } = check;
  const verdict = (outcome: CheckOutcome, reason: string) => {
    return { clause, title, level, outcome, reason, tookMs: systemClock.monotonicMs() - beganMs, evidence };
  };
  const lacking = check.needs.map((need) => options.lacks(need)).find((why) => why !== undefined);
  if (lacking !== undefined) return { result: verdict('skipped', lacking), isAnswered: true };
  const step = (title: string) => options.onStep?.(title);
  try {
    await withAbortAfter(systemClock, check.timeoutMs, options.signal, (signal) => {
      const isSoon: CheckRun<Subject>['isSoon'] = async (withinMs, isSo) => {
        const look = async () => ((await isSo()) ? undefined : 'not yet');
        return (await waitUntilRight(options.time, withinMs, look, signal)) === undefined;
      };
      return Promise.race([prepareAndRun(check, { subject, evidence, signal, step, isSoon }), rejectedBy(signal)]);
    });
    return { result: verdict('passed', ''), isAnswered: true };
  } catch (error) {
    options.signal.throwIfAborted();
    const reason = options.redact?.(reasonOf(error)) ?? reasonOf(error);
    evidence.add('problem', reason);
    const isAnswered = !(error instanceof MissingPeerError || error instanceof NoAnswer);
    const outcome = outcomeOf(error, level);
    const accepted = options.accepted?.({ clause, title, outcome, reason });
    if (accepted !== undefined) return { result: verdict('differs', `${accepted}: ${reason}`), isAnswered };
    return { result: verdict(outcome === 'differs' && options.strict ? 'failed' : outcome, reason), isAnswered };
  }
}

async function prepareAndRun<Subject, Need extends string, Context>(
  { setUp, run }: Check<Subject, Need, Context>,
  checkRun: CheckRun<Subject>,
): Promise<void> {
  const { context, tearDown } = await setUp(checkRun);
  try {
    await run(context);
  } catch (error) {
    await tearDown?.(true);
    throw error;
  }
  await tearDown?.(false);
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

function outcomeOf(error: unknown, level: Level): CheckOutcome {
  if (error instanceof MissingPeerError) return 'missing';
  if (error instanceof PreconditionFailed || error instanceof ConfigError) return 'skipped';
  const isChoice = error instanceof Mismatch && !(error instanceof NoAnswer || error instanceof Breach);
  return isChoice && level === 'gap' ? 'differs' : 'failed';
}

function notTried({ clause, title, level }: Named): CheckResult {
  const reason = `not tried: the ${UNANSWERED_MAX} checks before had no answer`;
  return { clause, title, level, outcome: 'missing', reason, tookMs: 0, evidence: NO_EVIDENCE };
}

/** Represents the checks that an interrupted run did not reach. Without it the report would look good. */
export function unfinishedChecks(checks: number): CheckResult {
  const [title, reason] = [`${checks} checks`, 'the run was ended before their verdicts'];
  return { clause: '…', title, level: 'spec', outcome: 'missing', reason, tookMs: 0, evidence: NO_EVIDENCE };
}

/** Worst first. */
const WEIGHTS = ['failed', 'missing', 'differs', 'passed', 'skipped'] as const satisfies readonly CheckOutcome[];

/** Groups the results by clause. The verdict of a clause is that of its worst check. */
export function groupByClause(
  results: readonly CheckResult[],
): { clause: string; outcome: CheckOutcome; checks: CheckResult[] }[] {
  return [...Map.groupBy(results, ({ clause }) => clause)].map(([clause, checks]) => {
    const outcome = WEIGHTS.find((it) => checks.some((check) => check.outcome === it)) ?? 'skipped';
    return { clause, outcome, checks };
  });
}
