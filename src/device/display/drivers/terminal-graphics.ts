import { deflateSync } from 'node:zlib';
import { type Clock, withDeadline } from '../../../lib/clock.ts';
import type { PixelFrame, TerminalInput } from '../contract.ts';

export type Graphics = 'blocks' | 'kitty' | 'sixel';

/** The abilities that a terminal reports. */
export interface TerminalAnswers {
  graphics: Graphics;
  /** The pixels per character; undefined if not reported. */
  cell: { width: number; height: number } | undefined;
}

/** The id is always the same, so that a new picture replaces the old one without a flicker. */
const KITTY_ID = 7261;
/** A terminal that does not answer in this time shows blocks, which always work. */
const ANSWER_TIMEOUT_MS = 250;
const ANSWER_CHARS_MAX = 4096;
/** Largest chunk of the kitty protocol, in base64 characters. */
const KITTY_CHUNK_CHARS = 4096;
const COMPRESSION_LEVEL = 1;
const SIXEL_ROWS = 6;
/** The steps of red, green and blue in a sixel palette. Every terminal has 256 entries. */
const STEPS = 6;

/**
 * Asks whether the terminal can draw pictures: the query of the kitty graphics protocol, the size of a cell (XTWINOPS
 * 16), and last DA1, which every terminal answers. Attribute 4 of that answer is sixel. The driver ignores later
 * answers, and the keyboard reader mistakes no sequence for a key.
 */
export async function askTerminal(
  write: (text: string) => Promise<void>,
  input: TerminalInput,
  clock: Clock,
): Promise<TerminalAnswers> {
  let heard = '';
  const complete = Promise.withResolvers<true>();
  const stop = input.onData((bytes) => {
    heard = (heard + Buffer.from(bytes).toString('latin1')).slice(-ANSWER_CHARS_MAX);
    if (DA1.test(heard)) complete.resolve(true);
  });
  try {
    await write(`\x1b_Gi=${KITTY_ID},s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[16t\x1b[c`);
    const answered = await withDeadline(clock, ANSWER_TIMEOUT_MS, complete.promise);
    return answered === undefined ? { graphics: 'blocks', cell: undefined } : understood(heard);
  } finally {
    stop();
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals answer in control sequences
const DA1 = /\x1b\[\?([\d;]*)c/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals answer in control sequences
const CELL = /\x1b\[6;(\d{1,3});(\d{1,3})t/;

function understood(heard: string): TerminalAnswers {
  const [, height, width] = CELL.exec(heard)?.map(Number) ?? [];
  const cell = height && width ? { width, height } : undefined;
  if (heard.includes(`\x1b_Gi=${KITTY_ID};OK`)) return { graphics: 'kitty', cell };
  const attributes = DA1.exec(heard)?.[1]?.split(';') ?? [];
  return { graphics: attributes.slice(1).includes('4') ? 'sixel' : 'blocks', cell };
}

/** Draws the frame with its upper left corner at the cursor, which does not move. Requests no reply. */
export function kittyPicture({ width, height, data }: PixelFrame): string {
  const pixels = new Uint8Array(width * height * 3);
  for (let from = 0, to = 0; from < data.length; from += 4, to += 3) pixels.set(data.subarray(from, from + 3), to);
  const payload = deflateSync(pixels, { level: COMPRESSION_LEVEL }).toString('base64');
  const parts: string[] = [];
  for (let at = 0; at < payload.length; at += KITTY_CHUNK_CHARS) {
    const head = at === 0 ? `a=T,q=2,i=${KITTY_ID},p=1,f=24,o=z,s=${width},v=${height},C=1,` : '';
    const more = at + KITTY_CHUNK_CHARS < payload.length ? 1 : 0;
    parts.push(`\x1b_G${head}m=${more};${payload.slice(at, at + KITTY_CHUNK_CHARS)}\x1b\\`);
  }
  return parts.join('');
}

/** Deletes the picture from the screen and the terminal's memory. */
export const KITTY_DELETE = `\x1b_Ga=d,d=I,q=2,i=${KITTY_ID}\x1b\\`;

/** Draws as `kittyPicture` does, in sixels, with a palette of 216 colours that contains black and white. */
export function sixelPicture({ width, height, data }: PixelFrame): string {
  const colors = new Uint8Array(width * height);
  for (let pixel = 0, from = 0; pixel < colors.length; pixel += 1, from += 4) {
    const step = (channel: number) => Math.round(((data[from + channel] ?? 0) / 255) * (STEPS - 1));
    colors[pixel] = (step(0) * STEPS + step(1)) * STEPS + step(2);
  }
  const bands: string[] = [];
  for (let top = 0; top < height; top += SIXEL_ROWS) {
    bands.push(sixelBand(colors.subarray(top * width, Math.min(height, top + SIXEL_ROWS) * width), width));
  }
  const palette = [...new Set(colors)].map(paletteEntry).join('');
  return `\x1b7\x1bP0;1;0q"1;1;${width};${height}${palette}${bands.join('-')}\x1b\\\x1b8`;
}

/** Returns a palette entry: red, green and blue in percent. */
function paletteEntry(color: number): string {
  const [red, green, blue] = [STEPS * STEPS, STEPS, 1].map((place) =>
    Math.round(((Math.floor(color / place) % STEPS) * 100) / (STEPS - 1)),
  );
  return `#${color};2;${red};${green};${blue}`;
}

/** Returns up to six rows: for each colour its columns, one bit per row, with compressed runs. */
function sixelBand(colors: Uint8Array, width: number): string {
  const masks = new Map<number, Uint8Array>();
  for (const [at, color] of colors.entries()) {
    const mask = masks.get(color) ?? new Uint8Array(width);
    masks.set(color, mask);
    mask[at % width] = (mask[at % width] ?? 0) | (1 << Math.floor(at / width));
  }
  return Array.from(masks, ([color, mask]) => `#${color}${shortened(mask)}`).join('$');
}

function shortened(mask: Uint8Array): string {
  let text = '';
  for (let at = 0; at < mask.length; ) {
    const bits = mask[at] ?? 0;
    let run = 1;
    while (mask[at + run] === bits) run += 1;
    const char = String.fromCharCode(63 + bits);
    at += run;
    if (bits !== 0 || at < mask.length) text += run > 3 ? `!${run}${char}` : char.repeat(run);
  }
  return text;
}
