/** Time, injected: nothing else in src may ask the machine for it, so that scenarios run on a virtual clock. */
export interface Clock {
  /** Milliseconds from an arbitrary start; never goes back, unaffected by clock changes. For deadlines. */
  monotonicMs(): number;
  /** Milliseconds since 1970 by the machine's calendar clock. For people and for the wire. */
  wallMs(): number;
  /** Resolves after `ms` milliseconds, or at once when `signal` aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The longest delay that a Node timer takes; longer ones would fire at once. */
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
 * The result of `work`, or `undefined` once `ms` milliseconds have passed without one.
 * The work itself is not stopped: hand it a signal where it can be.
 */
export async function withDeadline<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T | undefined> {
  const settled = new AbortController();
  try {
    return await Promise.race([work, clock.sleep(ms, settled.signal).then(() => undefined)]);
  } finally {
    settled.abort();
  }
}

/** Runs `work` with a signal that aborts when `parent` does or `ms` milliseconds have passed, whichever is first. */
export async function withAbortAfter<T>(
  clock: Clock,
  ms: number,
  parent: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const settled = new AbortController();
  const late = new AbortController();
  void clock.sleep(ms, settled.signal).then(() => {
    if (!settled.signal.aborted) late.abort(new Error(`not done within ${ms} ms`));
  });
  try {
    return await work(AbortSignal.any([parent, late.signal]));
  } finally {
    settled.abort();
  }
}

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
