import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, type FileHandle, mkdtemp, open, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findProgram, PROGRAMS } from '../../support/programs.ts';

const APPEAR_TIMEOUT_MS = 10_000;

/** A serial cable: a pty on the driver's side, this object on the device's. */
export interface Pty {
  /** What the driver opens. */
  readonly path: string;
  /** Sends bytes to the driver. Nothing is sent while the cable is unplugged. */
  send(bytes: Uint8Array): void;
  /** Pulls the cable: the port is gone, and whoever has it open loses it. */
  unplug(): Promise<void>;
  /** Puts it back, under the same path. */
  plug(): Promise<void>;
  /** The device takes no more bytes: they pile up in the port until `thaw`. */
  freeze(): void;
  thaw(): void;
  /** Unplugs for good and removes what is left. */
  close(): Promise<void>;
}

/** A plugged cable whose device end gives every portion of bytes from the driver to `receive`. */
export async function openPty(receive: (bytes: Uint8Array) => void): Promise<Pty> {
  const folder = await mkdtemp(join(tmpdir(), 'paybox-pty-'));
  const path = join(folder, 'port');
  const socat = findProgram(PROGRAMS.socat) ?? PROGRAMS.socat.command;
  let plugged: { child: ChildProcess; holder: FileHandle } | undefined;

  const plug = async () => {
    const child = spawn(socat, ['-', `PTY,raw,echo=0,link=${path}`], { stdio: ['pipe', 'pipe', 'ignore'] });
    child.stdout.on('data', receive);
    child.stdin.on('error', () => {});
    await appeared(path, child);
    // socat ends when the last program closes the port; a real port stays.
    const holder = await open(path, constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
    plugged = { child, holder };
  };
  const unplug = async () => {
    if (plugged === undefined) return;
    const { child, holder } = plugged;
    plugged = undefined;
    // Its link goes first, as that of a device does; SIGKILL ends a frozen one too.
    await rm(path, { force: true });
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    await holder.close();
  };

  await plug();
  return {
    path,
    send: (bytes) => void plugged?.child.stdin?.write(bytes),
    plug,
    unplug,
    freeze: () => void plugged?.child.kill('SIGSTOP'),
    thaw: () => void plugged?.child.kill('SIGCONT'),
    close: async () => {
      await unplug();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function appeared(path: string, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + APPEAR_TIMEOUT_MS;
  while (!(await stat(path).catch(() => undefined))?.isCharacterDevice()) {
    if (child.exitCode !== null || performance.now() > deadline) throw new Error(`socat made no port at ${path}`);
    await delay(2);
  }
}
