import { readdirSync, readFileSync } from 'node:fs';
import { signalTo } from '../support/processes.ts';

/** A process of a PostgreSQL server. PostgreSQL writes into its title what it does. */
export interface ServerProcess {
  pid: number;
  title: string;
}

/** Lists the living processes that `parent` has started. */
export function childrenOf(parent: number): ServerProcess[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      // The name of the program is in brackets, and may hold anything.
      const [state, parentOfIt] = readFileSync(`/proc/${name}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? [];
      if (Number(parentOfIt) !== parent || state === 'Z') return [];
      return [{ pid: Number(name), title: readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() }];
    } catch {
      // It has just ended.
      return [];
    }
  });
}

/** Sends a signal to each of these processes that still lives. */
export function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) signalTo(pid, signal);
}
