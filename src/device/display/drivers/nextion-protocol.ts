import { z } from 'zod';
import { displayFault } from '../fault.ts';
import type { Cut } from '../io/answers.ts';
import { eachScreen, eachText, serialPath } from './panel.ts';

/* This file has the options, commands and answers of Nextion and TJC panels (Nextion instruction set). */

/** Lists all baud rates of the panels. */
const BAUD_RATES = [
  2_400, 4_800, 9_600, 19_200, 31_250, 38_400, 57_600, 115_200, 230_400, 250_000, 256_000, 512_000, 921_600,
] as const;

const component = z.string().regex(/^[A-Za-z_]\w{0,13}$/, 'expected the name of a component, as t0');
const page = z.union([z.int().min(0).max(255), component]);

export const nextionOptions = z.strictObject({
  path: serialPath,
  baudRate: z.literal(BAUD_RATES).default(9_600).describe('the rate that the HMI file sets; panels come with 9600'),
  encoding: z.enum(['utf-8', 'ascii']).default('utf-8').describe("the HMI file's encoding; ascii strips diacritics"),
  dim: z.int().min(0).max(100).default(100).describe('backlight in percent'),
  pages: eachScreen(page.default(0)).prefault({}).describe('the page of each screen, by number or name'),
  texts: eachText((index) => component.nullable().default(`t${index}`))
    .prefault({})
    .describe('the text component of each text, null to leave it out'),
  textBytesMax: z.int().min(8).max(500).default(100).describe('txt_maxl of the text components'),
  qr: z
    .strictObject({
      component: component.default('qr0'),
      sidePixels: z.int().min(29).max(1_024).default(200).describe('its width and height'),
      charsMax: z.int().min(20).max(900).default(300).describe('its txt_maxl; a longer payload is refused'),
    })
    .nullable()
    .prefault({})
    .describe('the QR component, on the page of the payment screen; pages.enrol, certificate and idle may be the same'),
});
export type NextionOptions = z.infer<typeof nextionOptions>;

/** These bytes end every command and answer. */
export const END = [0xff, 0xff, 0xff];

/** Reasons of refusals, by the first byte of the answer (Nextion instruction set, return data). */
export const REFUSALS: ReadonlyMap<number, string> = new Map([
  [0x00, 'it does not know the command'],
  [0x02, 'no such component'],
  [0x03, 'no such page'],
  [0x1a, 'no such component or attribute'],
  [0x1b, 'the component does not take this value'],
  [0x1c, 'the value could not be assigned'],
  [0x1e, 'wrong number of parameters'],
  [0x20, 'wrong escape character'],
  [0x23, 'a name is too long'],
  [0x24, 'its buffer overflowed'],
]);

export const DONE = 0x01;
export const NO_COMPONENT = [0x02, 0x1a];
export const NO_PAGE = 0x03;
/** A panel sends this after power-on. */
const READY = 0x88;
/** The first byte of the answer to `sendme`. The number of the page follows. */
export const PAGE = 0x66;
/** The first byte of an answer with a text. */
export const STRING = 0x70;

/** Returns whether the panel reports a power-on: `00 00 00` and `88`. */
export function isRestart(answer: Uint8Array): boolean {
  return (answer.length === 1 && answer[0] === READY) || (answer.length === 3 && answer.every((byte) => byte === 0));
}

/** Returns whether the answer says that a command was done, or why not. */
export function isStatus(answer: Uint8Array): boolean {
  const [code = 0] = answer;
  return answer.length === 1 && (code === DONE || REFUSALS.has(code));
}

/** Cuts answers from a stream of bytes, without their end. */
export const cutAnswer: Cut = (bytes) => {
  const end = bytes.findIndex((_, at) => END.every((byte, offset) => bytes[at + offset] === byte));
  return end < 0 ? undefined : { answer: bytes.slice(0, end), length: end + END.length };
};

export function encoded(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}

/** Returns the bytes of an instruction. */
export function command(instruction: string): Uint8Array {
  return Uint8Array.from([...encoded(instruction), ...END]);
}

/** Writes `t0.txt="…"`, escaped for the panel's parser. Throws a PayboxError if the encoding lacks a character. */
export function assignment(component: string, value: string, encoding: NextionOptions['encoding']): string {
  const carried = encoding === 'utf-8' ? /^\P{Cc}*$/u : /^[ -~]*$/;
  if (!carried.test(value)) {
    throw displayFault(`the text for ${component} has characters that the panel cannot take`, 'set encoding: utf-8');
  }
  return `${component}.txt="${value.replaceAll(/["\\]/g, '\\$&')}"`;
}
