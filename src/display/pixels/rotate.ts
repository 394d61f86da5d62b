import type { PixelFrame, PixelSurface } from '../contract.ts';
import { wordsOf } from './canvas.ts';

/** How far the picture is turned clockwise on the panel, in degrees, for a panel that is mounted turned the other way. */
export type Rotation = 0 | 90 | 180 | 270;

/** A panel that may hang turned: what a person sees, and how a picture of that becomes the panel's own. */
export interface Rotated {
  /** The surface to report: as a person sees it, so width and height are those of the panel swapped at 90 and 270. */
  readonly surface: PixelSurface;
  /**
   * The frame in the panel's own rows and columns. At 0 it is the frame itself; otherwise its pixels stay until the
   * second call after it, as those of `Renderer.render` do.
   */
  turn(frame: PixelFrame): PixelFrame;
}

/**
 * How a pixel driver serves its `rotation` option (`rotation` of `drivers/pixel-options.ts`): it asks once, with the
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
    // The row becomes a column of a panel that is `height` wide: from its top, or from its bottom upwards.
    let place = rotation === 90 ? height - 1 - y : (width - 1) * height + y;
    const step = rotation === 90 ? height : -height;
    for (let at = y * width; at < (y + 1) * width; at += 1, place += step) to[place] = from[at] ?? 0;
  }
}
