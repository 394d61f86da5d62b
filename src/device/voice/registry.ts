import { z } from 'zod';
import type { Speaker, SpeakerDriver, SpeakerIo } from './contract.ts';
import { clips } from './drivers/clips.ts';
import { espeak } from './drivers/espeak.ts';
import { page } from './drivers/page.ts';
import { ZERO_WORDS } from './words.ts';

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

const timeOfDay = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'a time of day as HH:MM');

/**
 * The hours from `from` to `to`, local time, past midnight if `to` is earlier. With `volumePercent` 0 the box is
 * silent.
 */
export const quietHoursOptions = z
  .strictObject({ from: timeOfDay, to: timeOfDay, volumePercent: z.int().min(0).max(100).default(0) })
  .refine(({ from, to }) => from !== to, 'quiet hours that begin when they end are none or all: leave them out');

/** The options of the voice. `options` are those of the driver. */
export const voiceOptions = z
  .strictObject({
    driver: z.enum([...SPEAKER_DRIVERS.keys()]),
    options: z.record(z.string(), z.unknown()).default({}),
    volumePercent: z.int().min(0).max(100).default(80),
    chime: z.boolean().default(true),
    /** The word for an empty tens place: `linh` in the north, `lẻ` in the south. */
    zero: z.enum(ZERO_WORDS).default('linh'),
    quietHours: quietHoursOptions.optional(),
  })
  .superRefine(({ driver, options }, context) => {
    const checked = SPEAKER_DRIVERS.get(driver)?.options.safeParse(options);
    for (const issue of checked?.error?.issues ?? []) {
      context.addIssue({ code: 'custom', message: issue.message, path: ['options', ...issue.path] });
    }
  });

export type VoiceOptions = z.infer<typeof voiceOptions>;
