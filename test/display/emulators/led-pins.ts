import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import type { Picture } from '../pictures.ts';

const SOURCE = join(import.meta.dirname, 'led-pins.c');

const HEAD_BYTES = 8;
const EVENT_BYTES = 8;
/** Of the BCM2711: what a write sets, clears, or has the PWM send. */
const GPIO_SET = 0x20001c;
const GPIO_CLEAR = 0x200028;
const PWM_CONTROL = 0x20c000;
const PWM_FIFO = 0x20c018;
const PWM_ENABLED = 1;

/** Wires of an Adafruit bonnet whose pin 4 is soldered to 18 (adafruit-hat-pwm): pin of each line of a panel. */
const CLOCK = 17;
const STROBE = 21;
const ADDRESS = [22, 26, 27, 20, 24];
const UPPER = [5, 13, 6];
const LOWER = [12, 16, 23];

/**
 * Compiles the pins of a Raspberry Pi, to be preloaded into the process with the addon. `triplet` names Debian's compiler
 * for another machine.
 * @throws with what the compiler says
 */
export function compilePins(out: string, triplet?: string): string {
  const compiler = triplet === undefined ? 'gcc' : `${triplet}-gcc`;
  const flags = ['-O2', '-Wall', '-Wextra', '-Werror', '-shared', '-fPIC'];
  const { status, stderr } = spawnSync(compiler, [...flags, '-o', out, SOURCE], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${compiler}: ${stderr}`);
  return out;
}

/** One pulse of light: what the lit rows showed, and for how long in ticks of the PWM. */
interface Pulse {
  row: number;
  ticks: number;
  /** Levels of the pins as each column was clocked in, the newest last. */
  columns: Int32Array;
}

/**
 * What panels with `cols` LEDs in a line (of the whole chain) and `rows` rows show by a recording of their pins: each LED
 * as bright as the share of its row's light in which it was lit. Undefined before all rows were lit by one refresh.
 */
export function shownBy(recording: Buffer, { cols, rows }: { cols: number; rows: number }): Picture | undefined {
  const refresh = lastRefresh(pulsesIn(recording, cols), rows / 2);
  if (refresh === undefined) return undefined;
  const light = new Float64Array(rows * cols * 3);
  const whole = new Float64Array(rows / 2);
  for (const { row, ticks, columns } of refresh) {
    whole[row] = (whole[row] ?? 0) + ticks;
    for (const [x, level] of columns.entries()) {
      for (const [colours, y] of [
        [UPPER, row],
        [LOWER, row + rows / 2],
      ] as const) {
        for (const [channel, pin] of colours.entries()) {
          const at = (y * cols + x) * 3 + channel;
          if ((level >> pin) & 1) light[at] = (light[at] ?? 0) + ticks;
        }
      }
    }
  }
  const data = new Uint8Array(rows * cols * 4).fill(255);
  for (let pixel = 0; pixel < rows * cols; pixel += 1) {
    const row = Math.floor(pixel / cols) % (rows / 2);
    for (let channel = 0; channel < 3; channel += 1) {
      data[pixel * 4 + channel] = Math.round((255 * (light[pixel * 3 + channel] ?? 0)) / (whole[row] ?? 1));
    }
  }
  return { width: cols, height: rows, data };
}

/** What the panels did by the writes in a ring that is written on while it is read, oldest first. */
function pulsesIn(recording: Buffer, cols: number): Pulse[] {
  const capacity = (recording.length - HEAD_BYTES) / EVENT_BYTES;
  const written = Number(recording.readBigUInt64LE());
  const pulses: Pulse[] = [];
  let levels = 0;
  let ticks = 0;
  const clocked = new Int32Array(cols);
  let latched = new Int32Array(cols);
  for (let event = Math.max(0, written - capacity); event < written; event += 1) {
    const at = HEAD_BYTES + (event % capacity) * EVENT_BYTES;
    const value = recording.readInt32LE(at);
    const register = recording.readUInt32LE(at + 4);
    const before = levels;
    if (register === GPIO_SET) levels |= value;
    else if (register === GPIO_CLEAR) levels &= ~value;
    else if (register === PWM_FIFO) ticks += value;
    else if (register === PWM_CONTROL && value & PWM_ENABLED) {
      pulses.push({ row: rowOf(levels), ticks, columns: latched });
      ticks = 0;
    }
    const rises = (pin: number) => ((levels & ~before) >> pin) & 1;
    if (rises(CLOCK)) {
      clocked.copyWithin(0, 1);
      clocked[cols - 1] = levels;
    }
    if (rises(STROBE)) latched = clocked.slice();
  }
  return pulses;
}

function rowOf(levels: number): number {
  return ADDRESS.reduce((row, pin, bit) => row | (((levels >> pin) & 1) << bit), 0);
}

/** The newest run of pulses from the first row to the last. */
function lastRefresh(pulses: readonly Pulse[], rowsLit: number): Pulse[] | undefined {
  const starts = pulses.flatMap(({ row }, index) => (row === 0 && (pulses[index - 1]?.row ?? 1) !== 0 ? [index] : []));
  const [from, to] = [starts.at(-2), starts.at(-1)];
  if (from === undefined || to === undefined) return undefined;
  const refresh = pulses.slice(from, to);
  return new Set(refresh.map(({ row }) => row)).size === rowsLit ? refresh : undefined;
}
