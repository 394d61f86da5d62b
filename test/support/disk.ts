import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { systemCodeOf } from '../../src/lib/errors.ts';
import { temporaryFolder } from './net.ts';

const IMAGE_BYTES = 8 * 1_048_576;

/** A small file system mounted at `folder` until the test ends. */
export interface SmallDisk {
  readonly folder: string;
  /** Fills the disk. */
  fill(): void;
  /** Deletes the filling. */
  makeRoom(): void;
  /** Unmounts it, even while a program uses it; its files stay. */
  unplug(): void;
  plugIn(how?: 'ro' | 'rw'): void;
  /** Makes it read-only or writable; no file on it may be open for writing. */
  remount(how: 'ro' | 'rw'): void;
}

/** A disk of 1 MiB in memory. */
export async function memoryDisk(): Promise<SmallDisk> {
  const [folder, shelf] = [await temporaryFolder(), await temporaryFolder()];
  mount('-t', 'tmpfs', '-o', 'size=2m', 'paybox-test', shelf);
  onTestFinished(() => unmount(shelf));
  const remount = (how: string) => mount('-o', `remount,${how}`, shelf);
  return diskAt(folder, remount, (how) => {
    mount('--bind', shelf, folder);
    remount(how);
  });
}

/** A disk with a device's file system. `fail` makes it read-only at once, even during writes. */
export async function deviceDisk(): Promise<SmallDisk & { fail(): void }> {
  const [folder, image] = [await temporaryFolder(), join(await temporaryFolder(), 'disk.img')];
  format(image);
  const remount = (how: string) => mount('-o', `remount,${how}`, folder);
  const disk = diskAt(folder, remount, (how) => mount('-o', `loop,${how}`, image, folder));
  return { ...disk, fail: () => remount('abort') };
}

/** Whether to skip tests that need their own disk; `note` has the reason for the test's name. */
export function withoutDisks(kind: 'memory' | 'device'): { missing: boolean; note: string } {
  const folder = mkdtempSync(join(tmpdir(), 'paybox-disk-'));
  const image = `${folder}.img`;
  try {
    if (kind === 'device') format(image);
    mount(...(kind === 'device' ? ['-o', 'loop', image] : ['-t', 'tmpfs', 'paybox-test']), folder);
    unmount(folder);
    return { missing: false, note: '' };
  } catch (error) {
    return { missing: true, note: ` (a disk cannot be mounted here: ${String(error).split('\n', 1)}; run as root)` };
  } finally {
    rmdirSync(folder);
    rmSync(image, { force: true });
  }
}

function diskAt(folder: string, remount: SmallDisk['remount'], plugIn: (how: 'ro' | 'rw') => void): SmallDisk {
  const ballast = join(folder, 'ballast');
  plugIn('rw');
  onTestFinished(() => unmount(folder));
  return {
    folder,
    fill: () => fillDisk(ballast),
    makeRoom: () => rmSync(ballast),
    unplug: () => unmount(folder),
    plugIn: (how = 'rw') => plugIn(how),
    remount,
  };
}

/** Makes this file as large as its disk has room for. Delete it to make room again. */
export function fillDisk(ballast: string): void {
  const file = openSync(ballast, 'a');
  for (const size of [1_048_576, 65_536, 4_096, 1]) while (couldWrite(file, size));
  closeSync(file);
}

function couldWrite(file: number, size: number): boolean {
  try {
    writeSync(file, Buffer.alloc(size, 0x42));
    return true;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOSPC') return false;
    throw error;
  }
}

function format(image: string): void {
  writeFileSync(image, '');
  truncateSync(image, IMAGE_BYTES);
  run('mkfs.ext4', ['-q', '-F', image]);
}

/** Runs `mount`. Throws what it says when it fails. */
export function mount(...args: string[]): void {
  run('mount', args);
}

/** Unmounts lazily: open files stay usable. Does nothing when nothing is mounted there. */
export function unmount(folder: string): void {
  spawnSync('umount', ['-l', folder]);
}

function run(command: string, args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(command, args, {
    env: { ...process.env, PATH: `${process.env.PATH ?? ''}:/usr/sbin:/sbin` },
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr.trim()}`);
}
