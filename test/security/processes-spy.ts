import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { onTestFinished } from 'vitest';

const LOOK_MS = 25;

/** What anybody on this machine could read of the processes that this one has started, as a list of processes shows it. */
export interface ProcessSpy {
  /** Every command line and environment that was seen; its own environment, which they inherit, is left out. */
  seen: Set<string>;
  /** How many processes were looked at. */
  count(): number;
}

/** Looks again and again until the test ends. */
export function spyOnProcesses(): ProcessSpy {
  const seen = new Set<string>();
  const ids = new Set<string>();
  const inherited = new Set(Object.entries(process.env).map(([name, value]) => `${name}=${value}`));
  let over = false;
  const look = async () => {
    while (!over) {
      for (const id of await descendants()) {
        ids.add(id);
        for (const what of ['cmdline', 'environ'] as const) {
          const text = await readFile(`/proc/${id}/${what}`, 'utf8').catch(() => '');
          if (what === 'cmdline') seen.add(text.replaceAll('\0', ' '));
          else for (const part of text.split('\0')) if (!inherited.has(part)) seen.add(part);
        }
      }
      await delay(LOOK_MS);
    }
  };
  const looking = look();
  onTestFinished(async () => {
    over = true;
    await looking;
  });
  return { seen, count: () => ids.size };
}

/** The processes that this one has started, and those that they have. */
async function descendants(): Promise<string[]> {
  const ids = (await readdir('/proc')).filter((it) => /^\d+$/.test(it));
  const parents = new Map<string, string>();
  for (const id of ids) {
    const stat = await readFile(`/proc/${id}/stat`, 'utf8').catch(() => '');
    // The name of the program, in parentheses, may hold anything.
    const [, parent = ''] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    parents.set(id, parent);
  }
  const isOurs = (id: string | undefined): boolean => {
    for (let at = id, left = 50; at !== undefined && left > 0; at = parents.get(at), left -= 1) {
      if (parents.get(at) === String(process.pid)) return true;
    }
    return false;
  };
  return ids.filter(isOurs);
}
