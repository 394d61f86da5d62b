import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

const OWNER_ONLY = 0o600;

/**
 * Replaces a file at once, readable by its owner only. Settles when text and name are on the disk. Throws the system's
 * error; the old file is then still there.
 */
export async function replaceOwnFile(path: string, text: string): Promise<void> {
  const unfinished = `${path}.tmp`;
  await rm(unfinished, { force: true });
  const file = await open(unfinished, 'wx', OWNER_ONLY);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(unfinished, path);
  const folder = await open(dirname(path), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
