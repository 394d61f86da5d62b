import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Light, lightOptions, openLight } from '../../src/device/voice/light.ts';
import { eventually } from '../support/net.ts';
import { collectingIo, movableClock, rewriteScript, writeScript } from './support.ts';

/** A gpioset that takes the command line of one version only, holds the line until it is killed, and keeps what it did. */
const HOLD = [
  // First, and without another program: on a busy machine this may be all that it comes to before it is killed.
  'echo "$*" >> "$HERE/log"',
  'mkdir "$HERE/line" 2>/dev/null || { other=$(cat "$HERE/line/id"); kill -0 "$other" 2>/dev/null && echo "$other busy" >> "$HERE/log"; }',
  'mkdir -p "$HERE/line"; echo $$ > "$HERE/line/id"',
  'exec sleep 1000',
];
const V1 = [
  'if [ "$1" = --version ]; then echo "gpioset (libgpiod) v1.6.3"; exit 0; fi',
  '[ "$1" = --mode=signal ] || { echo "unrecognized option $1" >&2; exit 1; }',
  ...HOLD,
];
const V2 = [
  'if [ "$1" = --version ]; then echo "gpioset (libgpiod) v2.2.1"; exit 0; fi',
  'case "$*" in *--mode*) echo "unrecognized option" >&2; exit 1;; esac',
  ...HOLD,
];

/** Long enough for some changes, however slowly their programs start. */
const LONG = { durationMs: 30_000 };

function lit(command: string, more: object = {}) {
  const io = collectingIo();
  // Each program needs the time to start, and to write what it was told, before it is killed for the next.
  const options = { line: 17, command, onMs: 1_000, offMs: 1_000, durationMs: 3_000, ...more };
  const light = openLight(lightOptions.parse(options), io);
  onTestFinished(() => light.close());
  return { light, io };
}

const logOf = async (command: string) =>
  (await readFile(join(dirname(command), 'log'), 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');

async function dark(command: string): Promise<void> {
  const file = join(dirname(command), 'line', 'id');
  // Written after the line of its log.
  const id = Number(await eventually('its process', () => readFile(file, 'utf8').catch(() => undefined)));
  await eventually('the last gpioset is gone', () => {
    try {
      process.kill(id, 0);
      return false;
    } catch {
      return true;
    }
  });
}

/** Flashes a light, and puts it out after so many changes. */
async function flashed(light: Light, command: string, changes: number): Promise<string[]> {
  light.flash();
  await eventually(`${changes} changes`, async () => (await logOf(command)).length >= changes);
  await light.close();
  await dark(command);
  return logOf(command);
}

describe('a light', () => {
  it('a light blinks on libgpiod 1 and ends dark', async () => {
    const command = await writeScript('gpioset', ...V1);
    const { light } = lit(command, LONG);
    const log = await flashed(light, command, 4);
    expect(log.slice(0, 4)).toEqual([
      '--mode=signal gpiochip0 17=1',
      '--mode=signal gpiochip0 17=0',
      '--mode=signal gpiochip0 17=1',
      '--mode=signal gpiochip0 17=0',
    ]);
    expect(log.at(-1)).toBe('--mode=signal gpiochip0 17=0');
    expect(light.status()).toEqual({ ok: true, reason: null });
  });

  it('a light blinks on libgpiod 2, inverted where the line is', async () => {
    const command = await writeScript('gpioset', ...V2);
    const { light } = lit(command, { ...LONG, chip: 'gpiochip4', activeLow: true });
    const log = await flashed(light, command, 2);
    expect(log.slice(0, 2)).toEqual(['--active-low --chip=gpiochip4 17=1', '--active-low --chip=gpiochip4 17=0']);
    expect(log.at(-1)).toBe('--active-low --chip=gpiochip4 17=0');
  });

  it('a light is steady without a pause between', async () => {
    const command = await writeScript('gpioset', ...V2);
    const { light } = lit(command, { offMs: 0 });
    light.flash();
    await eventually('it is dark again', async () => (await logOf(command)).length === 2);
    await dark(command);
    expect(await logOf(command)).toEqual(['--chip=gpiochip0 17=1', '--chip=gpiochip0 17=0']);
  });

  it('a light blinks on while payments come, one process at a time', async () => {
    const command = await writeScript('gpioset', ...V2);
    const { light } = lit(command, { durationMs: 1_100 });
    await eventually('it went on', async () => {
      light.flash();
      light.flash();
      return (await logOf(command)).length >= 8;
    });
    await light.close();
    const log = await logOf(command);
    log.slice(0, -1).forEach((line, index) => {
      expect(line).toMatch(index % 2 === 0 ? /17=1$/ : /17=0$/);
    });
  });

  it('a light goes out when it is closed in the middle, and stays out', async () => {
    const command = await writeScript('gpioset', ...V2);
    const { light } = lit(command, { onMs: 60_000, durationMs: 60_000 });
    light.flash();
    await eventually('it is lit', async () => (await logOf(command)).length === 1);
    await light.close();
    await dark(command);
    light.flash();
    expect(await logOf(command)).toEqual(['--chip=gpiochip0 17=1', '--chip=gpiochip0 17=0']);
  });

  it('a light starts no program before it is needed', async () => {
    const { light, io } = lit('/nowhere/gpioset');
    expect(light.status()).toEqual({ ok: true, reason: null });
    await light.close();
    expect(io.lines).toEqual([]);
  });

  it.each([
    ['is missing', undefined, / is not installed \(sudo apt-get install gpiod\)$/],
    [
      'has no such chip',
      [...V1.slice(0, 1), 'echo "gpioset: no such chip" >&2; exit 1'],
      / failed with exit code 1: gpioset: no such chip \(see /,
    ],
    ['ends by itself', [...V1.slice(0, 1), 'exit 0'], / ended too soon /],
    [
      'is of another age',
      ['echo "gpioset v3.0"'],
      /^gpioset has an unknown version: gpioset v3\.0 \(install libgpiod 1 or 2\)$/,
    ],
  ])('names a gpioset that %s, once, and is well when it is', async (_, body, reason) => {
    const command = body === undefined ? '/nowhere/gpioset' : await writeScript('gpioset', ...body);
    const { light, io } = lit(command);
    light.flash();
    await eventually('it is named', () => reason.test(light.status().reason ?? ''));
    light.flash();
    if (body === undefined) return;
    await rewriteScript(command, ...V1);
    await eventually('it is well', () => {
      light.flash();
      return light.status().ok;
    });
    expect(io.lines.map(({ event }) => event)).toEqual(['light-failed', 'light-recovered']);
  });

  it('a light kills a gpioset that hangs when asked for its version', async () => {
    const command = await writeScript('gpioset', 'exec sleep 1000');
    const io = collectingIo(movableClock(20));
    const light = openLight(lightOptions.parse({ line: 1, command }), io);
    onTestFinished(() => light.close());
    light.flash();
    await eventually('it is named', () => light.status().reason?.startsWith(`${command} hung and was killed`));
  });

  it.each([{ chip: '--help' }, { chip: 'a b' }, { line: -1 }, { line: 1.5 }, { onMs: 1 }])('refuses %j', (part) => {
    expect(lightOptions.safeParse({ line: 1, ...part }).success).toBe(false);
  });
});
