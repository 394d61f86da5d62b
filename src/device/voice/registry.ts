import type { z } from 'zod';
import type { Speaker, SpeakerDriver, SpeakerIo } from './contract.ts';
import { clips } from './drivers/clips.ts';
import { espeak } from './drivers/espeak.ts';
import { page } from './drivers/page.ts';

/** A driver for any options. Decoding and opening are one step, so that no caller needs their type. */
export interface RegisteredSpeaker {
  readonly name: string;
  readonly summary: string;
  /** Valid `options`, as in a configuration. */
  readonly example: unknown;
  readonly options: z.ZodType;
  /** Decodes these options. Throws a ZodError whose paths begin at the options. */
  configure(options: unknown): { open(io: SpeakerIo): Speaker };
}

function register<Options>(driver: SpeakerDriver<Options>): RegisteredSpeaker {
  const { name, summary, example, options } = driver;
  return {
    name,
    summary,
    example,
    options,
    configure: (given) => {
      const decoded = options.parse(given);
      return { open: (io) => driver.open(decoded, io) };
    },
  };
}

/** All kinds of voice, by their names in a configuration. */
export const SPEAKER_DRIVERS: ReadonlyMap<string, RegisteredSpeaker> = new Map(
  [register(espeak), register(clips), register(page)].map((driver) => [driver.name, driver]),
);
