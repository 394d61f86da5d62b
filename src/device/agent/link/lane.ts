import type { Random } from '../../../lib/random.ts';

/** A box follows this many answers MOVED at once, if no welcome comes between them. One more waits as a redial does. */
const MOVES_AT_ONCE_MAX = 3;

/**
 * Holds the lane in which a box says hello (PROTOCOL.md, clauses SHA-2 and SHA-3). Every run of the agent begins in
 * lane 0.
 */
export class HomeLane {
  readonly #random: Random;
  #lane = 0;
  #moves = 0;
  #isMoving = false;
  #hasBeenWelcome = false;
  #loss: 'unsaid' | 'believed' | 'disproved' = 'unsaid';

  constructor(random: Random) {
    this.#random = random;
  }

  get lane(): number {
    return this.#lane;
  }

  /**
   * Returns how long to wait before the hello if the gateway asks boxes to spread theirs over `spreadMs` (clause
   * PRE-6).
   */
  helloWaitMs(spreadMs: number): number {
    return this.#hasBeenWelcome && this.#moves === 0 ? this.#random.fraction() * spreadMs : 0;
  }

  welcomed(): void {
    this.#hasBeenWelcome = true;
    this.#moves = 0;
    this.#loss = 'unsaid';
  }

  /** Follows the gateway's answer MOVED. */
  moved(lane = 0): void {
    this.#lane = lane;
    if (this.#loss === 'believed') this.#loss = 'disproved';
    this.#moves += 1;
    this.#isMoving = this.#moves <= MOVES_AT_ONCE_MAX;
  }

  /**
   * Returns to lane 0 because this lane no longer exists. Returns false, and changes nothing, after lane 0 has sent
   * the box here: a broker may retain an outdated message.
   */
  lost(): boolean {
    if (this.#loss === 'disproved') return false;
    this.#lane = 0;
    this.#loss = 'believed';
    return true;
  }

  /** Returns whether the next attempt follows at once. True once for each move. */
  takeMove(): boolean {
    const isMoving = this.#isMoving;
    this.#isMoving = false;
    return isMoving;
  }
}
