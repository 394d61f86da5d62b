import { spawn, spawnSync } from 'node:child_process';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import decodeQr from 'qr/decode.js';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type LedMatrixOptions,
  ledMatrixOptions,
  setupFor,
} from '../../../src/device/display/drivers/led-matrix.options.ts';
import { ledMatrix } from '../../../src/device/display/drivers/led-matrix.ts';
import { startChild } from '../../../src/device/display/io/child.ts';
import { encodePng } from '../../../src/device/display/pixels/png.ts';
import { openRenderer } from '../../../src/device/display/render.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { eventually, temporaryFolder } from '../../support/net.ts';
import { PROGRAMS, without } from '../../support/programs.ts';
import type { Misbehaviour } from '../emulators/led-matrix.addon.ts';
import { asDots, FakeLedMatrix } from '../emulators/led-matrix.ts';
import { testIo } from '../io.ts';
import { glyphCache, zbarReads } from '../pictures.ts';
import { PAYMENT, QR_CODE, SCENES } from '../scenes.ts';

const CHILD = resolve(import.meta.dirname, '../../../src/device/display/drivers/led-matrix.child.ts');
const glyphs = glyphCache();
const zbar = without(PROGRAMS.zbar);

interface World {
  model?: string;
  modules?: string;
  misbehaviour?: Misbehaviour;
}

async function fakePanels({ model, modules, misbehaviour }: World = {}): Promise<FakeLedMatrix> {
  const panels = new FakeLedMatrix(await temporaryFolder(), model, misbehaviour);
  if (modules !== undefined) panels.loadModule(modules);
  return panels;
}

async function openOn(panels: FakeLedMatrix, more: Partial<LedMatrixOptions> = {}) {
  let asked = 0;
  const io = testIo(glyphs.cacheDir, undefined, () => {
    asked += 1;
  });
  const options = ledMatrixOptions.parse({ ...panels.options, ...more });
  const display = await ledMatrix.open(options, io, new AbortController().signal);
  onTestFinished(() => display.close());
  const renderer = await openRenderer(display.surface, io);
  const show = (scene: (typeof SCENES)[string]) => display.draw(renderer.render(scene), scene);
  return { display, renderer, show, asked: () => asked };
}

const alive = (pid: number) => spawnSync('kill', ['-0', String(pid)]).status === 0;

