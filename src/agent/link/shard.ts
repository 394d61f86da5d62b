import type { Clock } from '../../lib/clock.ts';

/** Answers MOVED without a welcome between them that a box follows at once; one more waits as a redial does. */
const MOVES_AT_ONCE_MAX = 3;
/** A box that is not welcome in a shard for so long looks for its gateway in shard 0 again (PROTOCOL.md, clause SHA-3). */
export const WELCOME_WITHIN_MS = 15_000;

/** The shard in which a box says hello (PROTOCOL.md, clause SHA-2). Every run of the agent begins in shard 0. */
export class HomeShard {
  #shard = 0;
  #moves = 0;
  #isMoving = false;
  /** Monotonic time of the first attempt in this shard since the last welcome. */
  #sinceMs: number | undefined;

  /** Begins an attempt: the shard, and how long a step of so many milliseconds may take before it is given up there. */
  attempt(clock: Clock): { shard: number; within(stepMs: number): number } {
    const nowMs = clock.monotonicMs();
    this.#sinceMs ??= nowMs;
    if (this.#shard > 0 && nowMs - this.#sinceMs >= WELCOME_WITHIN_MS) this.#shard = 0;
    const untilMs = this.#shard > 0 ? this.#sinceMs + WELCOME_WITHIN_MS : Number.POSITIVE_INFINITY;
    return {
      shard: this.#shard,
      within: (stepMs) => Math.max(0, Math.min(stepMs, untilMs - clock.monotonicMs())),
    };
  }

  welcomed(): void {
    this.#moves = 0;
    this.#sinceMs = undefined;
  }

  /** The gateway has answered MOVED. */
  moved(shard = 0): void {
    this.#shard = shard;
    this.#moves += 1;
    this.#isMoving = this.#moves <= MOVES_AT_ONCE_MAX;
    this.#sinceMs = undefined;
  }

  /** Whether the next attempt follows at once. True once for each move. */
  takeMove(): boolean {
    const isMoving = this.#isMoving;
    this.#isMoving = false;
    return isMoving;
  }
}
