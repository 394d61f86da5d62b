import { execFile } from 'node:child_process';
import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Clock } from './clock.ts';

/** The boot of the machine that a program runs on. A calendar clock may have stood still while the machine was off. */
export interface Boot {
  /** Identifies the boot; undefined where the system names none, as macOS. */
  readonly id: string | undefined;
  /** Milliseconds from the start of the boot to the moment at which the program's monotonic clock showed 0. */
  readonly offsetMs: number;
  /** Returns whether a time server has set the calendar clock since the start of the boot. Never throws. */
  isTimeRight(): Promise<boolean>;
}

/** A boot of which nothing is known: no time of an earlier run counts. */
export const UNKNOWN_BOOT: Boot = { id: undefined, offsetMs: 0, isTimeRight: async () => false };

/** systemd-timesyncd makes it at its first agreement with a time server; the folder is in memory. */
const SYNCHRONIZED = 'run/systemd/timesync/synchronized';
/** It is there where systemd runs the machine. Only then timedatectl has somebody to ask. */
const SYSTEMD = 'run/systemd/system';
const TIMEDATECTL_TIMEOUT_MS = 2_000;

/** The boot in which this process runs. `root` and `timedatectl` are other than the system's in tests. */
export function thisBoot(clock: Pick<Clock, 'monotonicMs'>, root = '/', timedatectl = 'timedatectl'): Boot {
  return {
    id: bootId(root),
    offsetMs: Number(process.hrtime.bigint() / 1_000_000n) - clock.monotonicMs(),
    isTimeRight: async () => existsSync(join(root, SYNCHRONIZED)) || (await isSynchronized(root, timedatectl)),
  };
}

/** A container may have a monotonic clock of its own, which begins anew with the container. */
function bootId(root: string): string | undefined {
  try {
    const id = readFileSync(join(root, 'proc/sys/kernel/random/boot_id'), 'utf8').trim();
    return id === '' ? undefined : [id, timeNamespace(root)].join(' ').trim();
  } catch {
    return undefined;
  }
}

/** Kernels before 5.6 have no time namespaces. */
function timeNamespace(root: string): string {
  try {
    return readlinkSync(join(root, 'proc/self/ns/time'));
  } catch {
    return '';
  }
}

/** Asks systemd, which reads the state of the kernel's clock: every daemon that follows a time server sets it. */
async function isSynchronized(root: string, timedatectl: string): Promise<boolean> {
  if (!existsSync(join(root, SYSTEMD))) return false;
  const limits = { timeout: TIMEDATECTL_TIMEOUT_MS, killSignal: 'SIGKILL' } as const;
  const asked = promisify(execFile)(timedatectl, ['show', '-p', 'NTPSynchronized', '--value'], limits);
  return asked.then(
    ({ stdout }) => stdout.trim() === 'yes',
    () => false,
  );
}
