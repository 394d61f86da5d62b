/** The first room; it doubles as bytes come. */
const ROOM_BYTES = 1_024;

/**
 * Collects bytes that come in pieces, in one buffer. Kept as they come, thousands of small pieces would take a hundred
 * times their size, and whoever sends them chooses how small they are (PROTOCOL.md, threat THR-41).
 */
export class CollectedBytes {
  readonly #bytesMax: number;
  #room = Buffer.alloc(0);
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Adds a piece. Returns false, and adds only its beginning, where that would be more than `bytesMax` bytes. */
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

  /** The bytes so far. */
  get bytes(): Buffer {
    return this.#room.subarray(0, this.#length);
  }
}
