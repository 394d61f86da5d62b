/**
 * Preloaded into a program (`--import`), stops it at its n-th operation on files of one folder: kills it before, or lets the
 * operation fail as a full disk does.
 */
import fs from 'node:fs';
import { open } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

const { STOP_AT = '', STOP_FOLDER = '', STOP_HOW = '' } = process.env;
const BY_NAME = ['mkdir', 'open', 'rename', 'rm', 'unlink', 'copyFile', 'chown', 'link'];
const BY_HANDLE = ['write', 'writeFile', 'chown', 'sync', 'datasync', 'truncate'];
const BY_NAME_SYNC = ['mkdirSync', 'openSync', 'renameSync', 'rmSync', 'unlinkSync', 'copyFileSync', 'linkSync'];
const BY_NUMBER_SYNC = ['writeSync', 'fsyncSync', 'fdatasyncSync'];

let operations = 0;

function count(name: string): void {
  operations += 1;
  if (operations !== Number(STOP_AT)) return;
  if (STOP_HOW === 'kill') process.kill(process.pid, 'SIGKILL');
  throw Object.assign(new Error(`ENOSPC: no space left on device, ${name}`), { code: 'ENOSPC' });
}

const isInFolder = (args: unknown[]) => args.some((it) => typeof it === 'string' && it.startsWith(STOP_FOLDER));

function watch(
  owner: object,
  names: readonly string[],
  isCounted: (args: unknown[]) => boolean,
  isLate: boolean,
): void {
  for (const name of names) {
    const work: unknown = Reflect.get(owner, name);
    if (typeof work !== 'function') continue;
    Reflect.set(owner, name, function (this: unknown, ...args: unknown[]) {
      try {
        if (isCounted(args)) count(name);
      } catch (error) {
        if (isLate) return Promise.reject(error);
        throw error;
      }
      return Reflect.apply(work, this, args);
    });
  }
}

const handle = await open(import.meta.filename);
const handles: object = Object.getPrototypeOf(handle);
await handle.close();
watch(handles, BY_HANDLE, () => operations > 0, true);
watch(fs.promises, BY_NAME, isInFolder, true);
watch(fs, BY_NAME_SYNC, isInFolder, false);
watch(fs, BY_NUMBER_SYNC, () => operations > 0, false);
syncBuiltinESMExports();
