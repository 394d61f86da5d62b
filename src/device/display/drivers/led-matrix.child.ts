/**
 * This program runs the LED matrix addon, which ends its process on many faults. It reads messages from stdin, each
 * after its length in 4 bytes: first the setup as JSON, then frames of 3 bytes per pixel. It answers each with a line
 * of JSON on file descriptor 3. It ends with stdin, and the panels are then dark, because LEDs show only what is sent
 * all the time.
 */
import { writeSync } from 'node:fs';
import { reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import { LENGTH_BYTES } from '../io/child.ts';
import { type LedMatrixAnswer, type LedMatrixSetup, ledMatrixSetup } from './led-matrix.options.ts';

const ANSWERS_FD = 3;
/**
 * Node reports these codes for a missing module, and for a missing file that the module should have been compiled to.
 */
const NOT_INSTALLED = new Set(['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND']);
const MESSAGE_BYTES_MAX = 4 * 1024 * 1024;

/** Describes the part of the addon that this program uses. */
interface Matrix {
  drawBuffer(buffer: Buffer): unknown;
  clear(): unknown;
  sync(): unknown;
  width(): number;
  height(): number;
}
interface Addon {
  LedMatrix: {
    new (matrix: object, runtime: object): Matrix;
    defaultMatrixOptions(): object;
    defaultRuntimeOptions(): object;
  };
}

function answer(value: LedMatrixAnswer): void {
  writeSync(ANSWERS_FD, `${JSON.stringify(value)}\n`);
}

/** Returns the first installed addon. If none is installed, throws the error of the first. */
async function load(addons: readonly string[]): Promise<Addon> {
  let missing: unknown;
  for (const addon of addons) {
    try {
      return (await import(addon)) as Addon;
    } catch (error) {
      if (!NOT_INSTALLED.has(systemCodeOf(error) ?? '')) throw error;
      missing ??= error;
    }
  }
  throw missing;
}

async function openMatrix({ addons, width, height, matrix, runtime }: LedMatrixSetup): Promise<Matrix> {
  const { LedMatrix } = await load(addons);
  const made = new LedMatrix(
    { ...LedMatrix.defaultMatrixOptions(), ...matrix },
    { ...LedMatrix.defaultRuntimeOptions(), ...runtime },
  );
  if (runtime.dropPrivileges === 1 && process.getuid?.() === 0) {
    throw new Error(
      'root could not be given up; the unit needs CAP_SETUID and CAP_SETGID, or take dropPrivileges: false',
    );
  }
  if (made.width() === width && made.height() === height) return made;
  throw new Error(`the panels have ${made.width()} x ${made.height()} LEDs, expected ${width} x ${height}`);
}

async function* messages(): AsyncGenerator<Buffer> {
  let rest = Buffer.alloc(0);
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= LENGTH_BYTES) {
      const length = rest.readUInt32LE();
      if (length > MESSAGE_BYTES_MAX) throw new Error(`a message of ${length} bytes, at most ${MESSAGE_BYTES_MAX}`);
      if (rest.length < LENGTH_BYTES + length) break;
      yield rest.subarray(LENGTH_BYTES, LENGTH_BYTES + length);
      rest = rest.subarray(LENGTH_BYTES + length);
    }
  }
}

// Service managers and terminals send these signals to the whole group. Ending here would leave one bright row on the
// panels.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => undefined);

let matrix: Matrix | undefined;
try {
  for await (const message of messages()) {
    if (matrix === undefined) {
      matrix = await openMatrix(ledMatrixSetup.parse(JSON.parse(message.toString())));
    } else {
      const expected = matrix.width() * matrix.height() * 3;
      // The addon would abort at another length.
      if (message.length !== expected) throw new Error(`a frame of ${message.length} bytes, expected ${expected}`);
      matrix.drawBuffer(Buffer.from(message));
      matrix.sync();
    }
    answer({ ok: true });
  }
  matrix?.clear();
  matrix?.sync();
  process.exit(0);
} catch (error) {
  answer({ error: reasonOf(error) });
  process.exit(1);
}
