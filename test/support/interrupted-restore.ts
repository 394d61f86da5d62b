/**
 * A program that restores a backup into a folder and interrupts itself at a file operation in that folder. `kill` ends the process
 * before operation `n`. `fail` makes operation 1, then 2, … fail as on a full disk, each in a new copy of the folder, and prints
 * one JSON line for each: the error, or null once the restore succeeded. `snapshots` copies the folder before each operation, as a
 * killed process would leave it.
 */
import fs, { cpSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { openBackup } from '../../src/gateway/store/backup/backup-file.ts';
import { restoreBackup } from '../../src/gateway/store/backup/restore.ts';
import { PayboxError } from '../../src/lib/errors.ts';

export interface Interruption {
  file: string;
  folder: string;
  how: 'kill' | 'fail' | 'snapshots';
  /** For `kill`. */
  n: number;
  /** For `fail` and `snapshots`: gets a numbered folder for each operation. */
  out: string;
}

const OPERATIONS_MAX = 60;
const BY_NAME = ['mkdir', 'open', 'rename', 'rm', 'unlink', 'copyFile', 'chown', 'link'];
const BY_HANDLE = ['write', 'writeFile', 'chown', 'sync', 'datasync', 'truncate'];
const BY_NAME_SYNC = ['mkdirSync', 'openSync', 'renameSync', 'rmSync', 'unlinkSync', 'copyFileSync', 'linkSync'];
const BY_NUMBER_SYNC = ['writeSync', 'fsyncSync', 'fdatasyncSync'];

const { file, folder, how, n, out } = JSON.parse(process.argv[2] ?? '') as Interruption;
let operations = 0;
let stopAt = n;
let target = folder;
let isCopying = false;

function copy(to: string): void {
  isCopying = true;
  cpSync(folder, to, { recursive: true });
  isCopying = false;
}

function count(name: string): void {
  operations += 1;
  if (how === 'snapshots') copy(join(out, String(operations)));
  if (how === 'snapshots' || operations !== stopAt) return;
  if (how === 'kill') process.kill(process.pid, 'SIGKILL');
  throw Object.assign(new Error(`ENOSPC: no space left on device, ${name}`), { code: 'ENOSPC' });
}

function watch(object: object, names: readonly string[], isCounted: (args: unknown[]) => boolean, isAsync: boolean) {
  for (const name of names) {
    const work: unknown = Reflect.get(object, name);
    if (typeof work !== 'function') continue;
    Reflect.set(object, name, function (this: unknown, ...args: unknown[]) {
      try {
        if (!isCopying && isCounted(args)) count(name);
      } catch (error) {
        if (isAsync) return Promise.reject(error);
        throw error;
      }
      return Reflect.apply(work, this, args);
    });
  }
}

const isInTarget = (args: unknown[]) => args.some((it) => typeof it === 'string' && it.startsWith(target));
const hasBegun = () => operations > 0;
const handle = await open(import.meta.filename);
const handles: object = Object.getPrototypeOf(handle);
await handle.close();
watch(handles, BY_HANDLE, hasBegun, true);
watch(fs.promises, BY_NAME, isInTarget, true);
watch(fs, BY_NAME_SYNC, isInTarget, false);
watch(fs, BY_NUMBER_SYNC, hasBegun, false);
syncBuiltinESMExports();

async function restore(): Promise<string | null> {
  operations = 0;
  const backup = await openBackup(file);
  try {
    await restoreBackup(backup, target, { replace: true, stamp: '20260101T000000Z' });
    return null;
  } catch (error) {
    if (!(error instanceof PayboxError)) throw error;
    return `${error.message}: ${error.fix}`;
  } finally {
    operations = 0;
    await backup.handle.close();
  }
}

let error: string | null = '';
for (stopAt = how === 'fail' ? 1 : n; error !== null && stopAt <= OPERATIONS_MAX; stopAt += 1) {
  if (how === 'fail') {
    target = join(out, String(stopAt));
    copy(target);
  }
  error = await restore();
  process.stdout.write(`${JSON.stringify(error)}\n`);
}
