import { describe, expect, it } from 'vitest';
import type { PixelFrame } from '../../../src/device/display/contract.ts';
import { type Rotation, rotated } from '../../../src/device/display/pixels/rotate.ts';
import { DISPLAY_DRIVERS } from '../../../src/device/display/registry.ts';
import { openRenderer } from '../../../src/device/display/render.ts';
import { expectDecodes, glyphCache, pixelAt } from '../pictures.ts';
import { PAYMENT, QR_CODE } from '../scenes.ts';

const source = glyphCache();

/** Pixels numbered from 0 at the top left as a person sees them. */
function numbered(width: number, height: number): PixelFrame {
  const words = Uint32Array.from({ length: width * height }, (_, index) => index);
  return { kind: 'pixels', width, height, data: new Uint8Array(words.buffer) };
}

const rowsOf = ({ width, height, data }: PixelFrame) =>
  Array.from({ length: height }, (_, y) => [...new Uint32Array(data.buffer).subarray(y * width, (y + 1) * width)]);

describe('a panel that hangs turned', () => {
  it.each<[Rotation, [number, number], number[][]]>([
    [
      0,
      [3, 2],
      [
        [0, 1, 2],
        [3, 4, 5],
      ],
    ],
    [
      90,
      [2, 3],
      [
        [3, 0],
        [4, 1],
        [5, 2],
      ],
    ],
    [
      180,
      [3, 2],
      [
        [5, 4, 3],
        [2, 1, 0],
      ],
    ],
    [
      270,
      [2, 3],
      [
        [2, 5],
        [1, 4],
        [0, 3],
      ],
    ],
  ])('by %i degrees gets its own rows and columns', (rotation, [width, height], rows) => {
    const { surface, turn } = rotated({ width, height }, rotation);
    expect(surface).toEqual({ kind: 'pixels', width: 3, height: 2 });
    const frame = turn(numbered(3, 2));
    expect(frame).toMatchObject({ kind: 'pixels', width, height });
    expect(rowsOf(frame)).toEqual(rows);
  });

  it.each<Rotation>([0, 90, 180, 270])('by %i degrees shows a person what was laid out', async (rotation) => {
    const { surface, turn } = rotated({ width: 320, height: 240 }, rotation);
    const renderer = await openRenderer(surface, source);
    const seen = renderer.render(PAYMENT);
    if (seen.kind !== 'pixels') throw new Error('not pixels');
    const onPanel = turn(seen);
    const back = rotated(surface, ((360 - rotation) % 360) as Rotation).turn(onPanel);
    expectDecodes(back, QR_CODE);
    expect(Buffer.compare(back.data, seen.data)).toBe(0);
    if (rotation === 90) expect(pixelAt(onPanel, onPanel.width - 1, 0)).toBe(pixelAt(seen, 0, 0));
  });

  it.each(['browser', 'png'])('is an option of the display %s, which takes right angles only', (name) => {
    const driver = DISPLAY_DRIVERS.get(name);
    const given = (rotation: unknown) => driver?.options.safeParse({ ...(driver.example as object), rotation });
    for (const rotation of [0, 90, 180, 270]) expect(given(rotation)?.success).toBe(true);
    for (const rotation of [45, -90, 360, '90']) expect(given(rotation)?.error?.issues[0]?.path).toEqual(['rotation']);
  });

  it('a turned panel keeps a turned picture while the next one is made', () => {
    const { turn } = rotated({ width: 2, height: 3 }, 90);
    const first = turn(numbered(3, 2));
    const before = Uint8Array.from(first.data);
    const blank = { ...numbered(3, 2), data: new Uint8Array(24) };
    expect(turn(blank).data).not.toEqual(before);
    expect(Buffer.compare(first.data, before)).toBe(0);
  });
});
