import { mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { systemCodeOf } from './errors.ts';

/**
 * Makes the folder and its missing parents, with this mode. Throws the system's error. Node's own `recursive` never
 * returns where the system answers ENOENT although the parent exists, as below /proc.
 */
export function makeFolder(path: string, mode?: number): void {
  const folder = resolve(path);
  try {
    makeOne(folder, mode);
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT' || dirname(folder) === folder) throw error;
    makeFolder(dirname(folder), mode);
    makeOne(folder, mode);
  }
}

function makeOne(folder: string, mode: number | undefined): void {
  try {
    mkdirSync(folder, mode);
  } catch (error) {
    if (systemCodeOf(error) !== 'EEXIST' || !statSync(folder).isDirectory()) throw error;
  }
}
