import { z } from 'zod';

const timeOfDay = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'a time of day as HH:MM');

/** From `from` until `to`, local time, across midnight when `to` is the earlier. `volumePercent` 0 is silence. */
export const quietHoursOptions = z
  .strictObject({ from: timeOfDay, to: timeOfDay, volumePercent: z.int().min(0).max(100).default(0) })
  .refine(({ from, to }) => from !== to, 'quiet hours that begin when they end are none or all: leave them out');

export type QuietHours = z.infer<typeof quietHoursOptions>;

/** Whether the wall clock of this machine, at `wallMs`, shows a time in the quiet hours; `to` itself is not quiet. */
export function isQuiet({ from, to }: QuietHours, wallMs: number): boolean {
  const now = new Date(wallMs);
  const minute = now.getHours() * 60 + now.getMinutes();
  const begin = minuteOf(from);
  const end = minuteOf(to);
  return begin < end ? minute >= begin && minute < end : minute >= begin || minute < end;
}

function minuteOf(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
}
