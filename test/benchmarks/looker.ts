import type { ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { eventually } from '../support/net.ts';
import type { Inside } from './inside.ts';

/** Sees into a program that was started with its `flags`. */
export class Looker {
  readonly flags: readonly string[];
  readonly #file: string;
  #looks = 0;

  constructor(folder: string) {
    this.#file = join(folder, 'inside.json');
    const inside = pathToFileURL(join(import.meta.dirname, 'inside.ts'));
    inside.searchParams.set('to', this.#file);
    this.flags = ['--expose-gc', '--import', inside.href];
  }

  async look(child: ChildProcess): Promise<Inside> {
    this.#looks += 1;
    child.kill('SIGUSR2');
    return eventually('a look inside', async () => {
      const text = await readFile(this.#file, 'utf8').catch(() => '{}');
      const inside = JSON.parse(text) as Partial<Inside>;
      return inside.look === this.#looks ? (inside as Inside) : undefined;
    });
  }
}
