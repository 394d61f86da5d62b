import { createHash } from 'node:crypto';
import { access, constants, lstat, mkdtemp, readdir, readFile, readlink, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemCodeOf } from '../../lib/errors.ts';

/** The name of a folder identifies its owner: system, process id and start time. */
const OWNED = /^paybox-[a-z-]+-([0-9a-f]{12})-(\d{1,10})-(\d{1,20})-[A-Za-z0-9]{6}$/;
const SYSTEM_LETTERS = 12;
/** One start removes at most this many folders, so that it stays fast. Later starts remove the rest. */
const REMOVED_MAX = 100;

/**
 * Makes a folder `paybox-NAME-…` for working files, which the caller removes. First it removes this user's folders
 * whose bench was killed, in memory and in the temporary folder, before it asks `root` for a place. Without /proc it
 * knows no owner and removes nothing.
 */
export async function makeWorkFolder(name: string, root: () => string | Promise<string> = tmpdir): Promise<string> {
  const system = await systemHere();
  const self = await processOf(process.pid);
  if (system === undefined || self === undefined) return mkdtemp(join(await root(), `paybox-${name}-`));
  for (const it of new Set([IN_MEMORY, tmpdir()])) await removeLeftIn(it, system);
  return mkdtemp(join(await root(), `paybox-${name}-${system}-${process.pid}-${self.started}-`));
}

async function removeLeftIn(root: string, system: string): Promise<void> {
  // The place may not exist on this system.
  const names = await readdir(root).catch(() => []);
  let removed = 0;
  for (const name of names) {
    const [, where, pid = '', started = ''] = OWNED.exec(name) ?? [];
    if (where !== system || !(await isGone(Number(pid), started))) continue;
    const path = join(root, name);
    if (!(await isOwnFolder(path))) continue;
    // Another bench may remove the folder at the same time, or an ending program may still write to it. The next start
    // tries again.
    await rm(path, { recursive: true, force: true }).catch(() => undefined);
    removed += 1;
    if (removed >= REMOVED_MAX) return;
  }
}

/** Returns whether this is a real folder, no link, that this user owns. */
async function isOwnFolder(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  return found?.isDirectory() === true && found.uid === process.getuid?.();
}

/** Returns whether the process with this id and start time has surely ended. Another process may have its id now. */
async function isGone(pid: number, started: string): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (systemCodeOf(error) === 'ESRCH') return true;
  }
  const found = await processOf(pid);
  return found !== undefined && (found.started !== started || found.isOver);
}

/** Returns the start time of a process as in proc(5), and whether it is a zombie; undefined when it does not exist. */
async function processOf(pid: number): Promise<{ started: string; isOver: boolean } | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The program's name, in brackets, may contain anything. Field 3 (state) and later field 22 (start) follow it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, started] = [fields[0], fields[19]];
  if (state === undefined || started === undefined || !/^\d+$/.test(started)) return undefined;
  return { started, isOver: state === 'Z' || state === 'X' };
}

/**
 * Returns the identity of the boot and container in which a process id and start time are valid; undefined when
 * unknown.
 */
async function systemHere(): Promise<string | undefined> {
  try {
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8');
    const processes = await readlink('/proc/self/ns/pid');
    // Kernels before 5.6 have no time namespaces.
    const times = await readlink('/proc/self/ns/time').catch(() => '');
    return createHash('sha256').update(`${boot} ${processes} ${times}`).digest('hex').slice(0, SYSTEM_LETTERS);
  } catch {
    // This system is not Linux.
    return undefined;
  }
}

/** The file system in memory of Linux. */
export const IN_MEMORY = '/dev/shm';

/**
 * Returns a folder for files that need not outlive this process. It is in memory when `bytes` fit there, because the
 * writes of many parts would wait for the disk. Otherwise it is the temporary folder.
 */
export async function memoryFolder(bytes: number, inMemory = IN_MEMORY): Promise<string> {
  try {
    await access(inMemory, constants.W_OK);
    const { bavail, bsize } = await statfs(inMemory);
    return bavail * bsize >= bytes ? inMemory : tmpdir();
  } catch {
    // This system is not Linux.
    return tmpdir();
  }
}
