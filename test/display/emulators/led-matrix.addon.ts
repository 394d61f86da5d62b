import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What the addon does wrong, and at which frame, counted from 1. */
export interface Misbehaviour {
  at: number;
  how: 'crash' | 'hang' | 'throw' | 'exit';
}

/** The defaults of rpi-led-matrix 1.15. */
const MATRIX_DEFAULTS = {
  brightness: 100,
  chainLength: 1,
  cols: 32,
  disableHardwarePulsing: false,
  hardwareMapping: 'regular',
  inverseColors: false,
  ledRgbSequence: 'RGB',
  limitRefreshRateHz: 0,
  multiplexing: 0,
  panelType: '',
  parallel: 1,
  pixelMapperConfig: '',
  pwmBits: 11,
  pwmDitherBits: 0,
  pwmLsbNanoseconds: 130,
  rowAddressType: 0,
  rows: 32,
  scanMode: 0,
  showRefreshRate: false,
};
const RUNTIME_DEFAULTS = { daemon: 0, doGpioInit: true, dropPrivileges: 1, gpioSlowdown: 1 };

/**
 * A stand-in for the class of rpi-led-matrix, for the child process only: it ends its process where the real one does,
 * also where that merely might, and writes what the panels show into `folder` at each `sync`.
 */
export function strictLedMatrix(folder: string, misbehaviour?: Misbehaviour) {
  return class LedMatrix {
    readonly #width: number;
    readonly #height: number;
    #canvas: Buffer;
    #frames = 0;

    static defaultMatrixOptions() {
      return { ...MATRIX_DEFAULTS };
    }

    static defaultRuntimeOptions() {
      return { ...RUNTIME_DEFAULTS };
    }

    constructor(matrix: typeof MATRIX_DEFAULTS, runtime: typeof RUNTIME_DEFAULTS) {
      expectSameShape(matrix, MATRIX_DEFAULTS);
      expectSameShape(runtime, RUNTIME_DEFAULTS);
      if (misbehaviour?.at === 0) misbehave(misbehaviour);
      const { cols, rows, chainLength, parallel, pixelMapperConfig: mapper } = matrix;
      const folded = mapper !== '';
      this.#width = folded ? cols : cols * chainLength;
      this.#height = folded ? rows * chainLength * parallel : rows * parallel;
      this.#canvas = Buffer.alloc(this.#width * this.#height * 3);
      writeFileSync(join(folder, 'made.json'), JSON.stringify({ matrix, runtime, pid: process.pid }));
    }

    width() {
      return this.#width;
    }

    height() {
      return this.#height;
    }

    drawBuffer(buffer: unknown) {
      const fits = Buffer.isBuffer(buffer) && buffer.length === this.#width * this.#height * 3;
      if (!fits) process.abort();
      else buffer.copy(this.#canvas);
      return this;
    }

    clear() {
      this.#canvas.fill(0);
      return this;
    }

    sync() {
      this.#frames += 1;
      if (misbehaviour?.at === this.#frames) misbehave(misbehaviour);
      const shown = { width: this.#width, height: this.#height, rgb: this.#canvas.toString('base64') };
      writeFileSync(join(folder, 'shown.tmp'), JSON.stringify({ ...shown, frames: this.#frames }));
      renameSync(join(folder, 'shown.tmp'), join(folder, 'shown.json'));
    }
  };
}

function expectSameShape(given: object, wanted: object): void {
  const shape = (it: object) =>
    Object.entries(it)
      .map(([key, value]) => `${key}: ${typeof value}`)
      .toSorted()
      .join();
  if (shape(given) !== shape(wanted)) throw new Error(`options are { ${shape(given)} }, expected { ${shape(wanted)} }`);
}

function misbehave({ how }: Misbehaviour): void {
  if (how === 'throw') throw new Error('Failed to sync canvas buffer with matrix.');
  if (how === 'exit') process.exit(1);
  if (how === 'crash') {
    process.stderr.write('Must run as root to be able to access /dev/mem\n');
    process.kill(process.pid, 'SIGSEGV');
  }
  // Blocks the process, as a call that does not come back does; a crash may take a moment to arrive.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}
