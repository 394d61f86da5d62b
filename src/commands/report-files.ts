import { access, mkdir, open, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ConfigError, reasonOf } from '../lib/errors.ts';

/** Where the reports of a run go. */
export interface ReportOptions {
  junit?: string;
  tap?: string;
  /** A folder. */
  report?: string;
}

/** Throws ConfigError for a report that could not be written once the run is over; makes the folders. */
export async function assertReports({ junit, tap, report }: ReportOptions): Promise<void> {
  if (junit !== undefined) await assertOut('--junit', junit);
  if (tap !== undefined) await assertOut('--tap', tap);
  if (report === undefined) return;
  await makeFolder('--report', report);
  await assertWritable('--report', join(report, 'index.html'));
}

async function assertOut(option: string, file: string): Promise<void> {
  await makeFolder(option, dirname(file));
  await assertWritable(option, file);
}

/** Throws ConfigError that names the option when a file cannot be written; leaves it as it is. */
export async function assertWritable(option: string, file: string): Promise<void> {
  const isThere = await access(file).then(
    () => true,
    () => false,
  );
  try {
    await (await open(file, 'a')).close();
    if (!isThere) await rm(file);
  } catch (error) {
    throw unwritable(option, file, error);
  }
}

/** Writes a report. Throws ConfigError that names the option. */
export async function writeOut(option: string, file: string, text: string): Promise<void> {
  await makeFolder(option, dirname(file));
  await writeFile(file, text).catch((error: unknown) => {
    throw unwritable(option, file, error);
  });
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
