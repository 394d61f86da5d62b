import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ConfigError, systemCodeOf } from '../lib/errors.ts';

/** For whoever runs the program, and for nobody else. */
const SECRET_MODE = 0o600;
const PUBLIC_MODE = 0o644;
const FOLDER_MODE = 0o700;

/** What a file is to hold; for its owner only unless it is public. */
export interface Content {
  text: string;
  isPublic?: boolean;
}

/**
 * Makes a folder with these files, by their paths in it: the whole of it or nothing. Only its owner can look into it.
 * Throws ConfigError when there is one that is not empty.
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
    // Unlike a file, a folder never takes the place of one that holds something.
    await rename(unfinished, path);
  } catch (error) {
    const code = systemCodeOf(error);
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST' && code !== 'ENOTDIR') throw error;
    throw new ConfigError(`${path} is there already`, 'nothing in it was changed; name another, or move it away');
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

/** Puts a new content in the place of a file; whoever reads it sees the old one or the new one. */
export async function replaceFile(path: string, content: Content): Promise<void> {
  const unfinished = `${path}.${process.pid}.tmp`;
  try {
    await write(unfinished, content);
    await rename(unfinished, path);
  } finally {
    await rm(unfinished, { force: true });
  }
}

/** What a file holds, or undefined where there is none. */
export async function readIfThere(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch((error: unknown) => {
    if (['ENOENT', 'ENOTDIR'].includes(systemCodeOf(error) ?? '')) return undefined;
    throw error;
  });
}

/** With its mode from the first byte on, whatever the umask, and on the disk before anything tells of it. */
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
