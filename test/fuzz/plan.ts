import type { Target } from './target.ts';
import { BOX } from './targets/box.ts';
import { BOXES } from './targets/boxes.ts';
import { FILES } from './targets/files.ts';
import { LOCAL } from './targets/local.ts';
import { PANELS } from './targets/panels.ts';
import { PROTOCOL } from './targets/protocol.ts';
import { SERVICE } from './targets/service.ts';
import { STORAGE } from './targets/storage.ts';

/** Every way into the project from outside. */
export const TARGETS: readonly Target[] = [
  ...PROTOCOL,
  ...PANELS,
  ...FILES,
  ...SERVICE,
  ...BOXES,
  ...BOX,
  ...STORAGE,
  ...LOCAL,
];

/** How many inputs each target gets of `inputs` in all; at least one. */
export function shares(inputs: number, only?: string): ReadonlyMap<Target, number> {
  const targets = TARGETS.filter(({ name }) => only === undefined || name === only);
  const all = targets.reduce((sum, target) => sum + target.inputs, 0);
  return new Map(targets.map((target) => [target, Math.max(1, Math.ceil((inputs * target.inputs) / all))]));
}
