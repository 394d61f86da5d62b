import type { Random } from '../../src/lib/random.ts';
import { type Seeded, seeded } from '../support/seeded.ts';

/** All chance of a simulated world. */
export interface Chance extends Seeded, Random {
  /** A whole number from `min` to `max`. */
  whole(min: number, max: number): number;
  /** A time between two, in quarters of a millisecond: monotonic clocks give fractions too. */
  timeMs(minMs: number, maxMs: number): number;
  pick<T>(items: readonly T[]): T;
}

/** The same seed gives the same chance. */
export function chanceOf(seed: number): Chance {
  const source = seeded(seed);
  const hex = () => source.below(0x1_0000_0000).toString(16).padStart(8, '0');
  return {
    ...source,
    uuid: () => {
      const [a, b, c, d] = [hex(), hex(), hex(), hex()];
      const variant = '89ab'[Number.parseInt(c.slice(0, 1), 16) & 3];
      return `${a}-${b.slice(0, 4)}-4${b.slice(5)}-${variant}${c.slice(1, 4)}-${c.slice(4)}${d}`;
    },
    secret: (bytes) => hex().repeat(bytes).slice(0, bytes),
    whole: (min, max) => min + source.below(max - min + 1),
    timeMs: (minMs, maxMs) => Math.round((minMs + source.fraction() * (maxMs - minMs)) * 4) / 4,
    pick: (items) => {
      const item = items[source.below(items.length)];
      if (item === undefined) throw new Error('nothing to pick from');
      return item;
    },
  };
}
