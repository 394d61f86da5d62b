const LINE_FEED = 0x0a;
/** The parser refuses a larger size. This limit only keeps the number finite. */
const SIZE_MAX = 2 ** 32;

/**
 * Measures the framing of a chunked body: sizes, extensions, line ends and trailers (RFC 9112, section 7.1). Node's
 * parser emits an event for each chunk, so a small body in one-byte chunks costs as much as thousands of bodies.
 */
export class ChunkMeter {
  /** Framing bytes counted so far. */
  framingBytes = 0;
  #reads: 'size' | 'rest of line' | 'data' | 'end of data' = 'size';
  #dataLeft = 0;

  /** Counts the next bytes of the body. The caller passes none from after its end. */
  take(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.#reads === 'data') {
        const taken = Math.min(this.#dataLeft, bytes.length - at);
        this.#dataLeft -= taken;
        at += taken;
        if (this.#dataLeft === 0) this.#reads = 'end of data';
      } else {
        this.#takeFraming(bytes[at] ?? 0);
        at += 1;
      }
    }
  }

  #takeFraming(byte: number): void {
    this.framingBytes += 1;
    if (byte === LINE_FEED) {
      this.#reads = this.#reads !== 'end of data' && this.#dataLeft > 0 ? 'data' : 'size';
      return;
    }
    const digit = this.#reads === 'size' ? Number.parseInt(String.fromCharCode(byte), 16) : Number.NaN;
    if (Number.isNaN(digit)) this.#reads = this.#reads === 'size' ? 'rest of line' : this.#reads;
    else this.#dataLeft = Math.min(SIZE_MAX, this.#dataLeft * 16 + digit);
  }
}
