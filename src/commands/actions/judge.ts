import { progressOn } from '../../bench/engine/reports/progress.ts';
import { Baseline } from '../../bench/judges/baseline.ts';
import { BOX_CHECKS } from '../../bench/judges/box/checks/all.ts';
import { groupByClause } from '../../bench/judges/check.ts';
import { DIALECT_CHECKS } from '../../bench/judges/dialect/checks/all.ts';
import { conformancePage } from '../../bench/judges/page.ts';
import { SERVICE_CHECKS } from '../../bench/judges/service/checks/all.ts';
import { type IsWanted, type JudgeTarget, judgeAll, type TargetResults, toReported } from '../../bench/judges/suite.ts';
import { systemClock } from '../../lib/clock.ts';
import { ConfigError } from '../../lib/errors.ts';
import { table } from '../../lib/text.ts';
import { trustAuthorityIn } from '../shared/authority.ts';
import { shareGlyphs } from '../shared/glyph-cache.ts';
import { remark, say } from '../shared/output.ts';
import { assertOut, assertReports, finishRun, writeOut } from '../shared/report-files.ts';
import { StopSignal } from '../shared/stop-signal.ts';
import { anySeed } from './bench-target.ts';

/** Options of each `paybox judge` command. */
export interface RunOptions {
  /** The CA of the certificate of a service, or of the pages of a box. */
  ca?: string;
  slow?: boolean;
  only?: string;
  strict?: boolean;
  /** A file of accepted deviations. */
  baseline?: string;
  updateBaseline?: boolean;
  junit?: string;
  tap?: string;
  report?: string;
  seed?: number;
  json?: boolean;
}

/** The judges, by the names of their commands. */
const JUDGES = { service: SERVICE_CHECKS, box: BOX_CHECKS, dialect: DIALECT_CHECKS };
type JudgeName = keyof typeof JUDGES;

/** Length limit of a title in the table. */
const TITLE_CHARS_MAX = 72;
const NOWHERE = { write: () => true };

/**
 * Runs a judge on its targets. The exit code is 0 when every clause holds, 1 when one is broken, 3 when no peer
 * answered.
 */
export async function runJudge(
  name: JudgeName,
  options: RunOptions,
  targetsOf: (isWanted: IsWanted, seed: number) => JudgeTarget[],
): Promise<void> {
  shareGlyphs();
  trustAuthorityIn(options);
  const seed = options.seed ?? anySeed();
  const isWanted = isWantedBy(options);
  const targets = targetsOf(isWanted, seed).filter(({ size }) => size > 0);
  if (targets.length === 0) throw nothingToJudge(name, options, isWanted);
  await assertReports(options);
  const baseline = await baselineFrom(options);
  const signal = new StopSignal().aborting();
  const startedAtMs = systemClock.wallMs();
  const target = targets.map((it) => it.target).join(', ');
  const out = options.json === true ? NOWHERE : process.stdout;
  const progress = progressOn({ out, err: process.stderr }, { target, seed, what: 'checks' });
  const all = await judgeAll(targets, {
    strict: options.strict === true,
    accepted: (judged, finding) => baseline?.accepted(judged, finding),
    signal,
    onBegin: (title, number, of) => progress.begin(title, number, of),
    onStep: (title) => progress.step(title),
    onEnd: (result, judged) => progress.end(toReported(result, { target: judged, seed })),
  });
  const results = all.flatMap((it) => it.results.map((result) => toReported(result, { target: it.target, seed })));
  if (baseline !== undefined && options.updateBaseline === true && !signal.aborted) {
    await writeOut('--baseline', baseline.file, baseline.text());
  }
  for (const { target: judged, clause, title } of baseline?.outdated(all) ?? []) {
    remark(`${baseline?.file} accepts what ${judged} does right by now: ${clause} ${title}`);
  }
  const page = () => conformancePage(all, { startedAtMs });
  const print = () => all.forEach(options.json === true ? printJson : printTable);
  await finishRun(results, options, { startedAtMs, progress, isInterrupted: signal.aborted, page, print });
}

/**
 * Returns the baseline of a run: read, or recorded for `--update-baseline`. Throws ConfigError that names the option.
 */
async function baselineFrom({ baseline, updateBaseline = false }: RunOptions): Promise<Baseline | undefined> {
  if (baseline === undefined && updateBaseline) {
    throw new ConfigError('--update-baseline: expected --baseline FILE beside it, the file to write');
  }
  if (baseline === undefined) return undefined;
  if (!updateBaseline) return Baseline.read(baseline);
  await assertOut('--baseline', baseline);
  return Baseline.recording(baseline);
}

function isWantedBy({ only }: RunOptions): IsWanted {
  const wanted = only?.split(',').map((it) => it.trim());
  return (clause) => wanted?.some((it) => clause === it || clause.startsWith(`${it}-`)) ?? true;
}

function nothingToJudge(name: JudgeName, { only }: RunOptions, isWanted: IsWanted): ConfigError {
  const others = (Object.keys(JUDGES) as JudgeName[]).filter((it) => it !== name);
  const judge = others.find((it) => JUDGES[it].some(({ clause }) => isWanted(clause)));
  return judge === undefined
    ? new ConfigError(`--only ${only}: expected clauses that are judged, as TOK-4, or groups of them, as TOK,SND`)
    : new ConfigError(
        `--only ${only}: expected clauses that this command judges`,
        `run paybox judge ${judge} for these`,
      );
}

function printJson({ target, results }: TargetResults): void {
  for (const { evidence: _evidence, ...result } of results) {
    say(JSON.stringify({ target, ...result }));
  }
}

function printTable({ target, results, notJudged = [] }: TargetResults): void {
  const rows = groupByClause(results).flatMap(({ clause, checks }) =>
    checks.map(({ title, outcome, level, reason }, index) => {
      const shortTitle = title.length > TITLE_CHARS_MAX ? `${title.slice(0, TITLE_CHARS_MAX - 1)}…` : title;
      return [index === 0 ? clause : '', shortTitle, level === 'gap' ? `${outcome} (gap)` : outcome, reason];
    }),
  );
  say(`\n${target}\n${table(rows)}`);
  if (notJudged.length === 0) return;
  say(`not judged\n${table(notJudged.map(({ clauses, why }) => [clauses.join(', '), why]))}`);
}
