import { access, constants, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';

/** Where Linux has files in memory. */
export const IN_MEMORY = '/dev/shm';

/**
 * A folder for what need not outlive this process: in memory where there is room for so many bytes, since every write
 * of many parts would wait for the disk; else the temporary folder.
 */
export async function memoryFolder(bytes: number, inMemory = IN_MEMORY): Promise<string> {
  try {
    await access(inMemory, constants.W_OK);
    const { bavail, bsize } = await statfs(inMemory);
    return bavail * bsize >= bytes ? inMemory : tmpdir();
  } catch {
    // Elsewhere than on Linux there is none.
    return tmpdir();
  }
}
