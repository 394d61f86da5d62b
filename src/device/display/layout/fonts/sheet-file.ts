import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Face, FaceSpec, Glyph } from './faces.ts';

/** A change of the format below increases this number, so that older files are drawn again. */
export const SHEET_FILE_VERSION = 1;

const HASH_BYTES = 32;
const LENGTH_BYTES = 4;

const spec = z.object({
  weight: z.union([z.literal(400), z.literal(600), z.literal(700)]),
  sizePx: z.int().positive(),
  charset: z.enum(['text', 'figures']),
});
const whole = z.int();
const header = z.array(
  z.object({
    spec,
    lineHeight: whole,
    alphaBytes: whole,
    /** Each glyph has char, advance, left, top, width, height and offset. */
    glyphs: z.array(z.tuple([z.string(), z.number(), whole, whole, whole, whole, whole])),
  }),
);

export const sheetRequest = z.object({
  specs: z.array(spec),
  /** Names the font file of each weight. */
  fontFiles: z.record(z.string(), z.string()),
  target: z.string(),
});
export type SheetRequest = z.infer<typeof sheetRequest>;

/**
 * Encodes a sheet file: the SHA-256 of the rest, the length of the header, the header as JSON, the masks of all faces.
 */
export function encodeSheets(faces: readonly Face[]): Uint8Array {
  const head = Buffer.from(
    JSON.stringify(
      faces.map((face) => ({
        spec: face.spec,
        lineHeight: face.lineHeight,
        alphaBytes: face.alpha.length,
        glyphs: Array.from(face.glyphs, ([char, g]) => [char, g.advance, g.left, g.top, g.width, g.height, g.offset]),
      })),
    ),
  );
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32LE(head.length);
  const rest = Buffer.concat([length, head, ...faces.map((face) => face.alpha)]);
  return Buffer.concat([createHash('sha256').update(rest).digest(), rest]);
}

/** Decodes a sheet file; `undefined` if it is damaged or for other specs. */
export function decodeSheets(bytes: Buffer, specs: readonly FaceSpec[]): Face[] | undefined {
  const rest = bytes.subarray(HASH_BYTES);
  if (rest.length < LENGTH_BYTES) return undefined;
  if (!createHash('sha256').update(rest).digest().equals(bytes.subarray(0, HASH_BYTES))) return undefined;
  const headEnd = LENGTH_BYTES + rest.readUInt32LE(0);
  const parsed = header.parse(JSON.parse(rest.toString('utf8', LENGTH_BYTES, headEnd)));
  if (JSON.stringify(parsed.map((face) => face.spec)) !== JSON.stringify(specs)) return undefined;
  let start = headEnd;
  return parsed.map((face) => {
    const alpha = rest.subarray(start, start + face.alphaBytes);
    start += face.alphaBytes;
    const glyphs = new Map<string, Glyph>(
      face.glyphs.map(([char, advance, left, top, width, height, offset]) => [
        char,
        { advance, left, top, width, height, offset },
      ]),
    );
    return { spec: face.spec, lineHeight: face.lineHeight, glyphs, alpha };
  });
}
