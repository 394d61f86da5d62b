import { readFileSync } from 'node:fs';
import { readGiven } from '../../lib/given-files.ts';
import { textOfFile } from '../../lib/text-file.ts';

const STDIN = 0;

/**
 * The text of a file that an option names, or of standard input up to its end for `-`. Throws as `readGiven`; standard input
 * is waited for as long as its writer takes, who may be a person.
 */
export function readGivenText(file: string, bytesMax: number): string {
  const isStdin = file === '-' || file === '/dev/stdin';
  return textOfFile(isStdin ? readFileSync(STDIN) : readGiven(file, bytesMax), isStdin ? 'standard input' : file);
}
