import type { Clock } from '../../lib/clock.ts';
import { systemClock } from '../../lib/clock.ts';
import { isQuietFor, settled } from '../../lib/event-loop.ts';
import { VirtualClock } from '../../lib/virtual-clock.ts';

/** Returns why something is not yet as expected; undefined when it is. */
export type Check = () => Promise<string | undefined>;

/** The time of a target, and how the bench waits in it. */
export interface TestTime {
  readonly clock: Clock;
  /** Waits for a time, at most until the signal aborts. */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
  /** Runs work, for example with a device, in real time: no time is skipped before it ends. */
  inRealTime<T>(work: () => Promise<T>): Promise<T>;
  /**
   * Runs a request to a part. Time may be skipped meanwhile once nothing else happens in this process, so a late answer
   * comes at once.
   */
  untilAnswered<T>(work: () => Promise<T>): Promise<T>;
  /**
   * Returns a function that pauses between two checks of one condition, for `pauseMs` but at most `mostMs`. Where time
   * is skipped, the first pauses are real time, so that work under way ends before the checks. Then each pause is
   * `growthMs` longer than the one before. It lasts until a sleeper wakes, which may change something, or until its end.
   */
  pollDelay(options?: { pauseMs?: number; growthMs?: number }): (mostMs: number) => Promise<void>;
  /**
   * Checks a condition once more if it is not met at its deadline. Where time is skipped, the clock stands still meanwhile.
   * So work under way gets real time to end on a busy machine, but no box gets more time of its own.
   */
  overtime(check: Check, problem: string): Promise<string | undefined>;
  close(): void;
}

/** The pause between checks. In real time the first one is shorter, and each next one longer by the same time. */
const POLL_MS = 25;
const POLL_FIRST_MS = 5;
/** A pause of a wait is longer than the one before by this time. */
const POLL_GROWTH_MS = 1;
const POLL_MAX_MS = 100;

/** Gives real time, for boxes that are separate programs or devices. */
export const realTime: TestTime = {
  clock: systemClock,
  wait: (ms, signal) => systemClock.sleep(ms, signal),
  inRealTime: (work) => work(),
  untilAnswered: (work) => work(),
  pollDelay: ({ pauseMs = POLL_MS } = {}) => {
    let checks = 0;
    return (mostMs) => {
      checks += 1;
      return systemClock.sleep(Math.min(pauseMs, POLL_FIRST_MS * checks, Math.max(0, mostMs)));
    };
  },
  overtime: async (_check, problem) => problem,
  close: () => undefined,
};

const REAL_STEP_MS = 4;
/** A real pause counts as at most this time. When a busy machine stops this process, its boxes stop too. */
const REAL_STEP_MAX_MS = 12;
/** After this many real pauses in a row without an event, all work under way has ended. */
const QUIET_PAUSES = 3;
/** The limit of checks in real time. A busy program always has another event. */
const REAL_CHECKS = 30;
/** The pause between checks while no sleeper wakes. Nothing should change then, except by work that takes very long. */
const ASLEEP_MS = 1_000;

/** A pause between checks, with the time of its end. */
interface Pause {
  readonly shortestMs: number;
  endMs: number;
  end(): void;
}

export interface VirtualTimeOptions {
  /** True if other programs take part. Then only `wait` and a request of the bench itself skip time, conditions do not. */
  isShared?: boolean;
  /** Returns true while another program is at work, so that no time may be skipped. */
  isHeld?: () => boolean;
}

/**
 * Gives virtual time to parts in this process. It runs as real time while something is under way, and jumps from one
 * sleeper to the next while the bench only waits.
 *
 * Theory. `VirtualClock` moves only on request, and one loop (`#drive`) moves it. Skipping time is safe only if no work
 * is under way that the clock cannot see. So everything that the bench does counts itself: `#waiting` for a wait,
 * `#working` for work in real time, `#asking` for an open request, `#standing` for a last check at a deadline.
 *
 * Invariants. Time jumps only while somebody waits and nothing works, asks or stands. An open request allows a jump only
 * after some quiet pauses, because its answer may itself wait for virtual time. A jump goes to the next sleeper and never
 * past the end of a pause, so a check runs after each change. At a deadline the clock stands still.
 *
 * Tried and failed. Checks at a fixed pause of 25 ms cost most of a long scenario, so they now follow the sleepers. Jumps
 * right after a request overtook files and child programs, so the first checks of a condition take real time.
 */
export class VirtualTime implements TestTime {
  readonly clock = new VirtualClock();
  readonly #isShared: boolean;
  readonly #isHeld: () => boolean;
  readonly #pauses = new Set<Pause>();
  #waiting = 0;
  #working = 0;
  #asking = 0;
  #standing = 0;
  #closed = false;
  #endPause: () => void = () => undefined;

  constructor({ isShared = false, isHeld = () => false }: VirtualTimeOptions = {}) {
    this.#isShared = isShared;
    this.#isHeld = isHeld;
    void this.#drive();
  }

  async wait(ms: number, signal?: AbortSignal): Promise<void> {
    await this.#whileWaiting(this.clock.sleep(ms, signal));
  }

