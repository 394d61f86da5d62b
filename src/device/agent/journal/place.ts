import { chmodSync, closeSync, existsSync, openSync } from 'node:fs';
import { assertFile } from '../../../lib/files.ts';

const OWNER_ONLY = 0o600;
/** Suffixes of a database's files in SQLite. */
export const COMPANIONS = ['', '-wal', '-shm'];
/** SQLite looks for this file too when it is in another mode. */
const ROLLBACK = '-journal';

/**
 * Checks that the paths are files, because SQLite would wait forever for a FIFO, and makes them readable to their owner
 * only. SQLite creates the other files with the mode of the first. Throws NotAFileError.
 */
export function preparePlace(path: string): void {
  for (const end of [...COMPANIONS, ROLLBACK]) assertFile(`${path}${end}`);
  try {
    if (existsSync(path)) chmodSync(path, OWNER_ONLY);
    else closeSync(openSync(path, 'a', OWNER_ONLY));
  } catch {
    // The disk is read-only or has no modes. SQLite reports what it cannot do.
  }
}
