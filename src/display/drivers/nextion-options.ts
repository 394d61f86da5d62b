import { z } from 'zod';
import { eachScreen, serialPath } from './panel.ts';

/** Every rate that the panels know. */
const BAUD_RATES = [
  2_400, 4_800, 9_600, 19_200, 31_250, 38_400, 57_600, 115_200, 230_400, 250_000, 256_000, 512_000, 921_600,
] as const;

const component = z.string().regex(/^[A-Za-z_]\w{0,13}$/, 'expected the name of a component, as t0');
const page = z.union([z.int().min(0).max(255), component]);
const text = (name: string) => component.nullable().default(name);

export const nextionOptions = z.strictObject({
  path: serialPath,
  baudRate: z.literal(BAUD_RATES).default(9_600).describe('the rate that the HMI file sets; panels come with 9600'),
  encoding: z.enum(['utf-8', 'ascii']).default('utf-8').describe("the HMI file's encoding; ascii strips diacritics"),
  dim: z.int().min(0).max(100).default(100).describe('backlight in percent'),
  pages: eachScreen(page.default(0)).prefault({}).describe('the page of each screen, by number or name'),
  texts: z
    .strictObject({
      title: text('t0'),
      amount: text('t1'),
      content: text('t2'),
      holder: text('t3'),
      account: text('t4'),
      timeLeft: text('t5'),
      hint: text('t6'),
      offline: text('t7'),
    })
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
    .describe('the QR component, on the page of the payment screen; pages.enrol may be the same'),
});
export type NextionOptions = z.infer<typeof nextionOptions>;
