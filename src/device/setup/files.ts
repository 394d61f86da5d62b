import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ConfigError, systemCodeOf } from '../../lib/errors.ts';
import { readFileText } from '../../lib/files.ts';

/** Only the user that runs the program may read it. */
const SECRET_MODE = 0o600;
const PUBLIC_MODE = 0o644;
const FOLDER_MODE = 0o700;

/** The content of a file. Only its owner can read it unless it is public. */
export interface Content {
  text: string;
  isPublic?: boolean;
}

/**
 * Makes a folder with these files, by relative paths, all or nothing. Only its owner may read it. Throws ConfigError if
 * the folder exists and is not empty.
 */
export async function createFolder(path: string, files: Readonly<Record<string, Content>>): Promise<void> {
  const unfinished = `${path}.${process.pid}.tmp`;
  await mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE });
  try {
    await mkdir(unfinished, { mode: FOLDER_MODE });
    for (const [name, content] of Object.entries(files)) {
      const file = join(unfinished, name);
      await mkdir(dirname(file), { recursive: true, mode: FOLDER_MODE });
      await write(file, content);
    }
    // Renaming a folder never replaces one that has files.
    await rename(unfinished, path);
  } catch (error) {
    const code = systemCodeOf(error);
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST' && code !== 'ENOTDIR') throw error;
    throw new ConfigError(`${path} is there already`, 'nothing in it was changed; name another, or move it away');
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

/** Replaces a file atomically. */
export async function replaceFile(path: string, content: Content): Promise<void> {
  const unfinished = `${path}.${process.pid}.tmp`;
  try {
    await write(unfinished, content);
    await rename(unfinished, path);
  } finally {
    await rm(unfinished, { force: true });
  }
}

/** Returns the text of a file; undefined without one. */
export async function readIfThere(path: string): Promise<string | undefined> {
  return readFileText(path).catch((error: unknown) => {
    if (['ENOENT', 'ENOTDIR'].includes(systemCodeOf(error) ?? '')) return undefined;
    throw error;
  });
}

/** Sets the mode from the first byte on, whatever the umask, and syncs before returning. */
async function write(path: string, { text, isPublic = false }: Content): Promise<void> {
  const handle = await open(path, 'wx', SECRET_MODE);
  try {
    await handle.writeFile(text);
    if (isPublic) await handle.chmod(PUBLIC_MODE);
    await handle.sync();
  } finally {
    await handle.close();
  }
}
