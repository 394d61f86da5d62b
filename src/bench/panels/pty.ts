import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, type FileHandle, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { systemClock } from '../../lib/clock.ts';
import { MissingPeerError } from '../../lib/errors.ts';
import { makeWorkFolder } from '../engine/work-folder.ts';

const APPEAR_TIMEOUT_MS = 10_000;
const LOOK_MS = 2;
const FIX = 'install socat, for instance with sudo apt-get install socat';

/** A serial cable. The driver opens the pty, and this object is the device's end. */
export interface Pty {
  /** The path that the driver opens. */
  readonly path: string;
  /** Sends bytes to the driver. Drops them while unplugged. */
  send(bytes: Uint8Array): void;
  /** Unplugs the cable: the port disappears and open handles fail. */
  unplug(): Promise<void>;
  /** Plugs it in again under the same path. Throws as `openPty` does. */
  plug(): Promise<void>;
  /** Stops the device from reading. Bytes pile up in the port until `thaw`. */
  freeze(): void;
  thaw(): void;
  /** Unplugs the cable for good and removes the files. */
  close(): Promise<void>;
}

type Receive = (bytes: Uint8Array) => void;

/** Carries bytes from the driver to the device: passes what `source` reads to `receive` until it closes. */
export type SerialLine = (source: Readable, receive: Receive) => void;

const atOnce: SerialLine = (source, receive) => source.on('data', receive);

/**
 * Opens a plugged cable. `receive` gets every portion of bytes at once, whatever baud rate the driver sets, unless `wire` delays
 * them. Throws MissingPeerError when socat is not installed or creates no port.
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
    // The last program that closes the port ends socat. A real port stays, so this keeps the port open.
    const holder = await open(path, constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
    plugged = { child, holder };
  };
  const unplug = async () => {
    if (plugged === undefined) return;
    const { child, holder } = plugged;
    plugged = undefined;
    // The link goes first, as a real device's port disappears. SIGKILL also ends a frozen socat.
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
      throw new MissingPeerError('socat, which makes serial ports, is not installed', FIX, failed);
    if (child.exitCode !== null || systemClock.monotonicMs() > untilMs) {
      child.kill('SIGKILL');
      throw new MissingPeerError(`socat made no port at ${path}`, FIX);
    }
    await systemClock.sleep(LOOK_MS);
  }
}
