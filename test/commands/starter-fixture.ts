import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { cliScript } from '../support/program-code.ts';

/** Another Node than the pinned one, to which a checkout hands over: the same by another name. It goes with the code of the run. */
export const OTHER_NODE = join(dirname(cliScript()), `node-starter-${process.pid}`);

/** Ends a program of a ready file by its own id at the end of the test. */
export function endLater(pid: () => number | undefined): void {
  onTestFinished(() => {
    const id = pid();
    try {
      if (id !== undefined) process.kill(id, 'SIGKILL');
    } catch {
      // It is over, as it should be.
    }
  });
}

/** The program that has this text among its arguments, and is no shell or runner around it. */
export function programWith(text: string): number | undefined {
  for (const name of readdirSync('/proc').filter((it) => /^\d+$/.test(it))) {
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
      if (words[0]?.includes('node') && words.includes(text)) return Number(name);
    } catch {
      // It has ended meanwhile.
    }
  }
  return undefined;
}
