import { seededRandom } from '../../src/lib/random.ts';

/** Random choices that a seed repeats. */
export interface Seeded {
  /** A number in [0, 1). */
  fraction(): number;
  /** A whole number in [0, limit). */
  below(limit: number): number;
  /** True with this probability (0 to 1). */
  chance(share: number): boolean;
  /** One of the choices, with probability proportional to its weight. */
  weighted<T>(choices: readonly (readonly [weight: number, choice: T])[]): T;
}

/** A small generator with even distribution, good enough for choosing test actions. */
export function seeded(seed: number): Seeded {
  const { fraction } = seededRandom(seed);
  return {
    fraction,
    below: (limit) => Math.floor(fraction() * limit),
    chance: (share) => fraction() < share,
    weighted: (choices) => {
      let left = fraction() * choices.reduce((sum, [weight]) => sum + weight, 0);
      for (const [weight, choice] of choices) {
        left -= weight;
        if (left < 0) return choice;
      }
      throw new RangeError('no choices');
    },
  };
}
