import { constants, type FileHandle, open, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import { displayFault } from '../fault.ts';
import { type BitsPerPixel, PIXEL_BYTES } from './pixel-bytes.ts';

/** Selects a framebuffer of the machine. If both are missing, it must have only one. */
export interface FramebufferChoice {
  /** The name, as in /sys/class/graphics/fb0/name. */
  name?: string | undefined;
  /** The device file, for example /dev/fb0. */
  device?: string | undefined;
}

/** The properties of a framebuffer, from the kernel. */
export interface FramebufferInfo {
  /** The device file. */
  node: string;
  /** Its folder in /sys/class/graphics. */
  folder: string;
  name: string;
  /** The visible pixels. */
  width: number;
  height: number;
  /** The bytes from the start of a row to the next, at least the bytes of its pixels. */
  strideBytes: number;
  bitsPerPixel: BitsPerPixel;
}

const SIDE_MAX_PX = 8192;
const STRIDE_MAX_BYTES = 4 * SIDE_MAX_PX;

const ABSENT_FIX =
  'enable the display in /boot/firmware/config.txt (dtoverlay=…) or load its driver (sudo modprobe …), ' +
  'then see cat /sys/class/graphics/fb*/name';

/**
 * Finds a framebuffer under `root`, which contains `sys` and `dev`. Throws a PayboxError `DISPLAY_FAULT` if there is
 * none, or if its depth is not 16 or 32 bits.
 */
export async function findFramebuffer(choice: FramebufferChoice, root: string): Promise<FramebufferInfo> {
  const all = await listFramebuffers(root);
  const { name, device } = choice;
  const fits = all.filter((it) => (name === undefined || it.name === name) && (device ?? it.device) === it.device);
  const [found, second] = fits;
  const wanted = `${name === undefined ? '' : ` named ${name}`}${device === undefined ? '' : ` at ${device}`}`;
  if (found === undefined) {
    const there = all.map((it) => `${it.device} (${it.name})`).join(', ') || 'none';
    throw displayFault(`there is no framebuffer${wanted}; the machine has: ${there}`, ABSENT_FIX);
  }
  if (second !== undefined) {
    const there = fits.map((it) => `${it.device} (${it.name})`).join(', ');
    throw displayFault(`several framebuffers fit: ${there}`, 'choose one by name, or by device where names are equal');
  }
  return infoOf(found, root);
}

interface Listed {
  device: string;
  folder: string;
  name: string;
}

/** Returns all framebuffers of the machine, by number. */
export async function listFramebuffers(root: string): Promise<Listed[]> {
  const graphics = join(root, 'sys/class/graphics');
  const entries = await readdir(graphics).catch(() => []);
  const numbered = entries.filter((entry) => /^fb\d+$/.test(entry)).toSorted();
  const listed = numbered.map(async (entry) => {
    const folder = join(graphics, entry);
    return { device: `/dev/${entry}`, folder, name: (await attribute(folder, 'name')) ?? '' };
  });
  return Promise.all(listed);
}

async function infoOf({ device, folder, name }: Listed, root: string): Promise<FramebufferInfo> {
  const bits = numberIn(await attribute(folder, 'bits_per_pixel'), 64);
  if (bits !== 16 && bits !== 32) {
    throw displayFault(
      `the framebuffer ${name} has ${bits ?? 'an unknown number of'} bits a pixel, and 16 or 32 are supported`,
      'set its depth, as with video=…-32 on the kernel command line or framebuffer_depth in config.txt',
    );
  }
  const [virtualWidth, virtualHeight] = ((await attribute(folder, 'virtual_size')) ?? '')
    .split(',')
    .map((text) => numberIn(text, SIDE_MAX_PX));
  const strideBytes = numberIn(await attribute(folder, 'stride'), STRIDE_MAX_BYTES);
  if (virtualWidth === undefined || virtualHeight === undefined || strideBytes === undefined) {
    throw displayFault(`the framebuffer ${name} does not tell its size`, `see virtual_size and stride in ${folder}`);
  }
  const { width, height } = await visibleSize(folder, { width: virtualWidth, height: virtualHeight });
  if (strideBytes < width * PIXEL_BYTES[bits]) {
    throw displayFault(
      `the framebuffer ${name} says that ${strideBytes} bytes hold ${width} pixels of ${bits} bits`,
      '',
    );
  }
  return { node: join(root, device), folder, name, width, height, strideBytes, bitsPerPixel: bits };
}

/**
 * Returns the visible size. For page flipping the memory may have more rows. The mode gives their number, if the driver
 * has one.
 */
async function visibleSize(folder: string, virtual: { width: number; height: number }) {
  const mode = (await attribute(folder, 'mode')) || (await attribute(folder, 'modes'))?.split('\n')[0];
  const [, width, height] = /^\w:(\d+)x(\d+)/.exec(mode ?? '')?.map(Number) ?? [];
  const told = width !== undefined && height !== undefined && width > 0 && height > 0;
  return told && width <= virtual.width && height <= virtual.height ? { width, height } : virtual;
}

async function attribute(folder: string, name: string): Promise<string | undefined> {
  const text = await readFile(join(folder, name), 'utf8').catch(() => undefined);
  return text?.trim();
}

function numberIn(text: string | undefined, max: number): number | undefined {
  const value = text === undefined || text === '' ? Number.NaN : Number(text);
  return Number.isInteger(value) && value > 0 && value <= max ? value : undefined;
}

/** Represents an open framebuffer. */
export interface Framebuffer {
  /** Writes whole rows from row `row`. Throws a PayboxError `DISPLAY_FAULT`. */
  writeRows(bytes: Uint8Array, row: number): Promise<void>;
  /** Switches the backlight off or on. Returns false when the device refuses. */
  blank(dark: boolean): Promise<boolean>;
  close(): Promise<void>;
}

const FB_BLANK_UNBLANK = '0';
const FB_BLANK_POWERDOWN = '4';

/** Opens the device file for plain positional writes. Throws a PayboxError `DISPLAY_FAULT`. */
export async function openFramebuffer(info: FramebufferInfo): Promise<Framebuffer> {
  const handle = await open(info.node, constants.O_WRONLY).catch((error: unknown) => {
    const fix =
      systemCodeOf(error) === 'ENOENT'
        ? ABSENT_FIX
        : 'let the user that runs the agent use it: sudo usermod -aG video USER, or SupplementaryGroups=video in its unit';
    throw displayFault(`the framebuffer ${info.node} cannot be opened: ${reasonOf(error)}`, fix, error);
  });
  return {
    writeRows: (bytes, row) => writeAll(handle, bytes, row * info.strideBytes, info),
    blank: (dark) =>
      writeFile(join(info.folder, 'blank'), dark ? FB_BLANK_POWERDOWN : FB_BLANK_UNBLANK, {
        flag: constants.O_WRONLY,
      }).then(
        () => true,
        () => false,
      ),
    close: () => handle.close(),
  };
}

async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number, info: FramebufferInfo): Promise<void> {
  const fix = 'check the cable of the screen, and dmesg';
  for (let written = 0; written < bytes.length; ) {
    const left = bytes.length - written;
    const { bytesWritten } = await handle.write(bytes, written, left, position + written).catch((error: unknown) => {
      throw displayFault(`the framebuffer ${info.name} takes no pixels: ${reasonOf(error)}`, fix, error);
    });
    if (bytesWritten === 0) throw displayFault(`the framebuffer ${info.name} ends at byte ${position + written}`, fix);
    written += bytesWritten;
  }
}
