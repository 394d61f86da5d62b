import { seededRandom } from '../../src/lib/random.ts';

/** Chance that is the same for the same seed. */
export interface Seeded {
  /** A number in [0, 1). */
  fraction(): number;
  /** A whole number in [0, limit). */
  below(limit: number): number;
  /** True this `share` (0 to 1) of the times. */
  chance(share: number): boolean;
  /** One of the choices, each as often as its weight says. */
  weighted<T>(choices: readonly (readonly [weight: number, choice: T])[]): T;
}

/** Small, even, and enough for choosing what a test does next. */
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
