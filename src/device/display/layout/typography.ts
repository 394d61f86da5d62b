import type { PixelSurface } from '../contract.ts';
import { bitmapFace } from './fonts/bitmap.ts';
import { type BitmapSpec, type Face, type FaceSpec, faceName } from './fonts/faces.ts';

/** Smaller letters of the typeface are not legible. */
const SIZE_MIN_PX = 10;
/** Larger letters are not easier to read, and would need large sheets. */
const BASE_MAX_PX = 40;

/** On a shorter side outlines are blurred. So small screens use pixel fonts, and a dark ground as LED panels do. */
const SMALL_BELOW_PX = 200;

/** The faces of each role, largest first. A text that is too long gets the next one. */
export interface Typography<T> {
  label: readonly T[];
  value: readonly T[];
  title: readonly T[];
  amount: readonly T[];
  /** The faces of the word that all screens of a sandbox carry. */
  mark: readonly T[];
}

/** The inputs of a layout besides the scene. */
export interface Stage {
  surface: PixelSurface;
  type: Typography<Face>;
}

/** Returns whether a screen is a small panel, such as an LED matrix or small OLED. */
export function isSmall({ width, height }: { width: number; height: number }): boolean {
  return Math.min(width, height) < SMALL_BELOW_PX;
}

/** Returns the faces of a small panel. They are part of the program, so nothing must be drawn. */
export function bitmapTypography(): Typography<Face> {
  const text = (bitmap: BitmapSpec['bitmap'], scale: 1 | 2) => bitmapFace({ bitmap, scale, charset: 'text' });
  const figures = (bitmap: BitmapSpec['bitmap'], scale: 1 | 2) => bitmapFace({ bitmap, scale, charset: 'figures' });
  const plain = text('6x13', 1);
  const wide = text('8x13', 1);
  return {
    label: [plain],
    value: [wide, plain],
    title: [text('8x13', 2), text('6x13', 2), wide, plain],
    amount: [
      figures('10x20', 2),
      figures('8x13', 2),
      figures('6x13', 2),
      figures('10x20', 1),
      figures('8x13', 1),
      figures('6x13', 1),
      figures('5x7', 1),
    ],
    mark: [bitmapFace({ bitmap: '5x7', scale: 1, charset: 'mark' })],
  };
}

/** Returns the size of plain text on a screen, in pixels. All other sizes are in proportion to it. */
function basePx(width: number, height: number): number {
  const fitting = Math.min(Math.sqrt(width * height) / 31, Math.min(width, height) / 17);
  return Math.max(SIZE_MIN_PX, Math.min(BASE_MAX_PX, Math.round(fitting)));
}

/**
 * Returns the faces for a screen of this size. They depend on nothing else, so all are ready before the first scene.
 */
export function typographyFor(width: number, height: number): Typography<FaceSpec> {
  const base = basePx(width, height);
  return {
    label: ladder(base, 400, 'text', [0.9, 0.75]),
    value: ladder(base, 600, 'text', [1.3, 1.1, 0.9]),
    title: ladder(base, 700, 'text', [2.2, 1.8, 1.45, 1.15, 0.9]),
    amount: ladder(base, 700, 'figures', [5, 4.2, 3.6, 3.1, 2.6, 2.2, 1.8, 1.5, 1.2, 1]),
    mark: ladder(base, 700, 'text', [0.9]),
  };
}

/** Returns all faces of a typography, without duplicates. */
export function specsOf(typography: Typography<FaceSpec>): FaceSpec[] {
  const all = Object.values(typography).flat() as FaceSpec[];
  return [...new Map(all.map((spec) => [faceName(spec), spec])).values()];
}

/** Returns the typography with its drawn faces. `faces` are in the order of `specsOf`. */
export function withFaces(typography: Typography<FaceSpec>, faces: readonly Face[]): Typography<Face> {
  const drawn = new Map(faces.map((face) => [faceName(face.spec), face]));
  const role = (specs: readonly FaceSpec[]) => specs.flatMap((spec) => drawn.get(faceName(spec)) ?? []);
  return {
    label: role(typography.label),
    value: role(typography.value),
    title: role(typography.title),
    amount: role(typography.amount),
    mark: role(typography.mark),
  };
}

function ladder(
  base: number,
  weight: FaceSpec['weight'],
  charset: FaceSpec['charset'],
  steps: readonly number[],
): FaceSpec[] {
  const sizes = steps.map((step) => Math.max(SIZE_MIN_PX, Math.round(base * step)));
  return [...new Set(sizes)].map((sizePx) => ({ weight, sizePx, charset }));
}
