import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { checkVaultFile, vaultFile } from '../../gateway/common/vault.ts';
import { type GatewayConfig, loadGatewayConfig } from '../../gateway/config/config.ts';
import { type BackupFile, openBackup } from '../../gateway/store/backup/backup-file.ts';
import { restoreBackup } from '../../gateway/store/backup/restore.ts';
import { type BackupSummary, verifyBackup } from '../../gateway/store/backup/verify.ts';
import {
  highWaterMarkFile,
  type StoreLocation,
  writersWithMark,
} from '../../gateway/store/integrity/high-water-mark.ts';
import { systemClock } from '../../lib/clock.ts';
import { ConfigError, PayboxError, reasonOf, systemCodeOf } from '../../lib/errors.ts';
import { assertReplaceable } from '../../lib/files.ts';
import { systemRandom } from '../../lib/random.ts';
import { AdminClient, type AdminOptions } from '../shared/admin-client.ts';
import { say } from '../shared/output.ts';
import { checkDump, dumpPostgres, restorePostgres } from './postgres-copy.ts';

const OWNER_ONLY = 0o600;
const MIB = 1_048_576;

/** Runs `paybox backup`: copies the store of a running gateway into a file and checks the file. */
export async function backup(
  file: string,
  options: AdminOptions & { config?: string; replace?: boolean },
): Promise<void> {
  const config = options.config === undefined ? undefined : await loadGatewayConfig(options.config);
  if (options.replace !== true && (await isThere(file))) {
    throw new ConfigError(`${file} is there already`, 'name another file, or say --replace');
  }
  assertReplaceable(file);
  const unfinished = `${file}.${systemRandom.uuid()}.tmp`;
  try {
    const handle = await open(unfinished, 'wx', OWNER_ONLY).catch((error: unknown) => {
      throw new ConfigError(
        `${file} cannot be made: ${reasonOf(error)}`,
        'name a file in a folder that may be written',
      );
    });
    const { holds, hasKey } = await fill({ handle, unfinished, file }, options, config);
    const { size } = await stat(unfinished);
    await rename(unfinished, file).catch((error: unknown) => Promise.reject(unwritten(file, error)));
    say(`${file}: ${(size / MIB).toFixed(1)} MiB, ${holds}; it is as secret as the gateway`);
    if (hasKey) say('keep registry.key of dataDir beside it: its secrets open with that key only');
  } finally {
    await rm(unfinished, { force: true });
  }
}

/** An unfinished backup; it gets its final name when complete. */
interface Target {
  handle: FileHandle;
  unfinished: string;
  file: string;
}

/** Copies the store from the gateway, or from its PostgreSQL database, and checks it. Returns its content in words, and whether a key belongs to it. */
async function fill(
  { handle, unfinished, file }: Target,
  options: AdminOptions,
  config: GatewayConfig | undefined,
): Promise<{ holds: string; hasKey: boolean }> {
  const orUnwritten = (error: unknown) => Promise.reject(unwritten(file, error));
  try {
    if (config?.databaseUrl !== undefined) {
      await dumpPostgres(config.databaseUrl, handle);
      await handle.sync().catch(orUnwritten);
      const hasKey = await isThere(vaultFile(config.dataDir));
      return { holds: await contentOfDump(unfinished), hasKey };
    }
    const client = await AdminClient.open(options);
    const onBytes = progress();
    let bytes = 0;
    await client.save('backup', async (piece, total) => {
      await handle.writeFile(piece).catch(orUnwritten);
      bytes += piece.length;
      onBytes?.(bytes, total);
    });
    await handle.sync().catch(orUnwritten);
    const summary = await verifyBackup(unfinished, unfinished);
    return { holds: inWords(summary), hasKey: summary.keyId !== undefined };
  } finally {
    await handle.close();
  }
}

/** Checks a dump. Returns its content in words. */
async function contentOfDump(file: string): Promise<string> {
  const { handle } = await openBackup(file);
  await checkDump(handle).finally(() => handle.close());
  return 'of PostgreSQL';
}

