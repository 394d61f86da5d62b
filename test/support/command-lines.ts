import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { temporaryFolder } from './net.ts';

const EACH = resolve(import.meta.dirname, 'each.js');
const TIMEOUT_MS = 150_000;

/** Words of a command line as a list, or in one text with blanks between them. */
export type CommandLine = readonly [
  code: number,
  what: string,
  words: string | readonly string[],
  says: RegExp | string,
];

/**
 * A test for each row: `paybox` with these words ends with this code and says this. The first test runs all rows, in their order, in
 * one process and in a folder with these files, because starting a program is what costs.
 */
export function eachEnds(rows: readonly CommandLine[], files: Readonly<Record<string, string>> = {}): void {
  let ran: Promise<{ code: number; output: string }[]> | undefined;
  const runAll = async () => {
    const folder = await temporaryFolder();
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    const args = [
      EACH,
      JSON.stringify(rows.map(([, , words]) => (typeof words === 'string' ? words.split(' ') : words))),
    ];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder, timeout: TIMEOUT_MS });
    const lines = stdout.trim().split('\n');
    return lines.map((line) => JSON.parse(line) as { code: number; output: string });
  };
  it.each(rows.map(([code, what, , message], index) => ({ code, what, message, index })))(
    'ends with $code for $what',
    async ({ code, message, index }) => {
      ran ??= runAll();
      const output = typeof message === 'string' ? expect.stringContaining(message) : expect.stringMatching(message);
      expect((await ran)[index]).toEqual({ code, output });
    },
  );
}
