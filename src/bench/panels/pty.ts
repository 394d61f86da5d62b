import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, type FileHandle, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { systemClock } from '../../lib/clock.ts';
import { MissingPeerError } from '../../lib/errors.ts';
import { makeWorkFolder } from '../work-folder.ts';

const APPEAR_TIMEOUT_MS = 10_000;
const LOOK_MS = 2;
const FIX = 'install socat, for instance with sudo apt-get install socat';

/** A serial cable: a pty on the driver's side, this object on the device's. */
export interface Pty {
  /** What the driver opens. */
  readonly path: string;
  /** Sends bytes to the driver. Nothing is sent while the cable is unplugged. */
  send(bytes: Uint8Array): void;
  /** Pulls the cable: the port is gone, and whoever has it open loses it. */
  unplug(): Promise<void>;
  /** Puts it back, under the same path. Throws as `openPty` does. */
  plug(): Promise<void>;
  /** The device takes no more bytes: they pile up in the port until `thaw`. */
  freeze(): void;
  thaw(): void;
  /** Unplugs for good and removes what is left. */
  close(): Promise<void>;
}

type Receive = (bytes: Uint8Array) => void;

/** How bytes get from the driver's end to the device: what `source` reads goes to `receive`, until it closes. */
export type SerialLine = (source: Readable, receive: Receive) => void;

const atOnce: SerialLine = (source, receive) => source.on('data', receive);

/**
 * A plugged cable whose device end gives every portion of bytes from the driver to `receive`: as soon as they are there,
 * whatever baud rate the driver sets, unless there is another wire. Throws MissingPeerError where socat is not installed
 * or makes no port.
 */
export async function openPty(receive: Receive, wire: SerialLine = atOnce): Promise<Pty> {
  const folder = await makeWorkFolder('pty');
  const path = join(folder, 'port');
  let plugged: { child: ChildProcess; holder: FileHandle } | undefined;

  const plug = async () => {
    const child = spawn('socat', ['-', `PTY,raw,echo=0,link=${path}`], { stdio: ['pipe', 'pipe', 'ignore'] });
    wire(child.stdout, receive);
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
  const close = async () => {
    await unplug();
    await rm(folder, { recursive: true, force: true });
  };

  try {
    await plug();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    path,
    send: (bytes) => void plugged?.child.stdin?.write(bytes),
    plug,
    unplug,
    freeze: () => void plugged?.child.kill('SIGSTOP'),
    thaw: () => void plugged?.child.kill('SIGCONT'),
    close,
  };
}

async function appeared(path: string, child: ChildProcess): Promise<void> {
  let failed: unknown;
  child.once('error', (error) => {
    failed = error;
  });
  const untilMs = systemClock.monotonicMs() + APPEAR_TIMEOUT_MS;
  while (!(await stat(path).catch(() => undefined))?.isCharacterDevice()) {
    if (failed !== undefined)
      throw new MissingPeerError('there is no program socat, which makes serial ports', FIX, failed);
    if (child.exitCode !== null || systemClock.monotonicMs() > untilMs) {
      child.kill('SIGKILL');
      throw new MissingPeerError(`socat made no port at ${path}`, FIX);
    }
    await systemClock.sleep(LOOK_MS);
  }
}
