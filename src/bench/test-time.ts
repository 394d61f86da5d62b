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
  /** Makes the pause between two looks at one thing that is waited for. */
  pollDelay(): () => Promise<void>;
  close(): void;
}

/** Between two looks. */
const LOOK_MS = 25;

/** Time as everybody's, for boxes that are programs and devices of their own. */
export const realTime: TestTime = {
  clock: systemClock,
  wait: (ms, signal) => systemClock.sleep(ms, signal),
  inRealTime: (work) => work(),
  pollDelay: () => () => systemClock.sleep(LOOK_MS),
  close: () => undefined,
};

const REAL_STEP_MS = 4;
/** Looks in real time before time is skipped between them: what is already under way takes no longer. */
const REAL_LOOKS = 30;
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

  pollDelay(): () => Promise<void> {
    let looks = 0;
    return () => {
      looks += 1;
      return looks > REAL_LOOKS ? this.wait(LOOK_MS) : this.inRealTime(() => systemClock.sleep(REAL_STEP_MS));
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

/** Looks until there is no problem, for at most `withinMs`; the last problem if there still is one. */
export async function waitUntilRight(
  time: TestTime,
  withinMs: number,
  look: Check,
  signal: AbortSignal,
): Promise<string | undefined> {
  const endMs = time.clock.monotonicMs() + withinMs;
  const pause = time.pollDelay();
  for (;;) {
    const problem = await time.inRealTime(look);
    if (problem === undefined || time.clock.monotonicMs() >= endMs) return problem;
    signal.throwIfAborted();
    await pause();
  }
}

/** Looks again and again for `forMs`; the first problem. */
export async function watchWhileRight(
  time: TestTime,
  forMs: number,
  look: Check,
  signal: AbortSignal,
): Promise<string | undefined> {
  const endMs = time.clock.monotonicMs() + forMs;
  const pause = time.pollDelay();
  while (time.clock.monotonicMs() < endMs) {
    signal.throwIfAborted();
    await pause();
    const problem = await time.inRealTime(look);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
