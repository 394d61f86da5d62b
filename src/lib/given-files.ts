import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync, writeSync } from 'node:fs';
import { ConfigError, systemCodeOf } from './errors.ts';
import { assertIsFile, NotAFileError } from './files.ts';

const { O_RDONLY, O_WRONLY, O_CREAT, O_TRUNC, O_NONBLOCK } = constants;
const CHUNK_BYTES = 65_536;
const LOOK_EVERY_MS = 10;
/** The reader checks this many times: 1 s for a FIFO without a writer, 30 s for one that sends nothing. */
const NOBODY_MAX = 100;
const SILENT_MAX = 3_000;

/**
 * Returns the bytes that a person names for one command: a file, or the output of another program (`<(…)`,
 * `/dev/stdin`). It waits a limited time for that program. Throws NotAFileError for a folder, a socket or a disk, and
 * for more than `bytesMax`.
 */
export function readGiven(path: string, bytesMax: number): Buffer {
  const descriptor = openGiven(path, O_RDONLY);
  try {
    const isFile = fstatSync(descriptor).isFile();
    const chunks: Buffer[] = [];
    let total = 0;
    for (let looks = 0; ; ) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const bytes = orWait(() => readSync(descriptor, chunk, 0, chunk.length, null));
      if (bytes !== undefined && bytes > 0) {
        chunks.push(chunk.subarray(0, bytes));
        total += bytes;
        looks = 0;
        if (total > bytesMax) throw new ConfigError(`${path} has more than ${bytesMax} bytes`);
        continue;
      }
      const isAtEnd = bytes === 0 && (isFile || total > 0 || !fstatSync(descriptor).isFIFO());
      if (isAtEnd) return Buffer.concat(chunks, total);
      looks += 1;
      if (bytes === 0 && looks > NOBODY_MAX) throw new NotAFileError(path, 'a FIFO to which nobody writes');
      if (looks > SILENT_MAX) throw new NotAFileError(path, 'a pipe or a device from which nothing comes');
      pause();
    }
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Writes content to a file, to another program or to a device (`>(…)`, `/dev/null`). It waits a limited time for a slow
 * reader. Throws NotAFileError, also for a FIFO that nobody reads, and the system's error.
 */
export function writeGiven(path: string, content: string | Uint8Array): void {
  const descriptor = openGiven(path, O_WRONLY | O_CREAT | O_TRUNC);
  try {
    const bytes = Buffer.from(content);
    for (let at = 0, looks = 0; at < bytes.length; ) {
      const written = orWait(() => writeSync(descriptor, bytes, at));
      at += written ?? 0;
      looks = written === undefined ? looks + 1 : 0;
      if (looks > SILENT_MAX) throw new NotAFileError(path, 'a pipe that nobody reads any more');
      if (written === undefined) pause();
    }
  } finally {
    closeSync(descriptor);
  }
}

/** Throws NotAFileError for a folder, a socket or a disk, without opening it. */
export function assertMayGive(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats !== undefined) assertKind(path, stats);
}

/** Throws NotAFileError unless the path is a file, a FIFO, or a device such as `/dev/null` or a terminal. */
function assertKind(path: string, stats: Stats): void {
  if (!stats.isFIFO() && !stats.isCharacterDevice()) assertIsFile(path, stats);
}

function openGiven(path: string, flags: number): number {
  assertMayGive(path);
  let descriptor: number;
  try {
    descriptor = openSync(path, flags | O_NONBLOCK, 0o666);
  } catch (error) {
    if (systemCodeOf(error) === 'ENXIO') throw new NotAFileError(path, 'a FIFO that nobody reads');
    throw error;
  }
  try {
    assertKind(path, fstatSync(descriptor));
    return descriptor;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

/** Returns the result of `work`; undefined while the other side of a pipe is not ready. */
function orWait(work: () => number): number | undefined {
  try {
    return work();
  } catch (error) {
    if (systemCodeOf(error) === 'EAGAIN') return undefined;
    throw error;
  }
}

function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_EVERY_MS);
}
