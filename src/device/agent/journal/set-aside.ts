import { copyFileSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import { assertFile } from '../../../lib/files.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Entry } from '../../box/entry.ts';
import { readEntries, type UnusableReason } from './file.ts';
import { COMPANIONS } from './place.ts';

/** The box stores this many set-aside journals for a technician, and deletes the oldest. */
export const SET_ASIDE_MAX = 5;

/** A copy has at most this size, because the folder for temporary files may be in memory. */
const COPY_BYTES_MAX = 64 * 1_048_576;

/** Returns names of the set-aside journals in `folder`, oldest first by the time in their names. */
export function namesAside(folder: string, file: string): string[] {
  const timeIn = (name: string) =>
    name.startsWith(file) ? /^\.[a-z-]+-(\d{4}-[\dTZ-]+)$/.exec(name.slice(file.length))?.[1] : undefined;
  return readdirSync(folder)
    .flatMap((name) => ({ name, time: timeIn(name) ?? '' }))
    .filter(({ time }) => time !== '')
    .sort((a, b) => (a.time < b.time ? -1 : 1))
    .map(({ name }) => name);
}

/** Renames a journal, with the calendar time `wallMs` in its new name. Returns that name. */
export function setAside(folder: string, file: string, why: UnusableReason, wallMs: number): string {
  const others = namesAside(folder, file);
  for (const name of others.slice(0, Math.max(0, others.length + 1 - SET_ASIDE_MAX))) {
    for (const companion of COMPANIONS) rmSync(join(folder, name + companion), { recursive: true, force: true });
  }
  const time = new Date(wallMs).toISOString().replaceAll(/[:.]/g, '-');
  let name = `${file}.${why}-${time}`;
  for (let n = 2; existsSync(join(folder, name)); n += 1) name = `${file}.${why}-${time}-${n}`;
  for (const companion of COMPANIONS) moveIfThere(join(folder, file + companion), join(folder, name + companion));
  return name;
}

/**
 * Reads entries from a journal that is damaged or read-only, from a copy, so that the original stays unchanged. If no
 * copy can be made, reads the original without its write-ahead log. Empty when nothing can be read.
 */
export function salvage(path: string, terminalCode: string, log: Logger): Entry[] {
  if (!existsSync(path) || !isFile(path, log)) return [];
  const inPlace = pathToFileURL(path);
  inPlace.search = 'immutable=1';
  for (const read of [
    () => inACopy(path, (copy) => readEntries(copy, terminalCode)),
    () => readEntries(inPlace, terminalCode),
  ]) {
    try {
      return read();
    } catch (error) {
      log.warn('journal-unreadable', { file: path, reason: reasonOf(error) });
    }
  }
  return [];
}

function isFile(path: string, log: Logger): boolean {
  try {
    assertFile(path);
    return true;
  } catch (error) {
    log.warn('journal-unreadable', { file: path, reason: reasonOf(error) });
    return false;
  }
}

function inACopy<T>(path: string, work: (copy: string) => T): T {
  const { size } = statSync(path);
  assertFile(`${path}-wal`);
  if (size > COPY_BYTES_MAX) throw new Error(`${size} bytes are too many to copy`);
  const folder = mkdtempSync(join(tmpdir(), 'paybox-journal-'));
  try {
    const copy = join(folder, 'copy.db');
    copyFileSync(path, copy);
    if (existsSync(`${path}-wal`)) copyFileSync(`${path}-wal`, `${copy}-wal`);
    return work(copy);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function moveIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
  }
}
