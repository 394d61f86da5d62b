import type { Qr } from '../qr.ts';
import type { IconName } from '../words.ts';
import type { Face } from './fonts/faces.ts';

/** A rectangle in pixels from the top left of the screen. */
export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A part of a picture; colours are 0xRRGGBB. A picture is a list of items, painted in order. */
export type Item =
  | { kind: 'rect'; box: Box; radius: number; color: number }
  | { kind: 'text'; box: Box; text: string; face: Face; ink: number }
  | { kind: 'icon'; box: Box; name: IconName; disc: number; stroke: number }
  | { kind: 'qr'; box: Box; qr: Qr; light: number };

/** Returns whether both look the same in the same place. */
export function sameItem(a: Item, b: Item): boolean {
  const { box } = a;
  const still = box.x === b.box.x && box.y === b.box.y && box.width === b.box.width && box.height === b.box.height;
  if (!still) return false;
  if (a.kind === 'rect' && b.kind === 'rect') return a.radius === b.radius && a.color === b.color;
  if (a.kind === 'text' && b.kind === 'text') return a.text === b.text && a.face === b.face && a.ink === b.ink;
  if (a.kind === 'icon' && b.kind === 'icon') return a.name === b.name && a.disc === b.disc && a.stroke === b.stroke;
  return a.kind === 'qr' && b.kind === 'qr' && a.qr === b.qr && a.light === b.light;
}
