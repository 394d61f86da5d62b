import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, type Stats, statSync } from 'node:fs';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { ConfigError } from './errors.ts';
import { systemRandom } from './random.ts';
import { textOfFile } from './text-file.ts';

const OWNER_ONLY = 0o600;
const { O_RDONLY, O_NONBLOCK } = constants;

/** Reports that a path names something other than a file. Opening it could wait forever, or act on a device. */
export class NotAFileError extends ConfigError {
  /** Names the kind in words, for example `a folder`. */
  readonly what: string;

  constructor(path: string, what: string) {
    super(`${path} is ${what}, expected a file`, 'move it away, or name another file');
    this.name = 'NotAFileError';
    this.what = what;
  }
}

/** Names anything but a file in words; returns undefined for a file. */
function otherThanFile(stats: Stats): string | undefined {
  if (stats.isFile()) return undefined;
  if (stats.isDirectory()) return 'a folder';
  if (stats.isFIFO()) return 'a FIFO (a named pipe)';
  if (stats.isSocket()) return 'a socket';
  return stats.isBlockDevice() ? 'a block device' : 'a device';
}

/** Throws NotAFileError unless `stats` describe a file. */
export function assertIsFile(path: string, stats: Stats): void {
  const other = otherThanFile(stats);
  if (other !== undefined) throw new NotAFileError(path, other);
}

/** Throws NotAFileError if the path exists but names neither a file nor a link to one. It does not open it. */
export function assertFile(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats !== undefined) assertIsFile(path, stats);
}

/** Opens a file for reading and never waits, whatever is there. Throws NotAFileError, or the system's error. */
export async function openFile(path: string): Promise<FileHandle> {
  assertIsFile(path, await stat(path));
  // Another program may have replaced the file since the check.
  const file = await open(path, O_RDONLY | O_NONBLOCK);
  try {
    assertIsFile(path, await file.stat());
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Returns the bytes of a file. Throws as `openFile` does. */
export async function readFileBytes(path: string): Promise<Buffer> {
  const file = await openFile(path);
  try {
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** Returns the text of a file. Throws as `openFile` does, and ConfigError for bytes that are not UTF-8. */
export async function readFileText(path: string): Promise<string> {
  return textOfFile(await readFileBytes(path), path);
}

/** Reads the bytes of a file synchronously. Throws as `openFile` does. */
export function readFileNow(path: string): Buffer {
  assertIsFile(path, statSync(path));
  const descriptor = openSync(path, O_RDONLY | O_NONBLOCK);
  try {
    assertIsFile(path, fstatSync(descriptor));
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Every program needs the entries in these places, so paybox never replaces one of them. */
const OF_SYSTEM = /^\/(?:dev\/(?:fd\/.*|[^/]+)|proc\/.*)$/;

/**
 * Throws NotAFileError unless paybox may write a file under this name. The name must be free, or name a file or a link.
 * Only the link is replaced, not its target.
 */
export function assertReplaceable(path: string): void {
  if (OF_SYSTEM.test(resolve(path))) throw new NotAFileError(path, 'of the system');
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats !== undefined && !stats.isSymbolicLink()) assertIsFile(path, stats);
}

/**
 * Replaces a file atomically, readable by its owner only. Settles when text and name are on the disk. Throws the
 * system's error; the old file is then unchanged.
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

/**
 * Replaces a file atomically in a folder where others may write. It follows no link, and only the owner can read the
 * file unless it `isPublic`. Throws the system's error and then leaves nothing behind.
 */
export async function replaceInSharedFolder(
  path: string,
  content: string | Uint8Array,
  { isPublic = false }: { isPublic?: boolean } = {},
): Promise<void> {
  const unfinished = `${path}.${systemRandom.uuid()}.tmp`;
  // With `wx`, an existing file or link of this name is an error.
  const file = await open(unfinished, 'wx', isPublic ? 0o666 : OWNER_ONLY);
  try {
    try {
      await file.writeFile(content);
    } finally {
      await file.close();
    }
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
}
