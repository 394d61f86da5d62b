/** Gives the time. No other code in src reads the machine's clock, so scenarios can run on a virtual one. */
export interface Clock {
  /**
   * Returns milliseconds from an arbitrary start, for deadlines. They never go back, and clock changes do not affect
   * them.
   */
  monotonicMs(): number;
  /** Returns milliseconds since 1970 by the machine's calendar clock, for people and for the wire. */
  wallMs(): number;
  /** Resolves after `ms` milliseconds, or as soon as `signal` aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Two clocks that differ by more are reported as skewed. NTP keeps a clock within a tenth of a second. */
export const CLOCK_SKEW_MS_MAX = 2_000;
/** Node fires a timer with a longer delay at once. */
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

/**
 * Returns the result of `work`, or `undefined` after `ms` milliseconds. `work` continues: pass it a signal to stop it.
 */
export async function withDeadline<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T | undefined> {
  const settled = new AbortController();
  try {
    return await Promise.race([work, clock.sleep(ms, settled.signal).then(() => undefined)]);
  } finally {
    settled.abort('over');
  }
}

/** Returns the result of `work`. Rejects with the signal's reason as soon as it aborts. `work` itself continues. */
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

/** A daily period in the machine's local time, as HH:MM. It crosses midnight if `to` is earlier than `from`. */
export interface DailySpan {
  from: string;
  to: string;
}

/** Returns whether `wallMs` (milliseconds since 1970) is in the period, including `from` and excluding `to`. */
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
