import type { Picture } from './pictures.ts';

/** How a phone sees a screen: what its camera, its angle and the light of the screen do to the picture. */
export interface Distortion {
  name: string;
  /** Degrees that the phone is turned. */
  turnedDeg?: number;
  /** How much narrower the far edge of the screen is, as a share. */
  keystone?: number;
  /** Standard deviation of the lens's blur, in pixels of the photograph. */
  blurPx?: number;
  /** Standard deviation of the sensor's noise, of 255. */
  noise?: number;
  /** Light that spills from bright pixels over their neighbours: how far, in pixels of the screen, and how much brighter. */
  bloom?: { spillPx: number; gain: number };
  /** Round lamps with dark between them, as on an LED panel. */
  lamps?: true;
}

export const DISTORTIONS: readonly Distortion[] = [
  { name: 'straight' },
  { name: 'blur 1.5 px', blurPx: 1.5 },
  { name: 'blur 2.5 px', blurPx: 2.5 },
  { name: 'turned 5°', turnedDeg: 5 },
  { name: 'turned 10°', turnedDeg: -10 },
  { name: 'turned 15°', turnedDeg: 15 },
  { name: 'keystone 10 %', keystone: 0.1 },
  { name: 'keystone 20 %', keystone: 0.2 },
  { name: 'noise 20', noise: 20 },
  { name: 'noise 40', noise: 40 },
  { name: 'LED bloom', bloom: { spillPx: 0.35, gain: 1.3 }, lamps: true },
  { name: 'strong LED bloom', bloom: { spillPx: 0.55, gain: 1.6 }, lamps: true },
  { name: 'in the hand', turnedDeg: 7, keystone: 0.06, blurPx: 1, noise: 12, bloom: { spillPx: 0.2, gain: 1.1 } },
];

/** Pixels of the shorter side of the screen in the photograph, and of the dark room around it. */
const SHORT_SIDE_PX = 400;
const ROOM_PX = 40;
const ROOM_LIGHT = 24;
const LAMP_RADIUS = 0.46;
/** Samples across each pixel of the photograph. */
const SAMPLES = 2;

/** A grey photograph of the screen. The same `seed` gives the same photograph. */
export function photograph(screen: Picture, distortion: Distortion, seed: number): Picture {
  const scale = SHORT_SIDE_PX / Math.min(screen.width, screen.height);
  const width = Math.round(screen.width * scale) + 2 * ROOM_PX;
  const height = Math.round(screen.height * scale) + 2 * ROOM_PX;
  let light = projected(screen, distortion, width, height, scale);
  const { bloom, blurPx = 0, noise = 0 } = distortion;
  if (bloom) light = blurred(light, width, height, bloom.spillPx * scale).map((each) => each * bloom.gain);
  if (blurPx > 0) light = blurred(light, width, height, blurPx);
  const random = randomOf(seed);
  const data = new Uint8Array(width * height * 4).fill(255);
  // Plain loops here and below: there are millions of pixels.
  for (let at = 0; at < light.length; at += 1) {
    const grain = noise === 0 ? 0 : noise * (random() + random() + random() + random() - 2) * Math.sqrt(3);
    const grey = Math.max(0, Math.min(255, Math.round((light[at] ?? 0) + grain)));
    data[at * 4] = grey;
    data[at * 4 + 1] = grey;
    data[at * 4 + 2] = grey;
  }
  return { width, height, data };
}

/** What falls on each pixel of the photograph, traced back to the screen. */
function projected(
  screen: Picture,
  distortion: Distortion,
  width: number,
  height: number,
  scale: number,
): Float32Array {
  const { turnedDeg = 0, keystone = 0 } = distortion;
  const angle = (turnedDeg * Math.PI) / 180;
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  // Turned or leaning, the whole screen has to stay in the photograph.
  const shrink = 1 + Math.abs(sin) * (width / height + height / width) * 0.35;
  const greys = greysOf(screen);
  const light = new Float32Array(width * height);
  const isLamps = distortion.lamps === true;
  const across = samplesOf(width, shrink);
  const down = samplesOf(height, shrink);
  for (let line = 0; line < down.length; line += 1) {
    const below = down[line] ?? 0;
    const start = Math.floor(line / SAMPLES) * width;
    for (let sample = 0; sample < across.length; sample += 1) {
      const beside = across[sample] ?? 0;
      const v = below * cos - beside * sin;
      const depth = 1 + (keystone * v) / (height / 2);
      const column = ((beside * cos + below * sin) * depth) / scale + screen.width / 2;
      const row = (v * depth) / scale + screen.height / 2;
      const at = start + Math.floor(sample / SAMPLES);
      light[at] = (light[at] ?? 0) + lightAt(screen, greys, column, row, isLamps) / (SAMPLES * SAMPLES);
    }
  }
  return light;
}

/** Where the samples of a side are, from its middle. */
function samplesOf(pixels: number, shrink: number): Float64Array {
  const places = new Float64Array(pixels * SAMPLES);
  for (let at = 0; at < places.length; at += 1) places[at] = ((at + 0.5) / SAMPLES - pixels / 2) * shrink;
  return places;
}

function lightAt({ width, height }: Picture, greys: Float64Array, x: number, y: number, lamps: boolean): number {
  const column = Math.floor(x);
  const row = Math.floor(y);
  if (column < 0 || row < 0 || column >= width || row >= height) return ROOM_LIGHT;
  if (lamps && (x - column - 0.5) ** 2 + (y - row - 0.5) ** 2 > LAMP_RADIUS ** 2) return 0;
  return greys[row * width + column] ?? 0;
}

function greysOf({ width, height, data }: Picture): Float64Array {
  const greys = new Float64Array(width * height);
  for (let pixel = 0, at = 0; pixel < greys.length; pixel += 1, at += 4) {
    greys[pixel] = 0.3 * (data[at] ?? 0) + 0.59 * (data[at + 1] ?? 0) + 0.11 * (data[at + 2] ?? 0);
  }
  return greys;
}

/** Gaussian, along the rows and then along the columns. */
function blurred(light: Float32Array, width: number, height: number, sigma: number): Float32Array {
  const reach = Math.ceil(sigma * 2.5);
  const weights = Array.from({ length: 2 * reach + 1 }, (_, index) =>
    Math.exp(-((index - reach) ** 2) / (2 * sigma ** 2)),
  );
  const total = weights.reduce((sum, each) => sum + each, 0);
  const along = (from: Float32Array, step: number, length: number, place: (line: number) => number, lines: number) => {
    const to = new Float32Array(from.length);
    for (let line = 0; line < lines; line += 1) {
      const start = place(line);
      for (let index = 0; index < length; index += 1) {
        let sum = 0;
        for (let offset = -reach; offset <= reach; offset += 1) {
          const near = Math.max(0, Math.min(length - 1, index + offset));
          sum += (from[start + near * step] ?? 0) * (weights[offset + reach] ?? 0);
        }
        to[start + index * step] = sum / total;
      }
    }
    return to;
  };
  const rows = along(light, 1, width, (line) => line * width, height);
  return along(rows, width, height, (line) => line, width);
}

/** Numbers from 0 to 1 (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
