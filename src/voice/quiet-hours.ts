import { z } from 'zod';

const timeOfDay = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'a time of day as HH:MM');

/** From `from` until `to`, local time, across midnight when `to` is the earlier. `volumePercent` 0 is silence. */
export const quietHoursOptions = z
  .strictObject({ from: timeOfDay, to: timeOfDay, volumePercent: z.int().min(0).max(100).default(0) })
  .refine(({ from, to }) => from !== to, 'quiet hours that begin when they end are none or all: leave them out');

export type QuietHours = z.infer<typeof quietHoursOptions>;
