import { bitmapFace } from './fonts/bitmap.ts';
import { type BitmapSpec, type Face, type FaceSpec, faceName } from './fonts/faces.ts';

/** Below this no letter of the typeface is legible. */
const SIZE_MIN_PX = 10;
/** Nothing is read better for being larger, and the sheets must stay small. */
const BASE_MAX_PX = 40;

/** On a side below this, outlines are a blur: letters are pixels, and the ground is dark as on an LED panel. */
const SMALL_BELOW_PX = 200;

/** The faces of each role, largest first: a text that is too long takes the next. */
export interface Typography<T> {
  label: readonly T[];
  value: readonly T[];
  title: readonly T[];
  amount: readonly T[];
}

/** Whether a screen is one of the small panels: LED matrices, little OLEDs. */
export function isSmall({ width, height }: { width: number; height: number }): boolean {
  return Math.min(width, height) < SMALL_BELOW_PX;
}

/** The faces of a small panel. They are part of the program: nothing has to be drawn for them. */
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
  };
}

/** The size of plain text on a screen of this size, in pixels; everything else is in proportion to it. */
function basePx(width: number, height: number): number {
  const fitting = Math.min(Math.sqrt(width * height) / 31, Math.min(width, height) / 17);
  return Math.max(SIZE_MIN_PX, Math.min(BASE_MAX_PX, Math.round(fitting)));
}

/** The faces that a screen of this size needs. Only the size decides, so all are ready before the first scene. */
export function typographyFor(width: number, height: number): Typography<FaceSpec> {
  const base = basePx(width, height);
  return {
    label: ladder(base, 400, 'text', [0.9, 0.75]),
    value: ladder(base, 600, 'text', [1.3, 1.1, 0.9]),
    title: ladder(base, 700, 'text', [2.2, 1.8, 1.45, 1.15, 0.9]),
    amount: ladder(base, 700, 'figures', [5, 4.2, 3.6, 3.1, 2.6, 2.2, 1.8, 1.5, 1.2, 1]),
  };
}

/** All faces of a typography, none twice. */
export function specsOf(typography: Typography<FaceSpec>): FaceSpec[] {
  const all = Object.values(typography).flat() as FaceSpec[];
  return [...new Map(all.map((spec) => [faceName(spec), spec])).values()];
}

/** The typography with its drawn faces; `faces` are those of `specsOf`. */
export function withFaces(typography: Typography<FaceSpec>, faces: readonly Face[]): Typography<Face> {
  const drawn = new Map(faces.map((face) => [faceName(face.spec), face]));
  const role = (specs: readonly FaceSpec[]) => specs.flatMap((spec) => drawn.get(faceName(spec)) ?? []);
  return {
    label: role(typography.label),
    value: role(typography.value),
    title: role(typography.title),
    amount: role(typography.amount),
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