describe('the LED matrix display', () => {
  it.skipIf(zbar.missing).each<[Partial<LedMatrixOptions>, string]>([
    [{}, '64 x 64'],
    [{ chainLength: 2 }, '128 x 64'],
    [{ chainLength: 2, pixelMapper: 'V-mapper' }, '64 x 128'],
    [{ chainLength: 2, rotation: 90 }, 'turned 64 x 128'],
  ])(`with %j shows a payment on %s LEDs that two decoders read off its dots${zbar.note}`, async (more) => {
    const panels = await fakePanels();
    const { show } = await openOn(panels, more);
    await show(PAYMENT);
    const { data, ...size } = panels.shown();
    const upright = more.rotation === 90 ? turnedBack({ data, ...size }) : { data, ...size };
    const dots = asDots(upright);
    expect(decodeQr(dots), 'qr').toBe(QR_CODE);
    const path = join(await temporaryFolder(), 'dots.png');
    await writeFile(path, encodePng({ kind: 'pixels', ...dots }));
    expect(zbarReads(path), 'zbar').toBe(QR_CODE);
  });

  it('an LED matrix is opened with the options, by the names of the addon', async () => {
    const panels = await fakePanels();
    const more = { brightness: 55, pwmBits: 5, gpioSlowdown: 4, limitRefreshHz: 400, rgbSequence: 'GRB' } as const;
    await openOn(panels, { ...more, parallel: 2, hardwareMapping: 'adafruit-hat', dropPrivileges: false });
    const { matrix, runtime } = panels.made();
    expect(matrix).toMatchObject({
      rows: 64,
      cols: 64,
      parallel: 2,
      brightness: 55,
      pwmBits: 5,
      limitRefreshRateHz: 400,
      ledRgbSequence: 'GRB',
      hardwareMapping: 'adafruit-hat',
      disableHardwarePulsing: false,
    });
    expect(runtime).toMatchObject({ gpioSlowdown: 4, dropPrivileges: 0, daemon: 0 });
  });

  it('an LED matrix runs the addon in another process, which ends with dark panels', async () => {
    const panels = await fakePanels();
    const { display, show } = await openOn(panels);
    await show(PAYMENT);
    const { pid } = panels.made();
    expect(pid).not.toBe(process.pid);
    await display.close();
    expect(alive(pid)).toBe(false);
    const { data } = panels.shown();
    expect(data.some((byte, index) => index % 4 !== 3 && byte !== 0)).toBe(false);
  });

  it('an LED matrix gives every LED its own colour', async () => {
    const panels = await fakePanels();
    const { display } = await openOn(panels);
    const data = Uint8Array.from({ length: 64 * 64 * 4 }, (_, at) => (at % 4 === 3 ? 255 : (at * 7 + (at >> 8)) & 255));
    await display.draw({ kind: 'pixels', width: 64, height: 64, data }, PAYMENT);
    expect(Buffer.from(panels.shown().data).equals(data)).toBe(true);
  });

  it('an LED matrix sends a frame only when it is another', async () => {
    const panels = await fakePanels();
    const { show } = await openOn(panels);
    await show(PAYMENT);
    await show(PAYMENT);
    expect(panels.shown().frames).toBe(1);
    await show({ ...PAYMENT, kind: 'expired' });
    expect(panels.shown().frames).toBe(2);
  });

  it.each([
    ['Raspberry Pi 5 Model B Rev 1.0', 'Raspberry Pi 5 Model B Rev 1.0'],
    ['Raspberry Pi Compute Module 5 Rev 1.0', 'Compute Module 5'],
    ['Raspberry Pi 500 Rev 1.0', 'Raspberry Pi 500'],
    ['Radxa ROCK 4C+', 'Radxa ROCK 4C+ is none'],
    ['', 'this machine is none'],
  ])('refuses the machine %j by its name', async (model, words) => {
    const panels = await fakePanels({ model });
    await expect(openOn(panels)).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      message: expect.stringContaining(words),
      fix: expect.stringContaining('another display'),
    });
    expect(() => panels.made()).toThrow('ENOENT');
  });

  it('an LED matrix refuses to start beside the sound of the Pi, unless without hardware pulses', async () => {
    const panels = await fakePanels({ modules: 'snd_bcm2835 24576 2 - Live 0x0' });
    await expect(openOn(panels)).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      message: expect.stringContaining('snd_bcm2835'),
      fix: expect.stringContaining('dtparam=audio=off'),
    });
    await openOn(panels, { hardwarePulsing: false });
    expect(panels.made().matrix).toMatchObject({ disableHardwarePulsing: true });
  });

  it('an LED matrix says how to get the addon where it is not installed', async () => {
    const panels = await fakePanels();
    await expect(openOn(panels, { addon: join(panels.options.root, 'none.mjs') })).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      fix: expect.stringMatching(/apt-get install paybox-led-matrix.*npm install rpi-led-matrix/),
    });
  });

  it.skipIf(process.getuid?.() !== 0)(
    'an LED matrix refuses an addon that keeps root where it should drop it',
    async () => {
      await expect(openOn(await fakePanels(), { dropPrivileges: true })).rejects.toMatchObject({
        code: 'DISPLAY_FAULT',
        message: expect.stringContaining('root could not be given up'),
      });
    },
  );

  it('an LED matrix finds the addon where its package puts it', async () => {
    const panels = await fakePanels();
    const home = join(panels.options.root, 'usr/lib/paybox-led-matrix');
    await mkdir(join(home, 'dist'), { recursive: true });
    await writeFile(join(home, 'package.json'), '{ "type": "module" }');
    await rename(panels.options.addon, join(home, 'dist/index.js'));
    const addons = ['not-installed-anywhere', join(home, 'dist/index.js')];
    expect(setupFor(ledMatrixOptions.parse({ root: panels.options.root })).addons).toEqual([
      'rpi-led-matrix',
      addons[1],
    ]);
    const child = startChild(CHILD, systemClock);
    onTestFinished(() => child.close());
    const setup = { addons, width: 64, height: 64, matrix: { rows: 64, cols: 64 }, runtime: {} };
    expect(await child.ask(Buffer.from(JSON.stringify(setup)), 20_000)).toBe('{"ok":true}');
  });

  it.each([
    ['crash', 'was ended by SIGSEGV: Must run as root'],
    ['exit', 'ended with exit code 1'],
    ['throw', 'refused: Failed to sync'],
    ['hang', 'gave no answer within'],
  ] as const)('names the addon in mid-draw (%s), and a fresh open works', async (how, words) => {
    const panels = await fakePanels({ misbehaviour: { at: 2, how } });
    const { show, display } = await openOn(panels);
    await show(SCENES.idle ?? PAYMENT);
    const { pid } = panels.made();
    const fault = { code: 'DISPLAY_FAULT', severity: 'retryable', message: expect.stringContaining(words) };
    await expect(show(PAYMENT)).rejects.toMatchObject(fault);
    await expect(show(PAYMENT)).rejects.toMatchObject(fault);
    await display.close();
    expect(alive(pid)).toBe(false);
    panels.misbehave();
    const again = await openOn(panels);
    await again.show(PAYMENT);
    expect(decodeQr(asDots(panels.shown()))).toBe(QR_CODE);
  });

  it('an LED matrix names a crash of the addon at the start', async () => {
    const panels = await fakePanels({ misbehaviour: { at: 0, how: 'crash' } });
    await expect(openOn(panels)).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      message: expect.stringContaining('SIGSEGV'),
      fix: expect.stringContaining('as root'),
    });
  });

  it('an LED matrix has the agent draw when the addon dies while nothing is drawn', async () => {
    const panels = await fakePanels();
    const { show, asked } = await openOn(panels);
    await show(PAYMENT);
    process.kill(panels.made().pid, 'SIGKILL');
    await eventually('asked for a drawing', () => asked() === 1);
    await expect(show(PAYMENT)).rejects.toMatchObject({ message: expect.stringContaining('SIGKILL') });
  });

  it('an LED matrix never gives the addon a frame of another length', async () => {
    const panels = await fakePanels();
    const child = startChild(CHILD, systemClock);
    onTestFinished(() => child.close());
    const setup = {
      addons: [panels.options.addon],
      width: 64,
      height: 64,
      matrix: { rows: 64, cols: 64 },
      runtime: {},
    };
    expect(await child.ask(Buffer.from(JSON.stringify(setup)), 20_000)).toBe('{"ok":true}');
    expect(await child.ask(Buffer.alloc(64 * 64 * 3), 20_000)).toBe('{"ok":true}');
    expect(JSON.parse(await child.ask(Buffer.alloc(64 * 64 * 3 - 1), 20_000))).toEqual({
      error: 'a frame of 12287 bytes, expected 12288',
    });
    expect(await child.ended).toMatch(/exit code 1/);
  });

  it('the addon of an LED matrix ends when the agent is killed', async () => {
    const panels = await fakePanels();
    const driver = resolve(import.meta.dirname, '../../../src/device/display/io/child.ts');
    const script = `const { startChild } = await import(${JSON.stringify(driver)});
      const { systemClock } = await import(${JSON.stringify(resolve(driver, '../../../../lib/clock.ts'))});
      const setup = ${JSON.stringify({ addons: [panels.options.addon], width: 32, height: 32, matrix: {}, runtime: {} })};
      await startChild(${JSON.stringify(CHILD)}, systemClock).ask(Buffer.from(JSON.stringify(setup)), 20000);
      process.stdout.write('up');
      await new Promise(() => setInterval(() => {}, 1000));`;
    const agent = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void agent.kill('SIGKILL'));
    await new Promise((up) => agent.stdout.once('data', up));
    const { pid } = panels.made();
    agent.kill('SIGKILL');
    await eventually('gone', () => !alive(pid));
  });
});

function turnedBack({ width, height, data }: { width: number; height: number; data: Uint8Array }) {
  const out = new Uint8Array(data.length);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const from = (y * width + x) * 4;
      out.set(data.subarray(from, from + 4), ((width - 1 - x) * height + y) * 4);
    }
  }
  return { width: height, height: width, data: out };
}
