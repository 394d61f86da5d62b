import { type Face, type FaceSpec, faceName } from '../fonts/faces.ts';

/** Below this no letter of the typeface is legible. */
const SIZE_MIN_PX = 10;
/** Nothing is read better for being larger, and the sheets must stay small. */
const BASE_MAX_PX = 40;

/** The faces of each role, largest first: a text that is too long takes the next. */
export interface Typography<T> {
  label: readonly T[];
  value: readonly T[];
  title: readonly T[];
  amount: readonly T[];
}

/** The size of plain text on a screen of this size, in pixels; everything else is in proportion to it. */
export function basePx(width: number, height: number): number {
  const fitting = Math.min(Math.sqrt(width * height) / 31, Math.min(width, height) / 17);
  return Math.max(SIZE_MIN_PX, Math.min(BASE_MAX_PX, Math.round(fitting)));
}

/** What faces a screen of this size needs: nothing but its size decides, so that all are ready before the first scene. */
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
