import { readdir, readFile } from 'node:fs/promises';

/** Of the kernel on every machine of ours (`getconf CLK_TCK`). */
const TICK_MS = 10;
/** Places behind the name of the program in /proc/PID/stat: its parent, and ticks for itself and for children that have ended. */
const AT = { parent: 1, own: [11, 12], ended: [13, 14] } as const;

/** Milliseconds of processor time that these processes have taken. */
export async function processorMs(pids: readonly (number | undefined)[]): Promise<number> {
  const stats = await Promise.all(pids.map((pid) => statOf(Number(pid))));
  return stats.reduce((sum, stat) => sum + ticks(stat, AT.own), 0) * TICK_MS;
}

/** The same of a process and all its children, also those that have ended. */
export async function familyMs(pid: number): Promise<number> {
  const pids = (await readdir('/proc')).map(Number).filter((it) => it > 0);
  const all = await Promise.all(pids.map((it) => statOf(it).catch(() => [])));
  const children = all.filter((stat) => Number(stat[AT.parent]) === pid);
  const parent = await statOf(pid);
  return [parent, ...children].reduce((sum, stat) => sum + ticks(stat, [...AT.own, ...AT.ended]), 0) * TICK_MS;
}

async function statOf(pid: number): Promise<string[]> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8');
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}

function ticks(stat: readonly string[], places: readonly number[]): number {
  return places.reduce((sum, place) => sum + Number(stat[place] ?? 0), 0);
}
