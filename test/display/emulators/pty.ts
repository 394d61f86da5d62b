import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, type FileHandle, mkdtemp, open, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { findProgram, PROGRAMS } from '../../support/programs.ts';

const APPEAR_TIMEOUT_MS = 10_000;
/** A start bit, eight data bits and a stop bit. */
const BITS_A_BYTE = 10;
const TICK_MS = 4;
/** What the sending side of a real port holds; a pty and socat's pipe hold more beside it. */
const WAITING_BYTES_MAX = 4_096;

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

/**
 * A plugged cable whose device end gives every portion of bytes from the driver to `receive`: at once, or no faster than
 * a wire of `baudRate` would bring them.
 */
export async function openPty(
  receive: (bytes: Uint8Array) => void,
  { baudRate }: { baudRate?: number | undefined } = {},
): Promise<Pty> {
  const folder = await mkdtemp(join(tmpdir(), 'paybox-pty-'));
  const path = join(folder, 'port');
  const socat = findProgram(PROGRAMS.socat) ?? PROGRAMS.socat.command;
  let plugged: { child: ChildProcess; holder: FileHandle } | undefined;

  const plug = async () => {
    const child = spawn(socat, ['-', `PTY,raw,echo=0,link=${path}`], { stdio: ['pipe', 'pipe', 'ignore'] });
    const { stdout } = child;
    const wire = baudRate === undefined ? undefined : new Wire(baudRate, receive, stdout);
    stdout.on('data', wire === undefined ? receive : (bytes: Uint8Array) => wire.take(bytes));
    stdout.once('close', () => wire?.cut());
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

/** A wire of so many bits a second: what it cannot carry yet waits, and `source` with it. */
class Wire {
  readonly #bytesAMs: number;
  readonly #receive: (bytes: Uint8Array) => void;
  readonly #source: Readable;
  #waiting: Uint8Array = new Uint8Array();
  /** Since when it has carried bytes without a pause, and how many. */
  #sinceMs = 0;
  #carried = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(baudRate: number, receive: (bytes: Uint8Array) => void, source: Readable) {
    this.#bytesAMs = baudRate / BITS_A_BYTE / 1_000;
    this.#receive = receive;
    this.#source = source;
  }

  take(bytes: Uint8Array): void {
    this.#waiting = Buffer.concat([this.#waiting, bytes]);
    if (this.#waiting.length > WAITING_BYTES_MAX) this.#source.pause();
    if (this.#timer !== undefined) return;
    this.#sinceMs = performance.now();
    this.#carried = 0;
    this.#timer = setInterval(() => this.#carry(), TICK_MS);
  }

  /** Nothing more arrives. */
  cut(): void {
    clearInterval(this.#timer);
  }

  #carry(): void {
    const due = Math.floor((performance.now() - this.#sinceMs) * this.#bytesAMs) - this.#carried;
    const part = this.#waiting.subarray(0, due);
    if (part.length === 0) return;
    this.#carried += part.length;
    this.#waiting = this.#waiting.subarray(part.length);
    if (this.#waiting.length <= WAITING_BYTES_MAX) this.#source.resume();
    if (this.#waiting.length === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    this.#receive(part);
  }
}

async function appeared(path: string, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + APPEAR_TIMEOUT_MS;
  while (!(await stat(path).catch(() => undefined))?.isCharacterDevice()) {
    if (child.exitCode !== null || performance.now() > deadline) throw new Error(`socat made no port at ${path}`);
    await delay(2);
  }
}
