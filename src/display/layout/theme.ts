import type { Tone } from '../words.ts';

/** The colours of one mood of the screen, each text at 4.5:1 or more on its paper. */
export interface Theme {
  paper: number;
  ink: number;
  /** Labels and other quiet words. */
  muted: number;
  /** Titles beside the figure that matters. */
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

export const WHITE = 0xffffff;
export const BLACK = 0x000000;
export const WARNING = { paper: 0xffb938, ink: 0x2b1a00 } as const;
