import { Transcript } from '../bench/reports/transcript.ts';
import type { TestTime } from '../bench/test-time.ts';
import { systemClock, withAbortAfter } from '../lib/clock.ts';
import { ConfigError, MissingPeerError, PayboxError, reasonOf } from '../lib/errors.ts';

/**
 * What a clause rests on. `spec`: the service specification says so, or EMVCo and NAPAS for a QR payload, or it is what
 * PROTOCOL.md says between gateway and box. `gap`: the specification says "not shown", and the clause is the default of
 * PROTOCOL.md; another choice there is reported, not failed.
 */
export type Level = 'spec' | 'gap';

/** How a check came out. `missing`: who is judged did not answer. `differs`: another choice in a gap. */
export type CheckOutcome = 'passed' | 'failed' | 'differs' | 'skipped' | 'missing';

/** What a check works with. */
export interface CheckRun<Subject> {
  readonly subject: Subject;
  /** Requests, answers and whatever else was seen. Secrets are kept out by whoever adds. */
  readonly evidence: Transcript;
  /** Aborts when the check has had its time, or the run ends. */
  readonly signal: AbortSignal;
  /** Tells a person what is under way. */
  step(title: string): void;
}

/** One question to an implementation; a clause has one or several. */
export interface Check<Subject, Need extends string = string> {
  /** The clause of PROTOCOL.md that it judges, as `TOK-4`. */
  readonly clause: string;
  /** What is so when it passes; with the clause, unlike that of any other check. */
  readonly title: string;
  readonly level: Level;
  /** What the subject may lack; the check is skipped by name then. */
  readonly needs?: readonly Need[];
  /** Milliseconds of everybody's time that it may take; by default `CHECK_TIMEOUT_MS`. */
  readonly timeoutMs?: number;
  /** Settles when the clause holds. Throws Mismatch when it does not, Unmet or ConfigError when that cannot be told. */
  run(run: CheckRun<Subject>): Promise<void>;
}

/** The verdict on one check, with its evidence. */
export interface CheckResult {
  clause: string;
  title: string;
  level: Level;
  outcome: CheckOutcome;
  /** What is not so, or why nobody knows; empty when it passed. */
  reason: string;
  /** Milliseconds of everybody's time. */
  tookMs: number;
  evidence: Pick<Transcript, 'entries' | 'omitted'>;
}

/** Something is not as the clause says. */
export class Mismatch extends PayboxError {
  constructor(message: string, cause?: unknown) {
    super('MISMATCH', message, { severity: 'fatal', cause });
    this.name = 'Mismatch';
  }
}

/** Who is judged took a request and left it without a whole answer, for longer than anybody waits. */
export class NoAnswer extends Mismatch {
  constructor(message: string, cause?: unknown) {
    super(message, cause);
    this.name = 'Silence';
  }
}

/** What the check builds on, and another check judges, is not there. */
export class PreconditionFailed extends PayboxError {
  constructor(message: string, cause?: unknown) {
    super('UNMET', message, { severity: 'fatal', cause });
    this.name = 'Unmet';
  }
}

export interface RunChecksOptions<Subject, Need extends string> {
  /** Why something is not there, with the option that would bring it; undefined for what is there. */
  lacks(need: Need): string | undefined;
  /** Another choice in a gap is a failure. */
  strict: boolean;
  time: TestTime;
  /** The text without the secrets in it; whoever is judged may say them where nobody expects it. */
  redact?(text: string): string;
  /** Ends the run; it throws the reason of the signal. */
  signal: AbortSignal;
  onBegin?(check: Check<Subject, Need>, number: number, of: number): void;
  onStep?(title: string): void;
  onEnd?(result: CheckResult): void;
}

/** What a check may take unless it says so itself. */
export const CHECK_TIMEOUT_MS = 60_000;
/** So many checks in a row without an answer, and the rest is not tried: a run ends in bounded time. */
const UNANSWERED_MAX = 3;

/** Judges a subject by each check, one after the other. Throws only the reason of its signal. */
export async function runChecks<Subject, Need extends string>(
  checks: readonly Check<Subject, Need>[],
  subject: Subject,
  options: RunChecksOptions<Subject, Need>,
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

async function judged<Subject, Need extends string>(
  check: Check<Subject, Need>,
  subject: Subject,
  options: RunChecksOptions<Subject, Need>,
): Promise<{ result: CheckResult; isAnswered: boolean }> {
  const evidence = new Transcript(options.time.clock);
  const beganMs = systemClock.monotonicMs();
  const verdict = (outcome: CheckOutcome, reason: string) => {
    const { clause, title, level } = check;
    return { clause, title, level, outcome, reason, tookMs: systemClock.monotonicMs() - beganMs, evidence };
  };
  const lacking = (check.needs ?? []).map((need) => options.lacks(need)).find((why) => why !== undefined);
  if (lacking !== undefined) return { result: verdict('skipped', lacking), isAnswered: true };
  const timeoutMs = check.timeoutMs ?? CHECK_TIMEOUT_MS;
  const step = (title: string) => options.onStep?.(title);
  try {
    await withAbortAfter(systemClock, timeoutMs, options.signal, (signal) =>
      Promise.race([check.run({ subject, evidence, signal, step }), rejectedBy(signal)]),
    );
    return { result: verdict('passed', ''), isAnswered: true };
  } catch (error) {
    options.signal.throwIfAborted();
    const reason = options.redact?.(reasonOf(error)) ?? reasonOf(error);
    evidence.add('problem', reason);
    const isAnswered = !(error instanceof MissingPeerError || error instanceof NoAnswer);
    return { result: verdict(outcomeOf(error, check.level, options.strict), reason), isAnswered };
  }
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

function outcomeOf(error: unknown, level: Level, strict: boolean): CheckOutcome {
  if (error instanceof MissingPeerError) return 'missing';
  if (error instanceof PreconditionFailed || error instanceof ConfigError) return 'skipped';
  const isChoice = error instanceof Mismatch && !(error instanceof NoAnswer);
  return isChoice && level === 'gap' && !strict ? 'differs' : 'failed';
}

function notTried({ clause, title, level }: Pick<Check<unknown>, 'clause' | 'title' | 'level'>): CheckResult {
  const reason = `not tried: the ${UNANSWERED_MAX} checks before had no answer`;
  return { clause, title, level, outcome: 'missing', reason, tookMs: 0, evidence: { entries: [], omitted: 0 } };
}

/** In place of `checks` verdicts of a run that was ended before: without it the report looks as if all were well. */
export function unfinishedChecks(checks: number): CheckResult {
  const [title, reason] = [`${checks} checks`, 'the run was ended before their verdicts'];
  const evidence = { entries: [], omitted: 0 };
  return { clause: '…', title, level: 'spec', outcome: 'missing', reason, tookMs: 0, evidence };
}

/** Worst first. */
const WEIGHTS = ['failed', 'missing', 'differs', 'passed', 'skipped'] as const satisfies readonly CheckOutcome[];

/** The verdict on a clause: that of the worst of its checks, in the order in which the clauses were judged first. */
export function groupByClause(
  results: readonly CheckResult[],
): { clause: string; outcome: CheckOutcome; checks: CheckResult[] }[] {
  return [...Map.groupBy(results, ({ clause }) => clause)].map(([clause, checks]) => {
    const outcome = WEIGHTS.find((it) => checks.some((check) => check.outcome === it)) ?? 'skipped';
    return { clause, outcome, checks };
  });
}
