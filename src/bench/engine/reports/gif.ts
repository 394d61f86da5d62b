import sharp from 'sharp';
import type { TranscriptEntry } from './transcript.ts';

/** A wider lane is scaled down to this width, in pixels. */
const LANE_WIDTH_MAX = 480;
const LANES_MAX = 6;
const FRAMES_MAX = 500;
/** Nobody sees a frame that is shorter than this. */
const FRAME_MS_MIN = 300;
/** The film cuts longer waits to this. */
const FRAME_MS_MAX = 2_000;
const LAST_MS = 3_000;
const DARK = { r: 32, g: 32, b: 32 };

/** The screens of one run, in their order. */
interface Story {
  readonly entries: readonly TranscriptEntry[];
}

/**
 * Returns an animated GIF of the screens as they followed each other, boxes side by side, one run after the other.
 * `sharp` encodes it. It cuts long waits, and is undefined where there is no screen.
 */
export async function gifOf(stories: readonly Story[]): Promise<Uint8Array | undefined> {
  const scenes = stories.flatMap(({ entries }) => scenesOf(entries)).slice(0, FRAMES_MAX);
  const pictures = new Set(scenes.flatMap(({ lanes }) => lanes.filter((it) => it !== undefined)));
  if (pictures.size === 0) return undefined;
  const size = { width: 0, height: 0 };
  const scaled = new Map<Uint8Array, Buffer>();
  for (const picture of pictures) {
    const { data, info } = await sharp(picture)
      .resize({ width: LANE_WIDTH_MAX, withoutEnlargement: true })
      .png()
      .toBuffer({ resolveWithObject: true });
    scaled.set(picture, data);
    size.width = Math.max(size.width, info.width);
    size.height = Math.max(size.height, info.height);
  }
  const across = Math.max(...scenes.map(({ lanes }) => lanes.length));
  const canvas = { width: size.width * across, height: size.height, channels: 3, background: DARK } as const;
  const frames: Buffer[] = [];
  for (const { lanes } of scenes) {
    const layers = lanes.flatMap((picture, lane) => {
      const input = picture && scaled.get(picture);
      return input === undefined ? [] : [{ input, left: lane * size.width, top: 0 }];
    });
    frames.push(await sharp({ create: canvas }).composite(layers).removeAlpha().raw().toBuffer());
  }
  const { width, height, channels } = canvas;
  const raw = { width, height: height * frames.length, channels, pageHeight: height };
  const delay = scenes.map(({ ms }) => ms);
  return sharp(Buffer.concat(frames), { raw, limitInputPixels: false }).gif({ delay, loop: 0 }).toBuffer();
}

interface Scene {
  /** The newest screen of each box; undefined before its first one. */
  lanes: (Uint8Array | undefined)[];
  ms: number;
}

function scenesOf(entries: readonly TranscriptEntry[]): Scene[] {
  const screens = entries.filter(({ kind, title }) => kind === 'screen' && !title.includes(', '));
  const boxes = [...new Set(screens.map(({ title }) => title))].sort().slice(0, LANES_MAX);
  const newest = new Map<string, Uint8Array>();
  return screens.map(({ title, picture, atMs }, index) => {
    if (picture !== undefined) newest.set(title, picture);
    const next = screens[index + 1];
    const ms = next === undefined ? LAST_MS : Math.min(FRAME_MS_MAX, Math.max(FRAME_MS_MIN, next.atMs - atMs));
    return { lanes: boxes.map((box) => newest.get(box)), ms: Math.round(ms) };
  });
}
