import type { Clock } from '../../lib/clock.ts';
import { systemClock } from '../../lib/clock.ts';
import { isQuietFor, settled } from '../../lib/event-loop.ts';
import { VirtualClock } from '../../lib/virtual-clock.ts';

/** Why something is not yet as expected; undefined when it is. */
export type Check = () => Promise<string | undefined>;

/** The time of a target, and how the bench waits in it. */
export interface TestTime {
  readonly clock: Clock;
  /** Waits, at most until the signal. */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
  /** Runs work, for example with a device, in real time: no time is skipped before it ends. */
  inRealTime<T>(work: () => Promise<T>): Promise<T>;
  /** Runs a request to a part. Time may be skipped meanwhile, once nothing happens in this process: a late answer comes at once. */
  untilAnswered<T>(work: () => Promise<T>): Promise<T>;
  /**
   * Returns a function that pauses between two checks of one condition, for `pauseMs` but at most `mostMs`. Where time is skipped, the
   * first checks are in real time, so that work under way ends before them. Then each pause is `growthMs` longer than the one
   * before, and lasts until something may have changed: until a sleeper is woken, or for some pauses more.
   */
  pollDelay(options?: { pauseMs?: number; growthMs?: number }): (mostMs: number) => Promise<void>;
  /**
   * Checks again what has a problem at its deadline. Where time is skipped, the clock stands meanwhile: work that was under way gets
   * real time to end, on a machine with much else to do, but no box gets more of its own.
   */
  overtime(check: Check, problem: string): Promise<string | undefined>;
  close(): void;
}

/** Pause between checks, and the first one in real time; the next ones are longer by as much each. */
const POLL_MS = 25;
const POLL_FIRST_MS = 5;
/** How much longer a pause of a wait is than the one before. */
const POLL_GROWTH_MS = 1;
const POLL_MAX_MS = 100;

/** Real time, for boxes that are separate programs or devices. */
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
/** Time that passes in a real pause at most: where the machine keeps this process waiting, its boxes have waited too. */
const REAL_STEP_MAX_MS = 12;
/** After so many real pauses in a row without an event, all work under way has ended. */
const QUIET_PAUSES = 3;
/** Checks in real time at most, because in a program with much else to do there is always an event. */
const REAL_CHECKS = 30;
/** Pause between checks while no sleeper is woken, so that nothing should change: for work that took longer than all other. */
const ASLEEP_MS = 1_000;

/** A pause between checks, with the time of its end. */
interface Pause {
  readonly shortestMs: number;
  endMs: number;
  end(): void;
}

export interface VirtualTimeOptions {
  /** Only `wait` and a request of the bench itself skip time; conditions are awaited in real time, because other programs take part. */
  isShared?: boolean;
  /** Whether another program is at work, so that no time may be skipped now. */
  isHeld?: () => boolean;
}

/**
 * Virtual time for parts in this process. It runs as real time while something is under way, and jumps from one sleeper to the next
 * while the bench only waits.
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
      // Most of what is under way needs no more than its turn.
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

  /** A real pause. Returns whether a request is open, and nothing else happened. */
  async #pause(): Promise<boolean> {
    if (this.#asking > 0) return isQuietFor(REAL_STEP_MS);
    const over = new AbortController();
    this.#endPause = () => over.abort('time may jump');
    await systemClock.sleep(REAL_STEP_MS, over.signal);
    return false;
  }

  /** Goes to the next sleeper or end of a pause, unless a pause is over now. */
  async #jump(): Promise<void> {
    if (this.#endPauses()) return;
    const nextMs = Math.min(...[...this.#pauses].map(({ endMs }) => endMs));
    if (this.clock.step(nextMs))
      for (const pause of this.#pauses) pause.endMs = Math.min(pause.endMs, pause.shortestMs);
    else if (Number.isFinite(nextMs)) await this.clock.advance(nextMs - this.clock.monotonicMs());
  }

  /** Ends the pauses that are over; whether there was one. */
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

/** Repeats the check for `forMs`; returns the first problem. */
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
