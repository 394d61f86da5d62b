import { execFile } from 'node:child_process';
import { mkdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { BoxSettings } from '../../device/agent/setup/box-file.ts';
import { BOX_FILE_BYTES_MAX, type SetupReport } from '../../device/agent/setup/machine.ts';
import { applyBootFile, type BoxFileKind, MachineProblem } from '../../device/setup/apply-boot-file.ts';
import { isReadOnly, realDisk } from '../../device/setup/disk.ts';
import { foundFile } from '../../device/setup/found-file.ts';
import { wifiFileOf } from '../../device/setup/wifi.ts';
import { BOX_FILE } from '../../lib/config-file.ts';
import { ConfigError, reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { stderrLog } from '../../lib/log.ts';
import { systemRandom } from '../../lib/random.ts';

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
 * Runs `paybox first-boot`: turns a new or changed file on the boot partition into the agent's configuration. An
 * invalid file changes nothing; log and report name the mistake, and files on the card that the box does not read. The
 * exit code is 1 if something could not be written, or the machine has no program for Wi-Fi; the agent starts anyway.
 * Throws ConfigError without a boot partition.
 */
export async function firstBoot(options: FirstBootOptions): Promise<void> {
  const log = stderrLog();
  const folders = { boot: resolve(options.boot), config: resolve(options.config) };
  if (!(await stat(folders.boot).catch(() => undefined))?.isDirectory()) {
    throw new ConfigError(
      `--boot ${options.boot}: there is no such folder`,
      'mount the boot partition of the card there',
    );
  }
  const found = await foundFile(folders.boot, BOX_FILE);
  const file = join(folders.boot, found.name);
  let problem: string | null = null;
  try {
    const outcome = await applyBootFile(folders, {
      kind: boxFileKind(found.name, options, log),
      disk: realDisk,
      random: systemRandom,
      log,
      whileWritable: (work) => whileWritable(folders.boot, work),
    });
    if (outcome.problem !== undefined) {
      problem = wordsOf(outcome.problem);
      log.error('setup-file-invalid', { file, problem });
      if (outcome.problem instanceof MachineProblem) process.exitCode = 1;
    } else if (found.problem !== undefined) {
      problem = found.problem;
      log.warn('setup-file-ignored', { boot: folders.boot, problem });
    }
  } catch (error) {
    problem = `${BOX_FILE}: ${reasonOf(error)}`;
    log.error('setup-failed', { file, reason: reasonOf(error) });
    process.exitCode = 1;
  }
  await writeReport(options.report, { problem, file });
}

function boxFileKind(name: string, { config, state, root }: FirstBootOptions, log: Logger): BoxFileKind<BoxSettings> {
  return {
    name,
    bytesMax: BOX_FILE_BYTES_MAX,
    // Loaded lazily, because the file rarely changes between boots.
    read: async (bytes, before) => (await import('../../device/agent/setup/box-file.ts')).readBoxFile(bytes, before),
    filesOf: async (settings, folder) => {
      const { agentFilesOf } = await import('../../device/agent/setup/box-file.ts');
      const own = Object.entries(agentFilesOf(settings, folder, resolve(state)));
      // The configuration is written last: it switches the box over.
      return own.toReversed().map(([file, text]) => ({ path: join(resolve(config), file), text }));
    },
    machineFilesOf: async ({ wifi }) => (wifi === undefined ? { files: [] } : wifiFiles(wifi, root, log)),
  };
}

const NO_MANAGER =
  'wifi: this machine has no NetworkManager, wpa_supplicant or iwd; install one of them, and restart: the box has kept the password';

async function wifiFiles(wifi: NonNullable<BoxSettings['wifi']>, root: string, log: Logger) {
  const file = await wifiFileOf(wifi, root);
  if (file === undefined) return { files: [], problem: `${BOX_FILE}: ${NO_MANAGER}` };
  const path = join(root, file.path);
  await mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE });
  log.info('wifi-set-up', { program: file.program, path, needs: file.needs });
  return { files: [{ path, text: file.text, isSecret: true }] };
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
