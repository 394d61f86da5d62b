import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import {
  type LedMatrixOptions,
  ledMatrixOptions,
  matrixSize,
} from '../../../src/device/display/drivers/led-matrix.options.ts';
import { strictLedMatrix } from '../emulators/led-matrix.addon.ts';
import { installedAddon } from './installed-addon.ts';

const addon = installedAddon();
const note = addon === undefined ? ' (not installed: sudo apt-get install g++ make python3, then npm ci)' : '';

describe.skipIf(addon === undefined)(`rpi-led-matrix${note}`, () => {
  /** Without pins it works up to `sync`. */
  function runWithoutPins(options: Partial<LedMatrixOptions>): { width: number; height: number; drawn: boolean } {
    const given = ledMatrixOptions.parse(options);
    const { rows, cols, chainLength, parallel, pixelMapper } = given;
    const matrix = { rows, cols, chainLength, parallel, pixelMapperConfig: pixelMapper };
    const script = `import { LedMatrix } from 'rpi-led-matrix';
      const matrix = new LedMatrix({ ...LedMatrix.defaultMatrixOptions(), ...${JSON.stringify(matrix)} },
        { ...LedMatrix.defaultRuntimeOptions(), doGpioInit: false, dropPrivileges: 0 });
      const [width, height] = [matrix.width(), matrix.height()];
      matrix.drawBuffer(Buffer.alloc(width * height * 3, 255)).clear();
      process.stdout.write(JSON.stringify({ width, height, drawn: true }));
      process.exit(0);`;
    const run = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    if (run.status !== 0) throw new Error(run.stderr);
    return JSON.parse(run.stdout);
  }

  it.each([
    { rows: 64, cols: 64 },
    { rows: 32, cols: 64, chainLength: 3, parallel: 2 },
    { rows: 64, cols: 64, chainLength: 2, pixelMapper: 'V-mapper' },
    { rows: 32, cols: 64, chainLength: 4, parallel: 2, pixelMapper: 'V-mapper:Z' },
    { rows: 64, cols: 64, chainLength: 2, pixelMapper: 'U-mapper' },
    { rows: 32, cols: 32, chainLength: 6, parallel: 2, pixelMapper: 'U-mapper' },
  ] as const)('has as many LEDs with %j as the driver counts', (options) => {
    expect(runWithoutPins(options)).toEqual({ ...matrixSize(ledMatrixOptions.parse(options)), drawn: true });
  });

  it('rpi-led-matrix has the very options that the stand-in checks', () => {
    const script = `import { LedMatrix } from 'rpi-led-matrix';
      process.stdout.write(JSON.stringify([LedMatrix.defaultMatrixOptions(), LedMatrix.defaultRuntimeOptions()]));`;
    const run = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    const standIn = strictLedMatrix('');
    expect(JSON.parse(run.stdout)).toEqual([standIn.defaultMatrixOptions(), standIn.defaultRuntimeOptions()]);
  });
});
