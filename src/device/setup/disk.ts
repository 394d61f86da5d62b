import { access, chmod, chown, constants, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { systemCodeOf } from '../../lib/errors.ts';
import { readFileText } from '../../lib/files.ts';

const COPY_SUFFIX = '.tmp';

/** Changes files. Each change is atomic, also at a power cut, and synced to disk when it settles. */
export interface Disk {
  /** Replaces a file. With `mode`, the folder's owner becomes the file's owner. */
  replace(path: string, text: string, mode?: number): Promise<void>;
  makeFolder(path: string, mode: number): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Overwrites a file's content, so that it cannot be found in free disk space, and deletes it. */
  wipe(path: string): Promise<void>;
  /** Deletes a file or a folder. A missing one is no error. */
  remove(path: string): Promise<void>;
}

export const realDisk: Disk = {
  async replace(path, text, mode) {
    const unfinished = `${path}${COPY_SUFFIX}`;
    await rm(unfinished, { force: true });
    const file = await open(unfinished, 'wx', mode ?? 0o600);
    try {
      if (mode !== undefined) await belongAsFolder(unfinished, mode);
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(unfinished, path);
    await syncFolder(dirname(path));
  },
  async makeFolder(path, mode) {
    await mkdir(path, { recursive: true, mode });
    await belongAsFolder(path, mode);
    await syncFolder(dirname(path));
  },
  async rename(from, to) {
    await rename(from, to);
    await syncFolder(dirname(to));
  },
  async wipe(path) {
    const file = await open(path, 'r+');
    try {
      const { size } = await file.stat();
      await file.write(new Uint8Array(size), 0, size, 0);
      await file.sync();
    } finally {
      await file.close();
    }
    await rm(path);
    await syncFolder(dirname(path));
  },
  async remove(path) {
    await rm(path, { recursive: true, force: true });
    await syncFolder(dirname(path));
  },
};

/** Sets owner and mode independently of the umask. */
async function belongAsFolder(path: string, mode: number): Promise<void> {
  const { uid, gid } = await stat(dirname(path));
  await chown(path, uid, gid);
  await chmod(path, mode);
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Returns whether a folder is on a read-only file system. */
export async function isReadOnly(folder: string): Promise<boolean> {
  return access(folder, constants.W_OK).then(
    () => false,
    (error: unknown) => systemCodeOf(error) === 'EROFS',
  );
}

/** Returns the names in a folder; none if there is no folder. */
export async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: unknown) => {
    if (['ENOENT', 'ENOTDIR'].includes(systemCodeOf(error) ?? '')) return [];
    throw error;
  });
}

/** Returns the content of a file in a folder; undefined without one. Throws for a link, which may lead anywhere. */
export async function bytesIn(folder: string, name: string, bytesMax: number): Promise<Uint8Array | undefined> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(join(folder, name), flags).catch((error: unknown) => {
    if (['ENOENT', 'ENOTDIR'].includes(systemCodeOf(error) ?? '')) return undefined;
    throw systemCodeOf(error) === 'ELOOP' ? new Error('is a link, expected a file') : error;
  });
  if (file === undefined) return undefined;
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new Error('expected a file');
    // The buffer has one byte more than allowed, to detect a larger file.
    const bytes = new Uint8Array(Math.min(found.size, bytesMax + 1));
    const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
    return bytes.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** Returns the text of a file; undefined without one. */
export async function textIn(path: string): Promise<string | undefined> {
  return readFileText(path).catch((error: unknown) => {
    if (['ENOENT', 'ENOTDIR'].includes(systemCodeOf(error) ?? '')) return undefined;
    throw error;
  });
}
