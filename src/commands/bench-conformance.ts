import { type Progress, progressOn } from '../bench/reports/progress.ts';
import type { CheckOutcome, CheckResult } from '../conformance/check.ts';
import { groupByClause, unfinishedChecks } from '../conformance/check.ts';
import { conformancePage, type TargetResults } from '../conformance/page.ts';
import { type JudgeTarget, toReported } from '../conformance/suite.ts';
import { systemClock } from '../lib/clock.ts';
import { ConfigError } from '../lib/errors.ts';
import { table } from '../lib/text.ts';
import { awaitedBox, type BoxOptionsGiven } from './bench-conformance-box.ts';
import { ownBox, ownService, type ServiceOptionsGiven, serviceAt, strayOption } from './bench-conformance-suites.ts';
import { anySeed } from './bench-target.ts';
import { StopSignal } from './daemon.ts';
import { assertReports, writeReports } from './report-files.ts';

/** The options of `paybox bench run conformance`. */
export interface ConformanceOptions extends ServiceOptionsGiven, BoxOptionsGiven {
  only?: string;
  strict?: boolean;
  junit?: string;
  tap?: string;
  report?: string;
  seed?: number;
  json?: boolean;
}

const EXIT = { passed: 0, failed: 1, missing: 3, interrupted: 130 } as const;
/** Of a title in the table. */
const TITLE_CHARS_MAX = 72;
const NOWHERE = { write: () => true };

/** `paybox bench run conformance`: exit code 0 when every clause holds, 1 when one does not, 3 when nobody answered. */
export async function conformance(options: ConformanceOptions): Promise<void> {
  const seed = options.seed ?? anySeed();
  const openers = openersOf(options, seed);
  await assertReports(options);
  const stop = new StopSignal();
  const ending = new AbortController();
  void stop.received.then((signal) => ending.abort(new Error(`ended by ${signal}`)));
  const startedAtMs = systemClock.wallMs();
  const target = openers.map((it) => it.target).join(', ');
  const out = options.json === true ? NOWHERE : process.stdout;
  const progress = progressOn({ out, err: process.stderr }, { target, seed, what: 'checks' });
  const judged: TargetResults[] = [];
  try {
    await judgeAll(openers, judged, { strict: options.strict === true, seed, progress, signal: ending.signal });
  } catch (error) {
    if (!ending.signal.aborted) throw error;
    process.exitCode = EXIT.interrupted;
    nameUntold(openers, judged);
  }
  const results = judged.flatMap((it) => it.results.map((result) => toReported(result, { target: it.target, seed })));
  const page = () => conformancePage(judged, { startedAtMs });
  await writeReports(results, options, { startedAtMs, progress, page });
  print(judged, options.json === true);
  const exitCode = process.exitCode === EXIT.interrupted ? EXIT.interrupted : exitCodeOf(results);
  progress.finish(results, exitCode);
  process.exitCode = exitCode;
}

function nameUntold(openers: readonly JudgeTarget[], judged: TargetResults[]): void {
  for (const [index, { target, size, unjudged }] of openers.entries()) {
    const results = judged[index]?.results ?? [];
    if (results.length < size) {
      judged[index] = { target, unjudged, results: [...results, unfinishedChecks(size - results.length)] };
    }
  }
}

interface JudgeAllOptions {
  strict: boolean;
  seed: number;
  progress: Progress;
  signal: AbortSignal;
}

/** Adds a target with its verdicts to `judged` as they come. Throws the reason of the signal, and where nobody is. */
async function judgeAll(
  openers: readonly JudgeTarget[],
  judged: TargetResults[],
  { strict, seed, progress, signal }: JudgeAllOptions,
): Promise<void> {
  const of = openers.reduce((sum, { size }) => sum + size, 0);
  let begun = 0;
  for (const { target, unjudged, open } of openers) {
    const results: CheckResult[] = [];
    judged.push({ target, results, unjudged });
    const suite = await open(signal);
    try {
      await suite.judge({
        strict,
        signal,
        onBegin: ({ clause, title }) => {
          begun += 1;
          progress.begin(`${clause} ${title}`, begun, of);
        },
        onStep: (title) => progress.step(title),
        onEnd: (result) => {
          results.push(result);
          progress.end(toReported(result, { target, seed }));
        },
      });
    } finally {
      await suite.close();
    }
  }
}

function openersOf(options: ConformanceOptions, seed: number): JudgeTarget[] {
  const { only, service, awaitBox } = options;
  const wanted = only?.split(',').map((it) => it.trim());
  const isWanted = (clause: string) => wanted?.some((it) => clause === it || clause.startsWith(`${it}-`)) ?? true;
  if (service !== undefined && awaitBox !== undefined) {
    throw new ConfigError('--await-box and --service: expected one of them, a run judges a box or a service');
  }
  const theirs =
    awaitBox !== undefined
      ? awaitedBox(options, isWanted)
      : service !== undefined
        ? serviceAt(options, isWanted)
        : undefined;
  const stray = theirs === undefined ? strayOption(options) : undefined;
  if (stray !== undefined) throw new ConfigError(stray, 'give the address of the service to judge');
  const ours = () => [
    ownService(options, seed, isWanted),
    ownBox(options, 'mqtt', seed, isWanted),
    ownBox(options, 'http', seed, isWanted),
  ];
  const openers = theirs === undefined ? ours() : [theirs];
  const asked = openers.filter(({ size }) => size > 0);
  if (asked.length > 0) return asked;
  throw new ConfigError(`--only ${only}: expected clauses that are judged, as TOK-4, or rooms of them, as TOK,SND`);
}

function print(judged: readonly TargetResults[], isJson: boolean): void {
  for (const it of judged) {
    const { target, results, unjudged = [] } = it;
    if (isJson) {
      for (const { evidence: _evidence, ...result } of results) {
        process.stdout.write(`${JSON.stringify({ target, ...result })}\n`);
      }
      continue;
    }
    const rows = groupByClause(results).flatMap(({ clause, checks }) =>
      checks.map(({ title, outcome, level, reason }, index) => [
        index === 0 ? clause : '',
        shortened(title),
        level === 'gap' ? `${outcome} (gap)` : outcome,
        reason,
      ]),
    );
    process.stdout.write(`\n${target}\n${table(rows)}\n`);
    if (unjudged.length === 0) continue;
    process.stdout.write(`not judged\n${table(unjudged.map(({ clauses, why }) => [clauses.join(', '), why]))}\n`);
  }
}

function shortened(title: string): string {
  return title.length > TITLE_CHARS_MAX ? `${title.slice(0, TITLE_CHARS_MAX - 1)}…` : title;
}

function exitCodeOf(results: readonly { outcome: CheckOutcome }[]): number {
  if (results.some(({ outcome }) => outcome === 'failed')) return EXIT.failed;
  return results.some(({ outcome }) => outcome === 'missing') ? EXIT.missing : EXIT.passed;
}
