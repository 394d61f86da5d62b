import { randomBytes } from 'node:crypto';
import type { Clock } from '../lib/clock.ts';
import { systemClock } from '../lib/clock.ts';
import { turn, VirtualClock } from '../lib/virtual-clock.ts';

/** How time passes for what is tested, and how the bench waits in it. */
export interface TestTime {
  readonly clock: Clock;
  /** Lets time pass, until the signal at most. */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
  /** Runs what is under way in real time, a request for instance: no time is skipped before it is done. */
  inRealTime<T>(work: () => Promise<T>): Promise<T>;
  /** Makes the pause between two checks of one thing, of `mostMs` at most. */
  pollDelay(): (mostMs: number) => Promise<void>;
  close(): void;
}

/** Between two checks, also where time is skipped: longer pauses would overtake what takes real time, as a picture does. */
const POLL_MS = 25;

/** Time as everybody's, for boxes that are programs and devices of their own. */
export const realTime: TestTime = {
  clock: systemClock,
  wait: (ms, signal) => systemClock.sleep(ms, signal),
  inRealTime: (work) => work(),
  pollDelay: () => (mostMs) => systemClock.sleep(Math.min(POLL_MS, Math.max(0, mostMs))),
  close: () => undefined,
};

const REAL_STEP_MS = 4;
/** So many checks are made in real time before time is skipped between them: what is under way takes no longer. */
const REAL_CHECKS = 30;
/** After each wake-up of a sleeper, for all that it sets off; loopback sockets and the thread pool included. */
const ROUNDS = 4;
const TURNS = 6;

/**
 * Time for parts that run in this process: it goes as everybody's while a request is under way, and jumps from one
 * sleeper to the next while the bench only waits.
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

  pollDelay(): (mostMs: number) => Promise<void> {
    let checks = 0;
    return (mostMs) => {
      checks += 1;
      if (checks <= REAL_CHECKS) return this.inRealTime(() => systemClock.sleep(REAL_STEP_MS));
      return this.wait(Math.min(POLL_MS, mostMs));
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
    // What signs and hashes does so in the thread pool: this job stands in line behind it.
    await new Promise((resolve) => randomBytes(1, resolve));
    for (let i = 0; i < TURNS; i += 1) await turn();
  }
}

/** Why something is not yet as it should be; undefined once it is. */
export type Check = () => Promise<string | undefined>;

/** Checks until there is no problem, for at most `withinMs`; the last problem if there still is one. */
export async function waitUntilRight(
  time: TestTime,
  withinMs: number,
  check: Check,
  signal: AbortSignal,
): Promise<string | undefined> {
  const endMs = time.clock.monotonicMs() + withinMs;
  const pause = time.pollDelay();
  for (;;) {
    const problem = await time.inRealTime(check);
    if (problem === undefined || time.clock.monotonicMs() >= endMs) return problem;
    signal.throwIfAborted();
    await pause(endMs - time.clock.monotonicMs());
  }
}

/** Checks again and again for `forMs`; the first problem. */
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
