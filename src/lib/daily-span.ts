/** A span of every day in the machine's local time, as HH:MM; across midnight when `to` is the earlier. */
export interface DailySpan {
  from: string;
  to: string;
}

/** Whether `wallMs` (milliseconds since 1970) lies in the span; `from` is inside, `to` is outside. */
export function isWithin({ from, to }: DailySpan, wallMs: number): boolean {
  const now = new Date(wallMs);
  const minute = now.getHours() * 60 + now.getMinutes();
  const begin = minuteOf(from);
  const end = minuteOf(to);
  return begin < end ? minute >= begin && minute < end : minute >= begin || minute < end;
}

function minuteOf(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
}
