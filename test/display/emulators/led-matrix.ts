import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Picture } from '../pictures.ts';
import type { Misbehaviour } from './led-matrix.addon.ts';

const ADDON = pathToFileURL(join(import.meta.dirname, 'led-matrix.addon.ts')).href;

/** Pixels on a side of the square that one LED lights, and the radius of its round dot in it. */
const PITCH = 8;
const DOT_RADIUS = 3.4;

/** What the panels show, and how many frames they have been given. */
export interface Shown extends Picture {
  frames: number;
}

/** A folder that stands for a Raspberry Pi with panels: its model, its kernel modules, and a strict addon. */
export class FakeLedMatrix {
  /** The stand-in keeps root, where a test has it: it writes into this folder. */
  readonly options: { root: string; addon: string; dropPrivileges: boolean };
  readonly #folder: string;

  constructor(folder: string, model = 'Raspberry Pi 4 Model B Rev 1.4', misbehaviour?: Misbehaviour) {
    this.#folder = folder;
    mkdirSync(join(folder, 'proc/device-tree'), { recursive: true });
    if (model !== '') writeFileSync(join(folder, 'proc/device-tree/model'), `${model}\0`);
    writeFileSync(join(folder, 'proc/modules'), 'vc4 1 0 - Live 0x0\n');
    this.misbehave(misbehaviour);
    this.options = { root: folder, addon: join(folder, 'addon.mjs'), dropPrivileges: false };
  }

  /** From the next start on. */
  misbehave(misbehaviour?: Misbehaviour): void {
    const args = [JSON.stringify(this.#folder), JSON.stringify(misbehaviour)].join(', ');
    const module = `import { strictLedMatrix } from '${ADDON}';\nexport const LedMatrix = strictLedMatrix(${args});\n`;
    writeFileSync(join(this.#folder, 'addon.mjs'), module);
  }

  loadModule(line: string): void {
    writeFileSync(join(this.#folder, 'proc/modules'), `${line}\n`);
  }

  /** What the addon was made with. */
  made(): { matrix: Record<string, unknown>; runtime: Record<string, unknown>; pid: number } {
    return JSON.parse(readFileSync(join(this.#folder, 'made.json'), 'utf8'));
  }

  shown(): Shown {
    const { width, height, rgb, frames } = JSON.parse(readFileSync(join(this.#folder, 'shown.json'), 'utf8'));
    const bytes: Buffer = Buffer.from(rgb, 'base64');
    const data = new Uint8Array(width * height * 4).fill(255);
    for (let pixel = 0; pixel < width * height; pixel += 1) {
      data.set(bytes.subarray(pixel * 3, pixel * 3 + 3), pixel * 4);
    }
    return { width, height, data, frames };
  }
}

/** The panels as a camera sees them: every LED a round dot on black. */
export function asDots({ width, height, data }: Picture): Picture {
  const out = new Uint8Array(width * PITCH * height * PITCH * 4).fill(0);
  const middle = (PITCH - 1) / 2;
  for (let y = 0; y < height * PITCH; y += 1) {
    for (let x = 0; x < width * PITCH; x += 1) {
      const at = (y * width * PITCH + x) * 4;
      out[at + 3] = 255;
      if (Math.hypot((x % PITCH) - middle, (y % PITCH) - middle) > DOT_RADIUS) continue;
      const led = (Math.floor(y / PITCH) * width + Math.floor(x / PITCH)) * 4;
      out.set(data.subarray(led, led + 3), at);
    }
  }
  return { width: width * PITCH, height: height * PITCH, data: out };
}
