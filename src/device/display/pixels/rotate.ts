import type { PixelFrame, PixelSurface } from '../contract.ts';
import { wordsOf } from './canvas.ts';

/** The degrees by which the picture is turned clockwise, for a panel that is mounted turned the other way. */
export type Rotation = 0 | 90 | 180 | 270;

/** A panel that may be mounted turned. */
export interface Rotated {
  /** The surface as a person sees it. At 90 and 270 degrees its width is the panel's height. */
  readonly surface: PixelSurface;
  /**
   * Returns the frame in the panel's own rows and columns. At 0 degrees it is the same frame. Otherwise its pixels are
   * valid until the second next call, as with `Renderer.render`.
   */
  turn(frame: PixelFrame): PixelFrame;
}

/**
 * Supports the `rotation` option of a pixel driver (`drivers/pixel-options.ts`). The driver calls this once with the
 * panel's own size, reports `surface`, and sends `turn(expectPixels(frame, surface))` in `draw`:
 *
 *     const { surface, turn } = rotated({ width: panelWidth, height: panelHeight }, options.rotation);
 */
export function rotated(panel: { width: number; height: number }, rotation: Rotation): Rotated {
  const { width, height } = panel;
  const sideways = rotation === 90 || rotation === 270;
  const surface: PixelSurface = sideways
    ? { kind: 'pixels', width: height, height: width }
    : { kind: 'pixels', width, height };
  if (rotation === 0) return { surface, turn: (frame) => frame };
  let buffer = new Uint32Array(width * height);
  let spare = new Uint32Array(width * height);
  return {
    surface,
    turn: (frame) => {
      [buffer, spare] = [spare, buffer];
      turnWords(wordsOf(frame), frame.width, rotation, buffer);
      return { kind: 'pixels', width, height, data: new Uint8Array(buffer.buffer) };
    },
  };
}

function turnWords(from: Uint32Array, width: number, rotation: Rotation, to: Uint32Array): void {
  const pixels = from.length;
  if (rotation === 180) {
    for (let at = 0; at < pixels; at += 1) to[pixels - 1 - at] = from[at] ?? 0;
    return;
  }
  const height = pixels / width;
  for (let y = 0; y < height; y += 1) {
    // The row becomes a column of a panel that is `height` wide, from its top, or from its bottom upwards.
    let place = rotation === 90 ? height - 1 - y : (width - 1) * height + y;
    const step = rotation === 90 ? height : -height;
    for (let at = y * width; at < (y + 1) * width; at += 1, place += step) to[place] = from[at] ?? 0;
  }
}
