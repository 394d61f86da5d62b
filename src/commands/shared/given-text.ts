import { readFileSync } from 'node:fs';
import { readGiven } from '../../lib/given-files.ts';
import { textOfFile } from '../../lib/text-file.ts';

const STDIN = 0;

/**
 * Returns the text of a file that an option names, or of standard input up to its end for `-`. It waits for standard
 * input without a limit, because the writer may be a person. Throws as `readGiven` does.
 */
export function readGivenText(file: string, bytesMax: number): string {
  const isStdin = file === '-' || file === '/dev/stdin';
  return textOfFile(isStdin ? readFileSync(STDIN) : readGiven(file, bytesMax), isStdin ? 'standard input' : file);
}
