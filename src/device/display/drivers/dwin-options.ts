import { z } from 'zod';
import { BYTES_A_WORD } from './dgus.ts';
import { eachScreen, eachText, serialPath } from './panel.ts';

/** User memory of DGUS II begins here. The system's registers are below. */
const VP_MIN = 0x1000;
const VP_MAX = 0xffff;
/** The QR control draws version 7 or 14, depending on the number of bytes, with Unit_Pixels per module. */
export const QR_MODULES = { small: 45, large: 73 };
const QR_SMALL_BYTES_MAX = 154;

/** A text has this many words of memory by default. */
const TEXT_WORDS = 128;

const address = z.int().min(VP_MIN).max(VP_MAX);

export const dwinOptions = z
  .strictObject({
    path: serialPath,
    baudRate: z.int().min(3_225).max(3_225_600).default(115_200).describe('the rate of the panel, from its CFG file'),
    // Defaults of new panels. With the wrong setting a panel answers nothing.
    crc: z.boolean().default(false).describe('whether the CFG file turns the CRC of frames on, which is best'),
    encoding: z.enum(['unicode', 'ascii']).default('unicode').describe('Encode_Mode 5 of the text controls, or 0'),
    pages: eachScreen(z.int().min(0).max(VP_MAX).default(0)).prefault({}).describe('the page of each screen'),
    texts: eachText((index) => address.nullable().default(VP_MIN + index * TEXT_WORDS))
      .prefault({})
      .describe('the address (VP) of each text control, null to leave it out'),
    textWords: z.int().min(8).max(1_024).default(TEXT_WORDS).describe('words of memory that belong to each text'),
    qr: z
      .strictObject({
        vp: address.default(0x2000),
        sidePixels: z
          .int()
          .min(QR_MODULES.large)
          .max(1_024)
          .default(292)
          .describe('73 x Unit_Pixels of the QR control'),
        charsMax: z.int().min(20).max(458).default(458).describe('the longest payload that it takes'),
      })
      .nullable()
      .prefault({})
      .describe('the QR control'),
    markerVp: address.default(0x4f00).describe('one unused word, by which a restarted panel is noticed'),
  })
  .superRefine((given, context) => {
    const clash = overlapOf(placesOf(given));
    if (clash !== undefined) context.addIssue({ code: 'custom', path: clash.path, message: clash.message });
  });
export type DwinOptions = z.infer<typeof dwinOptions>;

/** Returns the modules per side of the QR that the panel draws of this many bytes. */
export function modulesFor(bytes: number): number {
  return bytes <= QR_SMALL_BYTES_MAX ? QR_MODULES.small : QR_MODULES.large;
}

interface Place {
  path: (string | number)[];
  from: number;
  words: number;
}

function placesOf({ texts, textWords, qr, markerVp }: DwinOptions): Place[] {
  const places: Place[] = [{ path: ['markerVp'], from: markerVp, words: 1 }];
  for (const [name, from] of Object.entries(texts)) {
    if (from !== null) places.push({ path: ['texts', name], from, words: textWords });
  }
  if (qr !== null) places.push({ path: ['qr', 'vp'], from: qr.vp, words: Math.ceil(qr.charsMax / BYTES_A_WORD) + 1 });
  return places;
}

/** Finds two places that overlap in memory, or one that ends beyond it. */
function overlapOf(places: readonly Place[]): { path: Place['path']; message: string } | undefined {
  const sorted = places.toSorted((a, b) => a.from - b.from);
  for (const [index, { path, from, words }] of sorted.entries()) {
    const next = sorted[index + 1];
    const end = from + words;
    if (next === undefined ? end > VP_MAX + 1 : end > next.from) {
      const what = next === undefined ? 'the end of the memory' : next.path.join('.');
      return { path, message: `expected its ${words} words from 0x${from.toString(16)} not to reach ${what}` };
    }
  }
  return undefined;
}