function unwritten(file: string, cause: unknown): PayboxError {
  return new PayboxError('NO_BACKUP', `${file} cannot be written: ${reasonOf(cause)}`, {
    severity: 'fatal',
    fix: `make room where ${file} is, or name a file on another disk`,
    cause,
  });
}

/** Runs `paybox restore`: puts a backup in the place of the store of a stopped gateway. */
export async function restore(
  file: string,
  { config: configFile, data, replace = false }: { config?: string; data?: string; replace?: boolean },
): Promise<void> {
  if ((configFile === undefined) === (data === undefined)) {
    throw new ConfigError(
      'expected one of --config and --data',
      'name the configuration of the gateway, or its dataDir',
    );
  }
  const opened = await openBackup(file);
  try {
    await restoreOpened(
      opened,
      configFile === undefined ? { dataDir: data ?? '' } : await loadGatewayConfig(configFile),
      replace,
    );
  } finally {
    await opened.handle.close();
  }
}

async function restoreOpened(opened: BackupFile, place: StoreLocation, replace: boolean): Promise<void> {
  const { file, kind } = opened;
  const { dataDir, databaseUrl } = place;
  const stamp = new Date(systemClock.wallMs()).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  if ((kind === 'postgres') !== (databaseUrl !== undefined)) {
    const fix = `name a configuration ${kind === 'postgres' ? 'with' : 'without'} databaseUrl`;
    throw new ConfigError(`${file} is of ${kind === 'postgres' ? 'PostgreSQL' : 'a SQLite store'}`, fix);
  }
  if (databaseUrl !== undefined) {
    if (replace) throw new ConfigError('--replace is for SQLite', 'make an empty database and name it in databaseUrl');
    await restorePostgres(databaseUrl, opened);
    // These files have the newest payments of the earlier database of that name.
    for (const mark of writersWithMark(place).map((it) => highWaterMarkFile(place, it))) {
      await rename(mark, `${mark}.before-${stamp}`).catch(ignoreAbsent);
    }
    const hasKey = await isThere(vaultFile(dataDir));
    const first = hasKey ? '' : `if a registry.key is beside the backup, put it into ${dataDir}; then `;
    say(`restored ${file} into ${new URL(databaseUrl).pathname.slice(1)}; ${first}start the gateway`);
    return;
  }
  const { summary, aside } = await restoreBackup(opened, dataDir, { replace, stamp });
  say(`restored ${file} into ${dataDir}: ${inWords(summary)}; ${await nextStep(dataDir, summary)}`);
  if (aside !== undefined) say(`the store that was there is ${aside} now`);
}

/** Returns the next step in words. A restore is complete without the key of its secrets, but the gateway would not start. */
async function nextStep(dataDir: string, { keyId }: BackupSummary): Promise<string> {
  try {
    await checkVaultFile(dataDir, keyId);
    return 'start the gateway';
  } catch (error) {
    const fix = error instanceof PayboxError ? `: ${error.fix}` : '';
    return `the gateway will not start yet: ${reasonOf(error)}${fix}`;
  }
}

function inWords({ orders, payments, pendingCallbacks: owed, newestPaymentAtMs }: BackupSummary): string {
  const newest = newestPaymentAtMs === undefined ? '' : `, the newest of ${new Date(newestPaymentAtMs).toISOString()}`;
  return `${orders} orders, ${payments} payments${newest}, ${owed} callbacks still to deliver`;
}

function ignoreAbsent(error: unknown): void {
  if (systemCodeOf(error) !== 'ENOENT') throw error;
}

async function isThere(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}

/** Shows the progress on a terminal. */
function progress(): ((bytes: number, total: number) => void) | undefined {
  if (!process.stderr.isTTY) return undefined;
  return (bytes, total) => {
    const end = bytes === total ? '\n' : '';
    process.stderr.write(
      `\r${Math.floor((bytes / Math.max(total, 1)) * 100)} % of ${(total / MIB).toFixed(1)} MiB${end}`,
    );
  };
}
