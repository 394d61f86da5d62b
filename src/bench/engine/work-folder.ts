import { createHash } from 'node:crypto';
import { access, constants, lstat, mkdtemp, readdir, readFile, readlink, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemCodeOf } from '../../lib/errors.ts';

/** Folder name that identifies its owner: system, process id and start time. */
const OWNED = /^paybox-[a-z-]+-([0-9a-f]{12})-(\d{1,10})-(\d{1,20})-[A-Za-z0-9]{6}$/;
const SYSTEM_LETTERS = 12;
/** Folders removed per start, so that a start stays fast; later starts remove the rest. */
const REMOVED_MAX = 100;

/**
 * Makes a folder `paybox-NAME-…` for working files; the caller removes it. First removes folders of this user whose bench was
 * killed, in memory and in the temporary folder, before `root` is asked for a place. Without /proc no owner is known and nothing
 * is removed.
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
    // Another bench may be removing it, or an ending program may still write to it: the next start tries again.
    await rm(path, { recursive: true, force: true }).catch(() => undefined);
    removed += 1;
    if (removed >= REMOVED_MAX) return;
  }
}

/** A real folder, no link, owned by this user. */
async function isOwnFolder(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  return found?.isDirectory() === true && found.uid === process.getuid?.();
}

/** Whether the process with this id and start time has surely ended; its id may have been reused. */
async function isGone(pid: number, started: string): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (systemCodeOf(error) === 'ESRCH') return true;
  }
  const found = await processOf(pid);
  return found !== undefined && (found.started !== started || found.isOver);
}

/** Start time of a process as in proc(5), and whether it is a zombie; undefined when it does not exist. */
async function processOf(pid: number): Promise<{ started: string; isOver: boolean } | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The program's name, in brackets, may contain anything. After it come field 3 (state) and later field 22 (start).
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, started] = [fields[0], fields[19]];
  if (state === undefined || started === undefined || !/^\d+$/.test(started)) return undefined;
  return { started, isOver: state === 'Z' || state === 'X' };
}

/** Identifies the boot and container in which a process id and start time are valid; undefined when unknown. */
async function systemHere(): Promise<string | undefined> {
  try {
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8');
    const processes = await readlink('/proc/self/ns/pid');
    // Kernels before 5.6 have no time namespaces.
    const times = await readlink('/proc/self/ns/time').catch(() => '');
    return createHash('sha256').update(`${boot} ${processes} ${times}`).digest('hex').slice(0, SYSTEM_LETTERS);
  } catch {
    // Not Linux.
    return undefined;
  }
}

/** Linux's file system in memory. */
export const IN_MEMORY = '/dev/shm';

/**
 * A folder for files that need not outlive this process. It is in memory when `bytes` fit there, because writes of many parts would
 * wait for the disk; otherwise the temporary folder.
 */
export async function memoryFolder(bytes: number, inMemory = IN_MEMORY): Promise<string> {
  try {
    await access(inMemory, constants.W_OK);
    const { bavail, bsize } = await statfs(inMemory);
    return bavail * bsize >= bytes ? inMemory : tmpdir();
  } catch {
    // Not Linux.
    return tmpdir();
  }
}
