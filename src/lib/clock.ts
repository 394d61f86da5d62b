/** Injected time: no other code in src may read the machine's clock, so that scenarios run on a virtual clock. */
export interface Clock {
  /** Milliseconds from an arbitrary start; never goes back, unaffected by clock changes. For deadlines. */
  monotonicMs(): number;
  /** Milliseconds since 1970 by the machine's calendar clock. For people and for the wire. */
  wallMs(): number;
  /** Resolves after `ms` milliseconds, or as soon as `signal` aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** A clock that differs by more from another one is said to be wrong; NTP keeps within a tenth of a second. */
export const CLOCK_SKEW_MS_MAX = 2_000;
/** The longest delay of a Node timer; longer ones fire at once. */
const TIMER_MAX_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) {
        resolve();
        return;
      }
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, Math.min(Math.max(0, ms), TIMER_MAX_MS));
      signal?.addEventListener('abort', done, { once: true });
    }),
};

/** The result of `work`, or `undefined` after `ms` milliseconds. Does not stop `work`: pass it a signal for that. */
export async function withDeadline<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T | undefined> {
  const settled = new AbortController();
  try {
    return await Promise.race([work, clock.sleep(ms, settled.signal).then(() => undefined)]);
  } finally {
    settled.abort('over');
  }
}

/** Returns the result of `work`. Rejects with the signal's reason as soon as it aborts. Does not stop `work`. */
export async function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Runs `work` with a signal that aborts when `parent` does or after `ms` milliseconds. */
export async function withAbortAfter<T>(
  clock: Clock,
  ms: number,
  parent: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const settled = new AbortController();
  const late = new AbortController();
  void clock.sleep(ms, settled.signal).then(() => {
    if (!settled.signal.aborted) late.abort(new Error(`not done within ${ms} ms`));
  });
  try {
    return await work(parent === undefined ? late.signal : AbortSignal.any([parent, late.signal]));
  } finally {
    settled.abort('over');
  }
}

/** A daily period in the machine's local time, as HH:MM; it crosses midnight if `to` is earlier than `from`. */
export interface DailySpan {
  from: string;
  to: string;
}

/** Whether `wallMs` (milliseconds since 1970) is in the period, including `from` and excluding `to`. */
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
