import { randomBytes } from 'node:crypto';
import type { Clock } from '../lib/clock.ts';
import { systemClock } from '../lib/clock.ts';
import { turn, VirtualClock } from '../lib/virtual-clock.ts';

/** The time of a target, and how the bench waits in it. */
export interface TestTime {
  readonly clock: Clock;
  /** Waits, at most until the signal. */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
  /** Runs work, for example a request, in real time: no time is skipped before it ends. */
  inRealTime<T>(work: () => Promise<T>): Promise<T>;
  /**
   * Returns a function that pauses between two checks of one condition, for `pauseMs` but at most `mostMs`. Where time is skipped, the
   * first checks are in real time, so that work under way ends before them; then each pause is `growthMs` longer than the one
   * before, so that what takes hours is not checked a million times.
   */
  pollDelay(options?: { pauseMs?: number; growthMs?: number }): (mostMs: number) => Promise<void>;
  close(): void;
}

/** Pause between checks, also in virtual time: longer skips would overtake work that needs real time, for example a picture. */
const POLL_MS = 25;
/** How much longer a pause of a wait is than the one before: the longest is reached after 5 s. */
const POLL_GROWTH_MS = 1;
const POLL_MAX_MS = 100;

/** Real time, for boxes that are separate programs or devices. */
export const realTime: TestTime = {
  clock: systemClock,
  wait: (ms, signal) => systemClock.sleep(ms, signal),
  inRealTime: (work) => work(),
  pollDelay:
    ({ pauseMs = POLL_MS } = {}) =>
    (mostMs) =>
      systemClock.sleep(Math.min(pauseMs, Math.max(0, mostMs))),
  close: () => undefined,
};

const REAL_STEP_MS = 4;
/** Checks in real time before time is skipped between checks: work under way ends within them. */
const REAL_CHECKS = 30;
/** Rounds after each wake-up, so that all its effects finish, loopback sockets and the thread pool included. */
const ROUNDS = 4;
const TURNS = 6;

/**
 * Virtual time for parts in this process. It runs as real time while a request is under way, and jumps from one sleeper to the next
 * while the bench only waits.
 */
export class VirtualTime implements TestTime {
  readonly clock = new VirtualClock();
  #waiting = 0;
  #working = 0;
  #closed = false;

  constructor() {
    void this.#drive();
  }

  async wait(ms: number, signal?: AbortSignal): Promise<void> {
    this.#waiting += 1;
    try {
      await this.clock.sleep(ms, signal);
    } finally {
      this.#waiting -= 1;
    }
  }

  async inRealTime<T>(work: () => Promise<T>): Promise<T> {
    this.#working += 1;
    try {
      return await work();
    } finally {
      this.#working -= 1;
    }
  }

  pollDelay({ pauseMs = POLL_MS, growthMs = 0 } = {}): (mostMs: number) => Promise<void> {
    const longestMs = Math.max(pauseMs, POLL_MAX_MS);
    let checks = 0;
    return (mostMs) => {
      checks += 1;
      if (checks <= REAL_CHECKS) return this.inRealTime(() => systemClock.sleep(REAL_STEP_MS));
      return this.wait(Math.min(pauseMs + growthMs * (checks - REAL_CHECKS), longestMs, mostMs));
    };
  }

  close(): void {
    this.#closed = true;
  }

  async #drive(): Promise<void> {
    let atMs = systemClock.monotonicMs();
    while (!this.#closed) {
      if (this.#waiting > 0 && this.#working === 0) {
        await settled();
        if (this.#working === 0) this.clock.step();
      } else {
        await systemClock.sleep(REAL_STEP_MS);
        const nowMs = systemClock.monotonicMs();
        await this.clock.advance(nowMs - atMs);
      }
      atMs = systemClock.monotonicMs();
    }
  }
}

async function settled(): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    // Signing and hashing run in the thread pool: this job is queued behind them.
    await new Promise((resolve) => randomBytes(1, resolve));
    for (let i = 0; i < TURNS; i += 1) await turn();
  }
}

/** Why something is not yet as expected; undefined when it is. */
export type Check = () => Promise<string | undefined>;

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
    if (problem === undefined || time.clock.monotonicMs() >= endMs) return problem;
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
