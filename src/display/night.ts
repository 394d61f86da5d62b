/** A span of local time as HH:MM, across midnight when `to` is the earlier; `to` itself is outside. */
export interface Night {
  from: string;
  to: string;
}

/** Whether the wall clock of this machine, at `wallMs`, shows a time in the night. */
export function isNight({ from, to }: Night, wallMs: number): boolean {
  const now = new Date(wallMs);
  const minute = now.getHours() * 60 + now.getMinutes();
  const begin = minuteOf(from);
  const end = minuteOf(to);
  return begin < end ? minute >= begin && minute < end : minute >= begin || minute < end;
}

function minuteOf(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
}
