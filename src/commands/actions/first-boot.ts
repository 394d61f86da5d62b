import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { BoxSettings } from '../../agent/setup/box-file.ts';
import { BOX_FILE_BYTES_MAX, type SetupReport } from '../../agent/setup/machine.ts';
import { BOX_FILE } from '../../lib/config-file.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { stderrLog } from '../../lib/log.ts';
import { systemRandom } from '../../lib/random.ts';
import { applyBootFile, type BoxFileKind, type SetupFile } from '../../provision/apply-boot-file.ts';
import { isReadOnly, realDisk } from '../../provision/disk.ts';
import { wifiFileOf } from '../../provision/wifi.ts';

const MOUNT_TIMEOUT_MS = 30_000;
const FOLDER_MODE = 0o755;

export interface FirstBootOptions {
  boot: string;
  config: string;
  state: string;
  report: string;
  root: string;
}

/**
 * `paybox first-boot`: turns a new or changed file on the boot partition into the agent's configuration. An invalid
 * file changes nothing; log and report name the mistake. Exit code 1 if something could not be written; the agent
 * starts anyway.
 */
export async function firstBoot(options: FirstBootOptions): Promise<void> {
  const log = stderrLog();
  const folders = { boot: resolve(options.boot), config: resolve(options.config) };
  const file = join(folders.boot, BOX_FILE);
  let problem: string | null = null;
  try {
    const outcome = await applyBootFile(folders, {
      kind: boxFileKind(options, log),
      disk: realDisk,
      random: systemRandom,
      log,
      whileWritable: (work) => whileWritable(folders.boot, work),
    });
    if (outcome.problem !== undefined) {
      problem = wordsOf(outcome.problem);
      log.error('setup-file-bad', { file, problem });
    }
  } catch (error) {
    problem = `${BOX_FILE}: ${reasonOf(error)}`;
    log.error('setup-failed', { file, reason: reasonOf(error) });
    process.exitCode = 1;
  }
  await writeReport(options.report, { problem, file });
}

function boxFileKind({ config, state, root }: FirstBootOptions, log: Logger): BoxFileKind<BoxSettings> {
  return {
    name: BOX_FILE,
    bytesMax: BOX_FILE_BYTES_MAX,
    // Loaded lazily: at most boots nothing has changed.
    read: async (bytes, before) => (await import('../../agent/setup/box-file.ts')).readBoxFile(bytes, before),
    filesOf: async (settings, folder) => {
      const { agentFilesOf } = await import('../../agent/setup/box-file.ts');
      const own = Object.entries(agentFilesOf(settings, folder, resolve(state)));
      const wifi = settings.wifi === undefined ? [] : await wifiFiles(settings.wifi, root, log);
      // The configuration is written last: it switches the box over.
      const files = own.toReversed().map(([name, text]) => ({ path: join(resolve(config), name), text }));
      return [...wifi, ...files];
    },
  };
}

async function wifiFiles(wifi: NonNullable<BoxSettings['wifi']>, root: string, log: Logger): Promise<SetupFile[]> {
  const file = await wifiFileOf(wifi, root);
  if (file === undefined) {
    const reason = 'there is no NetworkManager, wpa_supplicant or iwd; install one of them, or use a cable';
    log.error('wifi-not-set-up', { reason });
    return [];
  }
  const path = join(root, file.path);
  await mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE });
  log.info('wifi-set-up', { program: file.program, path, needs: file.needs });
  return [{ path, text: file.text, isSecret: true }];
}

/** Remounts a read-only boot partition as writable for `work`. */
async function whileWritable(boot: string, work: () => Promise<void>): Promise<void> {
  if (!(await isReadOnly(boot))) return work();
  const mount = (how: string) =>
    promisify(execFile)('mount', ['-o', `remount,${how}`, boot], { timeout: MOUNT_TIMEOUT_MS, killSignal: 'SIGKILL' });
  await mount('rw');
  try {
    await work();
  } finally {
    await mount('ro');
  }
}

function wordsOf(problem: unknown): string {
  return problem instanceof Error ? problem.message : String(problem);
}

async function writeReport(path: string, report: SetupReport): Promise<void> {
  await mkdir(dirname(resolve(path)), { recursive: true, mode: FOLDER_MODE });
  await realDisk.replace(resolve(path), `${JSON.stringify(report)}\n`, 0o644);
}
