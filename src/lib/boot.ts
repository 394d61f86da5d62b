import { execFile } from 'node:child_process';
import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Clock } from './clock.ts';

/** Describes one boot of the machine. The calendar clock may have stopped while the machine was off. */
export interface Boot {
  /** Identifies the boot. It is undefined where the system has no such name, for example on macOS. */
  readonly id: string | undefined;
  /** Milliseconds from the start of the boot to the moment at which the program's monotonic clock showed 0. */
  readonly offsetMs: number;
  /** Returns whether a time server has set the calendar clock since the start of the boot. Never throws. */
  isTimeRight(): Promise<boolean>;
}

/** Stands for a boot about which nothing is known. No time that an earlier run stored counts for it. */
export const UNKNOWN_BOOT: Boot = { id: undefined, offsetMs: 0, isTimeRight: async () => false };

/**
 * systemd-timesyncd makes this file after its first synchronization. The folder is in memory, so a reboot removes it.
 */
const SYNCHRONIZED = 'run/systemd/timesync/synchronized';
/** This folder exists where systemd runs the machine. Without systemd, `timedatectl` has no service to ask. */
const SYSTEMD = 'run/systemd/system';
const TIMEDATECTL_TIMEOUT_MS = 2_000;

/** Returns the boot in which this process runs. Tests pass their own `root` and `timedatectl`. */
export function thisBoot(clock: Clock, root = '/', timedatectl = 'timedatectl'): Boot {
  return {
    id: bootId(root),
    offsetMs: Number(process.hrtime.bigint() / 1_000_000n) - clock.monotonicMs(),
    isTimeRight: async () => existsSync(join(root, SYNCHRONIZED)) || (await isSynchronized(root, timedatectl)),
  };
}

/**
 * Returns the id of the boot. A container may have its own monotonic clock, so its time namespace is part of the id.
 */
function bootId(root: string): string | undefined {
  try {
    const id = readFileSync(join(root, 'proc/sys/kernel/random/boot_id'), 'utf8').trim();
    return id === '' ? undefined : [id, timeNamespace(root)].join(' ').trim();
  } catch {
    return undefined;
  }
}

/** Returns the time namespace of this process. Kernels before 5.6 have none. */
function timeNamespace(root: string): string {
  try {
    return readlinkSync(join(root, 'proc/self/ns/time'));
  } catch {
    return '';
  }
}

/** Asks systemd whether the kernel's clock is synchronized. Every time daemon sets that flag. */
async function isSynchronized(root: string, timedatectl: string): Promise<boolean> {
  if (!existsSync(join(root, SYSTEMD))) return false;
  const limits = { timeout: TIMEDATECTL_TIMEOUT_MS, killSignal: 'SIGKILL' } as const;
  const asked = promisify(execFile)(timedatectl, ['show', '-p', 'NTPSynchronized', '--value'], limits);
  return asked.then(
    ({ stdout }) => stdout.trim() === 'yes',
    () => false,
  );
}
