import { openRenderer } from '../../src/device/display/render.ts';
import { glyphCache } from '../display/pictures.ts';
import { PAYMENT } from '../display/scenes.ts';

export const source = glyphCache();

export async function paymentOn(width: number, height: number) {
  const renderer = await openRenderer({ kind: 'pixels', width, height }, source);
  const frame = renderer.render(PAYMENT);
  if (frame.kind !== 'pixels') throw new Error('not pixels');
  return { width, height, data: Uint8Array.from(frame.data) };
}
