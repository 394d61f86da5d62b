import { z } from 'zod';
import { SPEAKER_DRIVERS } from './registry.ts';
import { ZERO_WORDS } from './words.ts';

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
