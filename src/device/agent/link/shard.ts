import type { Random } from '../../../lib/random.ts';

/** A box follows this many answers MOVED at once, if no welcome comes between them. One more waits as a redial does. */
const MOVES_AT_ONCE_MAX = 3;

/**
 * Holds the shard in which a box says hello (PROTOCOL.md, clauses SHA-2 and SHA-3). Every run of the agent begins in
 * shard 0.
 */
export class HomeShard {
  readonly #random: Random;
  #shard = 0;
  #moves = 0;
  #isMoving = false;
  #hasBeenWelcome = false;
  #loss: 'unsaid' | 'believed' | 'disproved' = 'unsaid';

  constructor(random: Random) {
    this.#random = random;
  }

  get shard(): number {
    return this.#shard;
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
  moved(shard = 0): void {
    this.#shard = shard;
    if (this.#loss === 'believed') this.#loss = 'disproved';
    this.#moves += 1;
    this.#isMoving = this.#moves <= MOVES_AT_ONCE_MAX;
  }

  /**
   * Returns to shard 0 because this shard no longer exists. Returns false, and changes nothing, after shard 0 has sent
   * the box here: a broker may retain an outdated message.
   */
  lost(): boolean {
    if (this.#loss === 'disproved') return false;
    this.#shard = 0;
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
