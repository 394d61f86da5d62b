import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { systemClock, withDeadline } from '../../lib/clock.ts';
import { ConfigError, PayboxError, reasonOf } from '../../lib/errors.ts';
import { readFileBytes } from '../../lib/files.ts';
import type { BoxClient } from './clients/box.ts';
import type { Picture } from './pictures.ts';
import { decodePicture, encodePicture, readQr, readQrInPhotograph } from './pictures.ts';
import type { Capture, Panel, Probe } from './target.ts';

const PICTURE_BYTES_MAX = 64_000_000;
const COMMAND_TIMEOUT_MS = 30_000;

/** Returns a probe that reads the box's own `/screen.png`. */
export function screenProbe(): Probe {
  const see = seeing(readQr);
  return {
    name: 'screen',
    capture: async (box) => {
      const file = await box.picture();
      return file === undefined ? undefined : see(file);
    },
  };
}

/**
 * Returns a decoder of picture files that remembers the newest. A waiting step asks many times for a screen that has
 * not changed.
 */
function seeing(readQrIn: (picture: Picture) => Promise<string | undefined>): (file: Uint8Array) => Promise<Capture> {
  let newest: Capture | undefined;
  return async (file) => {
    if (newest !== undefined && Buffer.compare(newest.file, file) === 0) return newest;
    const picture = await decodePicture(file);
    newest = { file, picture, qr: await readQrIn(picture) };
    return newest;
  };
}

/**
 * Makes a probe from `screen`, `file:PATH` (a picture file that another program updates),
 * `framebuffer:PATH:WIDTHxHEIGHTxBITS`, or a shell command that prints a picture, for example of a camera. The command
 * gets the terminalCode in PAYBOX_BOX and the origin of the box's pages in PAYBOX_BOX_URL. Throws ConfigError.
 */
export function probeOf(text: string): Probe {
  if (text === 'screen') return screenProbe();
  const [, kind, rest = ''] = /^(file|framebuffer):(.+)$/.exec(text) ?? [];
  if (kind === 'file') return photographProbe(text, () => orNoPicture(rest, readFileBytes(rest)));
  if (kind === 'framebuffer') return framebufferProbe(text, rest);
  if (text.trim() === '') throw new ConfigError('--probe: expected screen, file:…, framebuffer:… or a command');
  return photographProbe(text, (box) => commandOutput(text, box));
}

function photographProbe(name: string, take: (box: BoxClient) => Promise<Uint8Array>): Probe {
  const see = seeing(readQrInPhotograph);
  return { name, capture: async (box) => see(await take(box)) };
}

function framebufferProbe(name: string, text: string): Probe {
  const [, path = '', width, height, bits] = /^(.+):(\d{1,5})x(\d{1,5})x(16|32)$/.exec(text) ?? [];
  if (path === '') throw new ConfigError(`--probe ${name}: expected framebuffer:PATH:WIDTHxHEIGHTx16 or …x32`);
  const geometry = { width: Number(width), height: Number(height), bytesPerPixel: Number(bits) / 8 };
  return {
    name,
    capture: async () => {
      const picture = framebufferPicture(await orNoPicture(path, readFile(path)), geometry);
      return { file: await encodePicture(picture), picture, qr: await readQr(picture) };
    },
  };
}

/** Decodes little-endian RGB565, or blue, green, red and an unused byte. Throws PayboxError when there are too few bytes. */
export function framebufferPicture(
  bytes: Uint8Array,
  { width, height, bytesPerPixel }: { width: number; height: number; bytesPerPixel: number },
): Picture {
  if (bytes.length < width * height * bytesPerPixel) {
    throw new PayboxError('NO_PICTURE', `the framebuffer has ${bytes.length} bytes, too few for ${width}x${height}`, {
      severity: 'retryable',
    });
  }
  const data = new Uint8Array(width * height * 4).fill(255);
  for (let pixel = 0; pixel < width * height; pixel += 1) {
    const from = pixel * bytesPerPixel;
    const word = (bytes[from] ?? 0) | ((bytes[from + 1] ?? 0) << 8);
    const rgb =
      bytesPerPixel === 2
        ? [((word >> 11) & 31) * 8.226, ((word >> 5) & 63) * 4.048, (word & 31) * 8.226]
        : [bytes[from + 2] ?? 0, bytes[from + 1] ?? 0, bytes[from] ?? 0];
    data.set(rgb.map(Math.round), pixel * 4);
  }
  return { width, height, data };
}

function orNoPicture(path: string, reading: Promise<Uint8Array>): Promise<Uint8Array> {
  return reading.catch((error: unknown) => {
    throw new PayboxError('NO_PICTURE', `${path} cannot be read: ${reasonOf(error)}`, { severity: 'retryable' });
  });
}

/** Returns the output of a command. */
async function commandOutput(command: string, { terminalCode, url }: BoxClient): Promise<Uint8Array> {
  // The command gets its own process group. Children of the shell hold the pipe open and must end with it.
  const child = spawn(command, {
    shell: true,
    detached: true,
    env: { ...process.env, PAYBOX_BOX: terminalCode, PAYBOX_BOX_URL: url },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const failed = (why: string) =>
    new PayboxError('NO_PICTURE', `the command of --probe ${why}: ${command}`, { severity: 'retryable' });
  const stopped = (why: string) => {
    child.stdout.destroy();
    if (child.pid !== undefined) killGroup(child.pid);
    return failed(why);
  };
  const ended = new Promise<Uint8Array>((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > PICTURE_BYTES_MAX) reject(stopped('printed too much'));
      else chunks.push(chunk);
    });
    child.on('error', (error) => reject(failed(reasonOf(error))));
    child.on('close', (code, signal) => {
      if (code === 0) resolve(Buffer.concat(chunks));
      else reject(failed(`ended with ${code ?? signal}`));
    });
  });
  const picture = await withDeadline(systemClock, COMMAND_TIMEOUT_MS, ended);
  if (picture === undefined) throw stopped('took too long');
  return picture;
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch (error) {
    // ESRCH: the group has already ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Returns a probe that captures what the emulated panels draw from the bytes on their wires. */
export function panelProbe(panels: ReadonlyMap<string, Panel>): Probe {
  return {
    name: 'panel',
    capture: async ({ terminalCode }) => {
      const panel = panels.get(terminalCode);
      if (panel === undefined) return undefined;
      const picture = panel.picture();
      const seen = { file: await encodePicture(picture), picture };
      if (panel.drawsQr) return { ...seen, qr: await readQr(picture) };
      return { ...seen, qr: undefined, noQrReason: `${panel.name} shows no QR: expect text or state of this box` };
    },
  };
}
