import type { Tone } from '../words.ts';

/** The colours of a tone. Every text has a contrast of at least 4.5:1 to its paper. */
export interface Theme {
  paper: number;
  ink: number;
  /** The colour of labels and other secondary words. */
  muted: number;
  /** The colour of titles beside the most important figure. */
  accent: number;
  disc: number;
  stroke: number;
}

const NAVY = { paper: 0x0f2140, ink: 0xffffff, muted: 0xa3b8d6, accent: 0x6fd0ff, disc: 0x1d3a68, stroke: 0x6fd0ff };

export const THEMES: Readonly<Record<Tone, Theme>> = {
  calm: NAVY,
  ready: { ...NAVY, disc: 0x1f6feb, stroke: 0xffffff },
  good: { paper: 0x08713f, ink: 0xffffff, muted: 0xc5ecd7, accent: 0xd9ffe9, disc: 0xffffff, stroke: 0x08713f },
  ended: { paper: 0x333c4a, ink: 0xffffff, muted: 0xbac4d1, accent: 0xffcf70, disc: 0x4c5869, stroke: 0xffcf70 },
  bad: { paper: 0x98181f, ink: 0xffffff, muted: 0xfbd0d2, accent: 0xffe0e1, disc: 0xffffff, stroke: 0x98181f },
};

const NIGHT = { paper: 0x000000, ink: 0xd8d8d8, muted: 0x8fa6c4, accent: 0x4fb8ff, disc: 0x10408c, stroke: 0xd8d8d8 };

/**
 * The themes of small panels. Black needs no light on LED and OLED panels, and full light blooms over its neighbours.
 */
const NIGHT_THEMES: Readonly<Record<Tone, Theme>> = {
  calm: NIGHT,
  ready: NIGHT,
  good: { paper: 0x004020, ink: 0xffffff, muted: 0xa0d8bc, accent: 0xa0ffd0, disc: 0xd8d8d8, stroke: 0x004020 },
  ended: { ...NIGHT, accent: 0xffb938, disc: 0x303030, stroke: 0xffb938 },
  bad: { paper: 0x500006, ink: 0xffffff, muted: 0xf0b0b4, accent: 0xffc8ca, disc: 0xd8d8d8, stroke: 0x500006 },
};
/** The light modules of a QR on a small panel are bright enough for cameras, and dim enough not to bloom. */
const LED_WHITE = 0xd8d8d8;

export const WHITE = 0xffffff;
export const BLACK = 0x000000;
export const WARNING = { paper: 0xffb938, ink: 0x2b1a00 } as const;

/** Returns the themes of a screen of this size, and the light colour of its QR. */
export function lookOf(small: boolean): { themes: Readonly<Record<Tone, Theme>>; light: number } {
  return small ? { themes: NIGHT_THEMES, light: LED_WHITE } : { themes: THEMES, light: WHITE };
}
