import { seeded } from '../support/seeded.ts';
import { REGRESSIONS } from './regressions.ts';
import type { Target } from './target.ts';
import { BOX } from './targets/box.ts';
import { BOXES } from './targets/boxes.ts';
import { DIALECT } from './targets/dialect.ts';
import { ENROLMENT } from './targets/enrolment.ts';
import { FILES } from './targets/files.ts';
import { HOOKS } from './targets/hooks.ts';
import { LOCAL } from './targets/local.ts';
import { PANELS } from './targets/panels.ts';
import { PROTOCOL } from './targets/protocol.ts';
import { SEALS } from './targets/seals.ts';
import { SERVICE } from './targets/service.ts';
import { STORAGE } from './targets/storage.ts';

/** The targets by what they need: texts and messages; panels and files; gateways and boxes. */
export const PARTS = {
  messages: [...PROTOCOL, ...DIALECT, ...SEALS, ...BOX],
  devices: [...PANELS, ...FILES, ...STORAGE, ...LOCAL],
  services: [...SERVICE, ...BOXES, ...ENROLMENT, ...HOOKS],
} as const satisfies Record<string, readonly Target[]>;
export type Part = keyof typeof PARTS;

/** Every way into the project from outside. */
export const TARGETS: readonly Target[] = Object.values(PARTS).flat();

/** How many inputs each target gets of `inputs` in all targets; at least one. With `part`, only those of this part. */
export function shares(inputs: number, part?: Part): ReadonlyMap<Target, number> {
  const all = TARGETS.reduce((sum, target) => sum + target.inputs, 0);
  const targets = part === undefined ? TARGETS : PARTS[part];
  return new Map(targets.map((target) => [target, Math.max(1, Math.ceil((inputs * target.inputs) / all))]));
}

/** The input of a target with this number: first what broke it once, then what the seed makes. */
export function inputOf(target: Target, seed: number, index: number): Buffer {
  return REGRESSIONS[target.name]?.[index] ?? target.make(seeded(hash(seed, target.name, index)));
}

/** A number that is another for each seed, target and input. */
function hash(...parts: (string | number)[]): number {
  let value = 0x811c9dc5;
  for (const char of parts.join('/')) value = Math.imul(value ^ char.charCodeAt(0), 0x01000193);
  return value >>> 0;
}
