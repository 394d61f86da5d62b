import { spawnSync } from 'node:child_process';
import { globSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { unmount } from '../support/disk.ts';
import { signalAll } from './processes.ts';

/**
 * Waits for the end of its standard input, which comes when the process that started it has ended, however that was. Then it ends
 * what is left of a series of runs: the programs that use the folder in its argument, their shared memory, their disks, and the folder.
 */
const [, , folder = ''] = process.argv;
const LOOKS_MAX = 100;
const LOOK_EVERY_MS = 50;

for await (const _ of process.stdin);
for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
  const pids = usersOf(folder);
  if (pids.length === 0) break;
  signalAll(pids, 'SIGKILL');
  await delay(LOOK_EVERY_MS);
}
for (const file of globSync(join(folder, '*/**/postmaster.pid'))) {
  const [, id] = /\n *\d+ +(\d+)\n/.exec(readFileSync(file, 'utf8')) ?? [];
  if (id !== undefined) spawnSync('ipcrm', ['-m', id]);
}
for (const line of readFileSync('/proc/mounts', 'utf8').split('\n')) {
  const [, place = ''] = line.split(' ');
  if (place.startsWith(`${folder}/`)) unmount(place);
}
rmSync(folder, { recursive: true, force: true, maxRetries: 5 });

/** Programs that were started with a file of the folder, or work in it: PostgreSQL names only what it does. */
function usersOf(place: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  return pids.map(Number).filter((pid) => {
    try {
      const isIn = (path: string) => path === place || path.includes(`${place}/`);
      return isIn(readFileSync(`/proc/${pid}/cmdline`, 'utf8')) || isIn(readlinkSync(`/proc/${pid}/cwd`));
    } catch {
      // It has ended, or is a process of the system.
      return false;
    }
  });
}
