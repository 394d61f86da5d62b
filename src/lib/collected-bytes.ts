/** The buffer starts with this size and doubles when it is full. */
const ROOM_BYTES = 1_024;

/**
 * Collects bytes that arrive in pieces into one buffer. Thousands of small pieces kept apart would need a hundred times
 * their size, and the sender chooses the size of a piece (PROTOCOL.md, threat THR-41).
 */
export class CollectedBytes {
  readonly #bytesMax: number;
  #room = Buffer.alloc(0);
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Adds a piece. If the total would exceed `bytesMax`, it adds only the beginning of the piece and returns false. */
  add(piece: Buffer): boolean {
    const length = Math.min(this.#length + piece.length, this.#bytesMax);
    if (length > this.#room.length) {
      const larger = Buffer.alloc(Math.max(length, ROOM_BYTES, Math.min(2 * this.#room.length, this.#bytesMax)));
      this.#room.copy(larger, 0, 0, this.#length);
      this.#room = larger;
    }
    const isWhole = piece.copy(this.#room, this.#length, 0, length - this.#length) === piece.length;
    this.#length = length;
    return isWhole;
  }

  /** Returns all bytes added so far. */
  get bytes(): Buffer {
    return this.#room.subarray(0, this.#length);
  }
}
