import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { payboxToEnd } from '../support/processes.ts';
export const BOX1 = 'VVB000001:VVB900001';
export const BOX2 = 'VVB000002:VVB900002';

export async function run(out: string, ...args: string[]) {
  return payboxToEnd('provision', '--out', out, ...args);
}

/** Every file below a folder: its mode and what it holds. */
export async function contentOf(folder: string): Promise<Record<string, { mode: string; text: string }>> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = names.filter((it) => it.isFile()).map((it) => join(it.parentPath, it.name));
  const entries = files.toSorted().map(async (file) => {
    const mode = ((await stat(file)).mode & 0o777).toString(8);
    return [file.slice(folder.length + 1), { mode, text: await readFile(file, 'utf8') }] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}
