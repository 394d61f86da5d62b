import { access, mkdir, open, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { junitOf } from '../../bench/engine/reports/junit.ts';
import type { Progress } from '../../bench/engine/reports/progress.ts';
import type { ReportRow } from '../../bench/engine/reports/result.ts';
import { tapOf } from '../../bench/engine/reports/tap.ts';
import { ConfigError, reasonOf } from '../../lib/errors.ts';
import { assertMayGive, writeGiven } from '../../lib/given-files.ts';

/** Exit codes of a judge; `unwritable`: its reports cannot be written. */
const EXIT = { passed: 0, failed: 1, unwritable: 2, missing: 3, interrupted: 130 } as const;

/** Ends a run: writes its reports, prints its result, and sets the exit code. */
export async function finishRun(results: readonly ReportRow[], options: ReportOptions, run: RunEnd): Promise<void> {
  await writeReports(results, options, run);
  run.print?.();
  const has = (wanted: ReportRow['outcome']) => results.some(({ outcome }) => outcome === wanted);
  const isFailed = has('failed') || (run.failOnSkip === true && has('skipped'));
  const verdict = isFailed ? EXIT.failed : has('missing') ? EXIT.missing : EXIT.passed;
  process.exitCode = run.isInterrupted ? EXIT.interrupted : verdict;
  run.progress.finish(results, process.exitCode);
}

/** The end of a run, and what it leaves. */
interface RunEnd {
  startedAtMs: number;
  progress: Progress;
  isInterrupted: boolean;
  /** A skipped row counts as a failure. */
  failOnSkip?: boolean;
  /** Returns the content of index.html. */
  page(): string;
  /** Further files, by the names of their options. */
  files?: readonly ReportFile[];
  print?(): void;
}

/** A report that a run writes at its end. */
export interface ReportFile {
  kind: string;
  /** Undefined if the user does not want it. */
  file: string | undefined;
  /** Returns undefined if there is nothing to write. */
  content(): string | Promise<Uint8Array | undefined>;
}

/** Says where a run writes its reports. */
export interface ReportOptions {
  junit?: string;
  tap?: string;
  /** The folder of the report. */
  report?: string;
}

/** Makes the folders; throws ConfigError for a report that could not be written at the end of the run. */
export async function assertReports({ junit, tap, report }: ReportOptions): Promise<void> {
  if (junit !== undefined) await assertOut('--junit', junit);
  if (tap !== undefined) await assertOut('--tap', tap);
  if (report === undefined) return;
  await makeFolder('--report', report);
  await assertWritable('--report', join(report, 'index.html'));
}

/** Makes the folder of a file; throws ConfigError that names the option if the file could not be written. */
export async function assertOut(option: string, file: string): Promise<void> {
  await makeFolder(option, dirname(file));
  await assertWritable(option, file);
}

/** Throws ConfigError that names the option if a file cannot be written; leaves its content unchanged. */
async function assertWritable(option: string, file: string): Promise<void> {
  const isThere = await access(file).then(
    () => true,
    () => false,
  );
  try {
    assertMayGive(file);
    // The reader of a FIFO would mistake the end of this for the end of the report.
    if (isThere && !(await stat(file)).isFile()) return;
    await (await open(file, 'a')).close();
    if (!isThere) await rm(file);
  } catch (error) {
    throw unwritable(option, file, error);
  }
}

/** Writes the requested reports; `page` is index.html. Throws ConfigError that names the option. */
async function writeReports(
  results: readonly ReportRow[],
  { junit, tap, report }: ReportOptions,
  { startedAtMs, progress, page, files = [] }: RunEnd,
): Promise<void> {
  const write = async (option: string, file: string, text: string | Uint8Array) => {
    await writeOut(`--${option}`, file, text);
    progress.report(option, file);
  };
  try {
    if (junit !== undefined) await write('junit', junit, junitOf(results, { startedAtMs }));
    if (tap !== undefined) await write('tap', tap, tapOf(results));
    for (const { kind, file, content } of files) {
      const text = file === undefined ? undefined : await content();
      if (file !== undefined && text !== undefined) await write(kind, file, text);
    }
    if (report !== undefined) await write('report', join(report, 'index.html'), page());
  } catch (error) {
    progress.finish(results, EXIT.unwritable);
    throw error;
  }
}

/** Writes a file, with its folder. Throws ConfigError that names the option. */
export async function writeOut(option: string, file: string, text: string | Uint8Array): Promise<void> {
  await makeFolder(option, dirname(file));
  try {
    writeGiven(file, text);
  } catch (error) {
    throw unwritable(option, file, error);
  }
}

/** Throws ConfigError that names the option. */
async function makeFolder(option: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true }).catch((error: unknown) => {
    throw new ConfigError(
      `${option} ${folder} cannot be made: ${reasonOf(error)}`,
      'name a folder that may be written',
    );
  });
}

function unwritable(option: string, file: string, error: unknown): ConfigError {
  return new ConfigError(`${option} ${file} cannot be written: ${reasonOf(error)}`, 'name a file that may be written');
}
