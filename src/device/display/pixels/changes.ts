import type { PixelFrame } from '../contract.ts';
import type { Box } from '../layout/items.ts';
import { wordsOf } from './canvas.ts';

/**
 * Returns the smallest rectangle around all pixels that differ between two frames of one size: `undefined` if there are
 * none, everything without an earlier frame. Drivers use it to send only changes, because a second of a countdown
 * changes little more than its digits. A driver may compare with its last frame, because frames, rotated ones too, stay
 * valid until the second next one.
 */
export function changedBox(before: PixelFrame | undefined, after: PixelFrame): Box | undefined {
  const { width, height } = after;
  if (before === undefined || before.width !== width || before.height !== height) return { x: 0, y: 0, width, height };
  const stride = width * 4;
  const rowOf = ({ data }: PixelFrame, y: number) => data.subarray(y * stride, (y + 1) * stride);
  const same = (y: number) => Buffer.compare(rowOf(before, y), rowOf(after, y)) === 0;
  let top = 0;
  while (top < height && same(top)) top += 1;
  if (top === height) return undefined;
  let bottom = height - 1;
  while (same(bottom)) bottom -= 1;
  const { left, right } = changedColumns(wordsOf(before), wordsOf(after), width, top, bottom);
  return { x: left, y: top, width: right - left + 1, height: bottom - top + 1 };
}

function changedColumns(before: Uint32Array, after: Uint32Array, width: number, top: number, bottom: number) {
  let left = width;
  let right = -1;
  for (let y = top; y <= bottom; y += 1) {
    const row = y * width;
    let x = 0;
    while (x < left && before[row + x] === after[row + x]) x += 1;
    left = x;
    x = width - 1;
    while (x > right && before[row + x] === after[row + x]) x -= 1;
    right = x;
  }
  return { left, right };
}
