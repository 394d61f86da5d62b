import { describe, expect, it } from 'vitest';
import { seeded } from '../support/seeded.ts';
import { mutated } from './bytes.ts';
import { MESSAGES_UP } from './corpus.ts';
import { mutatedJson } from './json.ts';
import { TARGETS } from './plan.ts';
import { REGRESSIONS } from './regressions.ts';

describe('fuzzing', () => {
  it('fuzzing makes the same inputs from the same seed, and others from another', () => {
    const make = (seed: number) => {
      const chance = seeded(seed);
      return Array.from({ length: 50 }, () => [mutated(MESSAGES_UP, chance), mutatedJson(MESSAGES_UP, chance)]);
    };
    expect(make(1)).toEqual(make(1));
    expect(make(1)).not.toEqual(make(2));
  });

  it('fuzzing keeps regressions of its targets only', () => {
    const names = TARGETS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(Object.keys(REGRESSIONS).filter((name) => !names.includes(name))).toEqual([]);
  });
});
