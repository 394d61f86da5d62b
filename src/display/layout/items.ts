import type { Qr } from '../qr.ts';
import type { IconName } from '../words.ts';
import type { Face } from './fonts/faces.ts';
import { faceName } from './fonts/faces.ts';

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

/** Whether both look the same in the same place. */
export function sameItem(a: Item, b: Item): boolean {
  const { box } = a;
  const still = box.x === b.box.x && box.y === b.box.y && box.width === b.box.width && box.height === b.box.height;
  if (!still) return false;
  if (a.kind === 'rect' && b.kind === 'rect') return a.radius === b.radius && a.color === b.color;
  if (a.kind === 'text' && b.kind === 'text') return a.text === b.text && a.face === b.face && a.ink === b.ink;
  if (a.kind === 'icon' && b.kind === 'icon') return a.name === b.name && a.disc === b.disc && a.stroke === b.stroke;
  return a.kind === 'qr' && b.kind === 'qr' && a.qr === b.qr && a.light === b.light;
}

/** Describes a picture as text, one line per item, for tests. */
export function describe(items: readonly Item[]): string {
  return items.map((item) => `${describeItem(item)}\n`).join('');
}

function describeItem(item: Item): string {
  const { x, y, width, height } = item.box;
  const where = `${item.kind} ${x},${y} ${width}x${height}`;
  switch (item.kind) {
    case 'rect':
      return `${where} radius ${item.radius} ${hex(item.color)}`;
    case 'text':
      return `${where} ${faceName(item.face.spec)} ${hex(item.ink)} "${item.text}"`;
    case 'icon':
      return `${where} ${item.name} ${hex(item.stroke)} on ${hex(item.disc)}`;
    case 'qr':
      return `${where} ${describeQr(item.qr)}, black on ${hex(item.light)}`;
  }
}

function describeQr({ version, ecc, modules, modulePixels, quietModules }: Qr): string {
  return `version ${version} ${ecc}, ${modules} modules of ${modulePixels} px, quiet ${quietModules}`;
}

function hex(color: number): string {
  return `#${color.toString(16).padStart(6, '0')}`;
}
