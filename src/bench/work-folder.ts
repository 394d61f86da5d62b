import { createHash } from 'node:crypto';
import { access, constants, lstat, mkdtemp, readdir, readFile, readlink, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemCodeOf } from '../lib/errors.ts';

/** The name of a folder whose owner is known: the system that it runs on, its process id, and when that was started. */
const OWNED = /^paybox-[a-z-]+-([0-9a-f]{12})-(\d{1,10})-(\d{1,20})-[A-Za-z0-9]{6}$/;
const SYSTEM_LETTERS = 12;
/** Folders in one go, so that a start stays a start; the next bench removes more. */
const REMOVED_MAX = 100;

/**
 * Makes a folder `paybox-NAME-…` for what a bench needs while it runs; whoever makes it removes it. Those that killed
 * benches of this user have left behind, in memory and among the temporary files, are removed before `root` is asked
 * where it is to be. Where there is no /proc no owner can be known, and nothing is removed.
 */
export async function makeWorkFolder(name: string, root: () => string | Promise<string> = tmpdir): Promise<string> {
  const system = await systemHere();
  const self = await processOf(process.pid);
  if (system === undefined || self === undefined) return mkdtemp(join(await root(), `paybox-${name}-`));
  for (const it of new Set([IN_MEMORY, tmpdir()])) await removeLeftIn(it, system);
  return mkdtemp(join(await root(), `paybox-${name}-${system}-${process.pid}-${self.started}-`));
}

async function removeLeftIn(root: string, system: string): Promise<void> {
  // A system may have no such place.
  const names = await readdir(root).catch(() => []);
  let removed = 0;
  for (const name of names) {
    const [, where, pid = '', started = ''] = OWNED.exec(name) ?? [];
    if (where !== system || !(await isGone(Number(pid), started))) continue;
    const path = join(root, name);
    if (!(await isOwnFolder(path))) continue;
    // What another bench removes at this moment, or a program that is just ending still writes to, is left to the next.
    await rm(path, { recursive: true, force: true }).catch(() => undefined);
    removed += 1;
    if (removed >= REMOVED_MAX) return;
  }
}

/** No link, and no folder of somebody else. */
async function isOwnFolder(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  return found?.isDirectory() === true && found.uid === process.getuid?.();
}

/** Whether the process of this id that was started then is surely over; another may have its id. */
async function isGone(pid: number, started: string): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (systemCodeOf(error) === 'ESRCH') return true;
  }
  const found = await processOf(pid);
  return found !== undefined && (found.started !== started || found.isOver);
}

/** When a process was started, as proc(5) counts it, and whether it only waits to be reaped; undefined if none is seen. */
async function processOf(pid: number): Promise<{ started: string; isOver: boolean } | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The name of the program, in brackets, may hold anything; the start is field 22, the third is the first after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, started] = [fields[0], fields[19]];
  if (state === undefined || started === undefined || !/^\d+$/.test(started)) return undefined;
  return { started, isOver: state === 'Z' || state === 'X' };
}

/** Where a process id and a start mean the same: one boot of one machine, and one container; undefined if not known. */
async function systemHere(): Promise<string | undefined> {
  try {
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8');
    const processes = await readlink('/proc/self/ns/pid');
    // Kernels before 5.6 have but one.
    const times = await readlink('/proc/self/ns/time').catch(() => '');
    return createHash('sha256').update(`${boot} ${processes} ${times}`).digest('hex').slice(0, SYSTEM_LETTERS);
  } catch {
    // Elsewhere than on Linux.
    return undefined;
  }
}

/** Where Linux has files in memory. */
export const IN_MEMORY = '/dev/shm';

/**
 * A folder for what need not outlive this process: in memory where there is room for so many bytes, since every write
 * of many parts would wait for the disk; else the temporary folder.
 */
export async function memoryFolder(bytes: number, inMemory = IN_MEMORY): Promise<string> {
  try {
    await access(inMemory, constants.W_OK);
    const { bavail, bsize } = await statfs(inMemory);
    return bavail * bsize >= bytes ? inMemory : tmpdir();
  } catch {
    // Elsewhere than on Linux there is none.
    return tmpdir();
  }
}
