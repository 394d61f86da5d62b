import { join } from 'node:path';
import { z } from 'zod';
import { rotation } from './pixel-options.ts';

/** The Debian package with the addon, and the folder in which the package puts it. */
export const LED_MATRIX_PACKAGE = 'paybox-led-matrix';
const PACKAGED_ADDON = `usr/lib/${LED_MATRIX_PACKAGE}/dist/index.js`;
const ADDON = 'rpi-led-matrix';

const HARDWARE_MAPPINGS = [
  'regular',
  'adafruit-hat',
  'adafruit-hat-pwm',
  'regular-pi1',
  'classic',
  'classic-pi1',
] as const;
const RGB_SEQUENCES = ['RGB', 'RBG', 'GRB', 'GBR', 'BRG', 'BGR'] as const;
const PANEL_TYPES = ['', 'FM6126A', 'FM6127'] as const;
const PIXEL_MAPPERS = ['', 'U-mapper', 'V-mapper', 'V-mapper:Z'] as const;

export const ledMatrixOptions = z
  .strictObject({
    rows: z.int().min(8).max(64).multipleOf(2).default(64).describe('LEDs from top to bottom of one panel'),
    cols: z.int().min(16).max(128).default(64).describe('LEDs from left to right of one panel'),
    chainLength: z.int().min(1).max(8).default(1).describe('panels one behind the other on a connector'),
    parallel: z.int().min(1).max(3).default(1).describe('connectors in use'),
    pixelMapper: z.enum(PIXEL_MAPPERS).default('').describe('how a chain is folded'),
    hardwareMapping: z.enum(HARDWARE_MAPPINGS).default('regular').describe('how the panels are wired to the pins'),
    rotation,
    brightness: z.int().min(1).max(100).default(40).describe('percent; more blooms in cameras, less is too dark'),
    pwmBits: z.int().min(2).max(11).default(7).describe('shades as a power of two; fewer refresh faster'),
    gpioSlowdown: z.int().min(0).max(5).default(2).describe('1 on a Pi 3, 2 to 4 on a Pi 4: more when it flickers'),
    limitRefreshHz: z.int().min(0).max(1_000).default(0).describe('0 is as fast as it goes; phones need 300 or more'),
    rgbSequence: z.enum(RGB_SEQUENCES).default('RGB').describe('the order of colours of panels that mix them up'),
    panelType: z.enum(PANEL_TYPES).default('').describe('for panels that need to be woken up'),
    multiplexing: z.int().min(0).max(18).default(0).describe('for outdoor panels'),
    rowAddressType: z.int().min(0).max(4).default(0).describe('for panels with other row lines'),
    hardwarePulsing: z.boolean().default(true).describe('steadier light; excludes the sound of the Pi itself'),
    dropPrivileges: z.boolean().default(true).describe('the child gives up root once it has the pins'),
    addon: z.string().min(1).default(ADDON).describe('the module that drives the panels'),
    root: z.string().min(1).default('/').describe('the folder that holds proc and usr'),
  })
  .refine((it) => it.pixelMapper !== 'U-mapper' || it.chainLength % 2 === 0, {
    path: ['pixelMapper'],
    error: 'expected a chainLength of 2, 4, 6 or 8 for the U-mapper',
  });
export type LedMatrixOptions = z.infer<typeof ledMatrixOptions>;

/** Counts the LEDs of all panels together, after folding the chain as the addon does (its lib/pixel-mapper.cc). */
export function matrixSize(options: LedMatrixOptions): { width: number; height: number } {
  const { rows, cols, chainLength, parallel, pixelMapper } = options;
  const [width, height] = [cols * chainLength, rows * parallel];
  // The mapper divides at multiples of 32 LEDs.
  if (pixelMapper === 'U-mapper') return { width: Math.floor(width / 64) * 32, height: 2 * height };
  if (pixelMapper === '') return { width, height };
  return { width: (width * parallel) / chainLength, height: (height * chainLength) / parallel };
}

/** The first message to the child: where the addon may be, and its options by the addon's names. */
export const ledMatrixSetup = z.object({
  /** The places of the addon. The child loads the first one that is installed. */
  addons: z.array(z.string()).min(1),
  width: z.int().positive(),
  height: z.int().positive(),
  matrix: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  runtime: z.record(z.string(), z.union([z.number(), z.boolean()])),
});
export type LedMatrixSetup = z.infer<typeof ledMatrixSetup>;

/** The child's answer to each message: success, or the reason of a failure. */
export const ledMatrixAnswer = z.union([
  z.strictObject({ ok: z.literal(true) }),
  z.strictObject({ error: z.string() }),
]);
export type LedMatrixAnswer = z.infer<typeof ledMatrixAnswer>;

export function setupFor(options: LedMatrixOptions): LedMatrixSetup {
  return {
    addons: options.addon === ADDON ? [ADDON, join(options.root, PACKAGED_ADDON)] : [options.addon],
    ...matrixSize(options),
    matrix: {
      rows: options.rows,
      cols: options.cols,
      chainLength: options.chainLength,
      parallel: options.parallel,
      pixelMapperConfig: options.pixelMapper,
      hardwareMapping: options.hardwareMapping,
      brightness: options.brightness,
      pwmBits: options.pwmBits,
      limitRefreshRateHz: options.limitRefreshHz,
      ledRgbSequence: options.rgbSequence,
      panelType: options.panelType,
      multiplexing: options.multiplexing,
      rowAddressType: options.rowAddressType,
      disableHardwarePulsing: !options.hardwarePulsing,
    },
    runtime: { gpioSlowdown: options.gpioSlowdown, dropPrivileges: options.dropPrivileges ? 1 : 0, daemon: 0 },
  };
}
