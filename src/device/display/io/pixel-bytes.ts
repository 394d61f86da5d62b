/** The bytes per pixel in a device's memory, by bits per pixel. */
export const PIXEL_BYTES = { 16: 2, 32: 4 } as const;
export type BitsPerPixel = keyof typeof PIXEL_BYTES;

/**
 * Writes `words.length` pixels (little-endian red, green, blue, 255) as RGB565 into `out` from byte `at`: two bytes
 * each, low byte first.
 */
export function packRgb565(words: Uint32Array, out: DataView, at: number): void {
  // The loop has an index, because an iterator would take six times as long.
  for (let index = 0, place = at; index < words.length; index += 1, place += 2) {
    const word = words[index] ?? 0;
    const red = (word & 0xf8) << 8;
    const green = (word >> 5) & 0x7e0;
    const blue = (word >> 19) & 0x1f;
    out.setUint16(place, red | green | blue, true);
  }
}

/**
 * Writes pixels as XRGB8888: four bytes each, blue first. The unused byte is 255, because a device that uses it as
 * opacity would show nothing with 0.
 */
export function packXrgb8888(words: Uint32Array, out: DataView, at: number): void {
  for (let index = 0, place = at; index < words.length; index += 1, place += 4) {
    const word = words[index] ?? 0;
    out.setUint32(place, 0xff000000 | ((word & 0xff) << 16) | (word & 0xff00) | ((word >> 16) & 0xff), true);
  }
}
