import { access, constants, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';

/** Where Linux has files in memory. */
const IN_MEMORY = '/dev/shm';
/** More than a gateway or a box of a bench comes to write. */
const PART_BYTES = 64 * 1024 * 1024;

/**
 * A folder for what need not outlive this process: in memory where there is room for so many parts, whose every write
 * would wait for the disk; else the temporary folder.
 */
export async function volatileRoot(parts: number, inMemory = IN_MEMORY): Promise<string> {
  try {
    await access(inMemory, constants.W_OK);
    const { bavail, bsize } = await statfs(inMemory);
    return bavail * bsize >= parts * PART_BYTES ? inMemory : tmpdir();
  } catch {
    // Elsewhere than on Linux there is none.
    return tmpdir();
  }
}