  async inRealTime<T>(work: () => Promise<T>): Promise<T> {
    this.#working += 1;
    try {
      return await work();
    } finally {
      this.#working -= 1;
      if (this.#mayJump) this.#endPause();
    }
  }

  async untilAnswered<T>(work: () => Promise<T>): Promise<T> {
    this.#asking += 1;
    try {
      return await work();
    } finally {
      this.#asking -= 1;
    }
  }

  pollDelay({ pauseMs = POLL_MS, growthMs = 0 } = {}): (mostMs: number) => Promise<void> {
    if (this.#isShared) return realTime.pollDelay({ pauseMs });
    const longestMs = Math.max(pauseMs, POLL_MAX_MS);
    let checks = 0;
    let quiet = 0;
    return async (mostMs) => {
      checks += 1;
      // Most work under way needs only its turn of the event loop.
      if (checks === 1) return this.inRealTime(settled);
      if (quiet < QUIET_PAUSES && checks <= REAL_CHECKS) {
        quiet = (await this.inRealTime(() => isQuietFor(REAL_STEP_MS))) ? quiet + 1 : 0;
        return;
      }
      const shortestMs = Math.min(pauseMs + growthMs * checks, longestMs, mostMs);
      await this.#untilChange(shortestMs, Math.min(Math.max(shortestMs, ASLEEP_MS), mostMs));
    };
  }

  async overtime(check: Check, atDeadline: string): Promise<string | undefined> {
    let problem: string | undefined = atDeadline;
    this.#standing += 1;
    try {
      for (let checks = 0; checks < REAL_CHECKS; checks += 1) {
        await systemClock.sleep(REAL_STEP_MS);
        problem = await check();
        if (problem === undefined) break;
      }
    } finally {
      this.#standing -= 1;
    }
    return problem;
  }

  close(): void {
    this.#closed = true;
  }

  get #mayJump(): boolean {
    return this.#waiting > 0 && this.#working + this.#asking + this.#standing === 0 && !this.#isHeld();
  }

  async #whileWaiting(waiting: Promise<void>): Promise<void> {
    this.#waiting += 1;
    if (this.#mayJump) this.#endPause();
    try {
      await waiting;
    } finally {
      this.#waiting -= 1;
    }
  }

  async #untilChange(shortestMs: number, longestMs: number): Promise<void> {
    const over = Promise.withResolvers<void>();
    const nowMs = this.clock.monotonicMs();
    const pause = { shortestMs: nowMs + shortestMs, endMs: nowMs + longestMs, end: over.resolve };
    this.#pauses.add(pause);
    await this.#whileWaiting(over.promise);
  }

  async #drive(): Promise<void> {
    let quiet = 0;
    let atMs = systemClock.monotonicMs();
    while (!this.#closed) {
      if (this.#mayJump) {
        await settled();
        if (this.#mayJump) await this.#jump();
        atMs = systemClock.monotonicMs();
        continue;
      }
      quiet = (await this.#pause()) ? quiet + 1 : 0;
      const nowMs = systemClock.monotonicMs();
      if (this.#standing === 0) await this.clock.advance(Math.min(nowMs - atMs, REAL_STEP_MAX_MS));
      this.#endPauses();
      atMs = nowMs;
      const mayJump = this.#asking > 0 && this.#working + this.#standing === 0 && !this.#isHeld();
      if (quiet >= QUIET_PAUSES && mayJump) await this.#jump();
    }
  }

  /** Pauses in real time. Returns whether a request is open and nothing else happened. */
  async #pause(): Promise<boolean> {
    if (this.#asking > 0) return isQuietFor(REAL_STEP_MS);
    const over = new AbortController();
    this.#endPause = () => over.abort('time may jump');
    await systemClock.sleep(REAL_STEP_MS, over.signal);
    return false;
  }

  /** Advances to the next sleeper or end of a pause, unless a pause is over now. */
  async #jump(): Promise<void> {
    if (this.#endPauses()) return;
    const nextMs = Math.min(...[...this.#pauses].map(({ endMs }) => endMs));
    if (this.clock.step(nextMs))
      for (const pause of this.#pauses) pause.endMs = Math.min(pause.endMs, pause.shortestMs);
    else if (Number.isFinite(nextMs)) await this.clock.advance(nextMs - this.clock.monotonicMs());
  }

  /** Ends the pauses that are over. Returns whether there was one. */
  #endPauses(): boolean {
    const over = [...this.#pauses].filter(({ endMs }) => endMs <= this.clock.monotonicMs());
    for (const pause of over) {
      this.#pauses.delete(pause);
      pause.end();
    }
    return over.length > 0;
  }
}

/** Repeats the check until there is no problem, for at most `withinMs`. Returns the remaining problem. */
export async function waitUntilRight(
  time: TestTime,
  withinMs: number,
  check: Check,
  signal: AbortSignal,
): Promise<string | undefined> {
  const endMs = time.clock.monotonicMs() + withinMs;
  const pause = time.pollDelay({ growthMs: POLL_GROWTH_MS });
  for (;;) {
    const problem = await time.inRealTime(check);
    if (problem === undefined) return undefined;
    if (time.clock.monotonicMs() >= endMs) return time.overtime(check, problem);
    signal.throwIfAborted();
    await pause(endMs - time.clock.monotonicMs());
  }
}

/** Repeats the check for `forMs`. Returns the first problem. */
export async function watchWhileRight(
  time: TestTime,
  forMs: number,
  check: Check,
  signal: AbortSignal,
): Promise<string | undefined> {
  const endMs = time.clock.monotonicMs() + forMs;
  const pause = time.pollDelay();
  while (time.clock.monotonicMs() < endMs) {
    signal.throwIfAborted();
    await pause(endMs - time.clock.monotonicMs());
    const problem = await time.inRealTime(check);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
