import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, type Stats, statSync } from 'node:fs';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { ConfigError } from './errors.ts';
import { systemRandom } from './random.ts';
import { textOfFile } from './text-file.ts';

const OWNER_ONLY = 0o600;
const { O_RDONLY, O_NONBLOCK } = constants;

/** Something else is in the place of a file: opening it as one could wait for ever, or do something to a device. */
export class NotAFileError extends ConfigError {
  /** The kind of what stands there, in words, as `a folder`. */
  readonly what: string;

  constructor(path: string, what: string) {
    super(`${path} is ${what}, expected a file`, 'move it away, or name another file');
    this.name = 'NotAFileError';
    this.what = what;
  }
}

/** Names anything but a file in words; undefined for a file. */
function otherThanFile(stats: Stats): string | undefined {
  if (stats.isFile()) return undefined;
  if (stats.isDirectory()) return 'a folder';
  if (stats.isFIFO()) return 'a FIFO (a named pipe)';
  if (stats.isSocket()) return 'a socket';
  return stats.isBlockDevice() ? 'a block device' : 'a device';
}

/** Throws NotAFileError unless it is a file. */
export function assertIsFile(path: string, stats: Stats): void {
  const other = otherThanFile(stats);
  if (other !== undefined) throw new NotAFileError(path, other);
}

/** Throws NotAFileError if something else than a file, or a link to one, is there; it does not open it. */
export function assertFile(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats !== undefined) assertIsFile(path, stats);
}

/** Opens a file to read it, at once whatever is there. Throws NotAFileError, or the system's error. */
export async function openFile(path: string): Promise<FileHandle> {
  assertIsFile(path, await stat(path));
  // Something else may have come there meanwhile.
  const file = await open(path, O_RDONLY | O_NONBLOCK);
  try {
    assertIsFile(path, await file.stat());
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** The bytes of a file. Throws as `openFile`. */
export async function readFileBytes(path: string): Promise<Buffer> {
  const file = await openFile(path);
  try {
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** The text of a file. Throws as `openFile`, and ConfigError for bytes that are not UTF-8. */
export async function readFileText(path: string): Promise<string> {
  return textOfFile(await readFileBytes(path), path);
}

/** The bytes of a file, before anything else is done. Throws as `openFile`. */
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

/** Places whose entries every program needs: a name there is no file of ours. */
const OF_SYSTEM = /^\/(?:dev\/(?:fd\/.*|[^/]+)|proc\/.*)$/;

/**
 * Throws NotAFileError unless a file may take this name: nothing has it, or a file, or a link, which then goes; what a link
 * leads to stays as it is.
 */
export function assertReplaceable(path: string): void {
  if (OF_SYSTEM.test(resolve(path))) throw new NotAFileError(path, 'of the system');
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats !== undefined && !stats.isSymbolicLink()) assertIsFile(path, stats);
}

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

/**
 * Replaces a file at once, in a folder in which others may write too: no link that somebody has put there is followed, and
 * nobody but the owner reads it unless it `isPublic`. Throws the system's error; nothing is left then.
 */
export async function replaceInSharedFolder(
  path: string,
  content: string | Uint8Array,
  { isPublic = false }: { isPublic?: boolean } = {},
): Promise<void> {
  const unfinished = `${path}.${systemRandom.uuid()}.tmp`;
  // `wx`: a file or link of this name is an error.
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
