import type { PixelFrame } from '../contract.ts';
import type { Box } from '../layout/items.ts';
import { wordsOf } from './canvas.ts';

/**
 * The smallest rectangle that holds every pixel in which two frames of one size differ; `undefined` where they are the
 * same, everything where there is no frame before. For drivers that send only what changed: a second that counts down
 * changes little more than its digits.
 *
 * A driver may keep the last frame that it drew to compare with: frames, turned ones too, stay until the second one
 * after them is made.
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
