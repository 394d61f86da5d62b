import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Picture } from '../pictures.ts';

export interface FakeFramebufferSettings {
  width: number;
  height: number;
  bitsPerPixel: number;
  strideBytes: number;
  /** fb0 when left out. */
  number?: number;
  name?: string;
  /** As in virtual_size: more than is visible, for page flipping. */
  virtualHeight?: number;
}

/** A byte that no frame is likely to leave in place. */
const UNTOUCHED = 0xa5;

/** A plain file with what the kernel tells of a framebuffer beside it, in a folder of its own that stands for `/`. */
export class FakeFramebuffer {
  readonly root: string;
  readonly node: string;
  readonly #settings: FakeFramebufferSettings;
  readonly #bytes: number;

  constructor(root: string, settings: FakeFramebufferSettings) {
    const {
      width,
      height,
      bitsPerPixel,
      strideBytes,
      number = 0,
      name = 'vc4drmfb',
      virtualHeight = height,
    } = settings;
    this.root = root;
    this.#settings = settings;
    this.#bytes = strideBytes * virtualHeight;
    this.node = join(root, `dev/fb${number}`);
    mkdirSync(join(root, 'dev'), { recursive: true });
    writeFileSync(this.node, Buffer.alloc(this.#bytes, UNTOUCHED));
    this.tell('name', name);
    this.tell('virtual_size', `${width},${virtualHeight}`);
    this.tell('bits_per_pixel', String(bitsPerPixel));
    this.tell('stride', String(strideBytes));
    this.tell('mode', '');
    this.tell('modes', `U:${width}x${height}p-60`);
    this.tell('blank', '');
    this.console('vtcon0', '(S) dummy device', '0');
    this.console('vtcon1', '(M) frame buffer device', '1');
  }

  /** Sets what one of the kernel's files says. */
  tell(attribute: string, text: string): void {
    const folder = join(this.root, `sys/class/graphics/fb${this.#settings.number ?? 0}`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, attribute), `${text}\n`);
  }

  console(entry: string, name: string, bind: string): void {
    const folder = join(this.root, 'sys/class/vtconsole', entry);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'name'), `${name}\n`);
    writeFileSync(join(folder, 'bind'), bind);
  }

  /** What stands in one of the kernel's files, by its path under sys/class. */
  told(path: string): string {
    return readFileSync(join(this.root, 'sys/class', path), 'utf8').trim();
  }

  /** `0` lit, `4` dark, empty when nobody has switched. */
  blank(): string {
    return this.told(`graphics/fb${this.#settings.number ?? 0}/blank`);
  }

  /** The memory of the device. Throws when it is not of its size any more: a real one cannot grow. */
  memory(): Buffer {
    const bytes = readFileSync(this.node);
    if (bytes.length !== this.#bytes) throw new Error(`${bytes.length} bytes of memory, not ${this.#bytes}`);
    return bytes;
  }

  /** Puts a value into the whole memory, as a console that draws over it would. */
  scribble(value = UNTOUCHED): void {
    writeFileSync(this.node, Buffer.alloc(this.#bytes, value), { flag: 'r+' });
  }

  /** From now on a fresh open meets a device that takes no byte. */
  refuseBytes(): void {
    rmSync(this.node);
    symlinkSync('/dev/full', this.node);
  }

  /** What a person sees. */
  picture(): Picture {
    const { width, height, bitsPerPixel, strideBytes } = this.#settings;
    const memory = this.memory();
    const data = new Uint8Array(width * height * 4).fill(255);
    for (let y = 0; y < height; y += 1) {
      for (let x = 0; x < width; x += 1) {
        const at = y * strideBytes + x * (bitsPerPixel / 8);
        data.set(bitsPerPixel === 16 ? rgbOf565(memory.readUInt16LE(at)) : rgbOf8888(memory, at), (y * width + x) * 4);
      }
    }
    return { width, height, data };
  }
}

function rgbOf565(value: number): number[] {
  const spread = (part: number, max: number) => Math.round((part * 255) / max);
  return [spread(value >> 11, 31), spread((value >> 5) & 63, 63), spread(value & 31, 31)];
}

function rgbOf8888(memory: Buffer, at: number): number[] {
  return [memory.readUInt8(at + 2), memory.readUInt8(at + 1), memory.readUInt8(at)];
}
