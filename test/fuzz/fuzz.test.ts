import { describe, expect, it } from 'vitest';
import { seeded } from '../support/seeded.ts';
import { mutated } from './bytes.ts';
import { MESSAGES_UP } from './corpus.ts';
import { mutatedJson } from './json.ts';
import { TARGETS } from './plan.ts';
import { REGRESSIONS } from './regressions.ts';
import { tableOf } from './report.ts';
import { run } from './run.ts';

const INPUTS = 50_000;
const TIMEOUT_MS = 900_000;

describe('fuzzing', () => {
  it('makes the same inputs from the same seed, and others from another', () => {
    const make = (seed: number) => {
      const chance = seeded(seed);
      return Array.from({ length: 50 }, () => [mutated(MESSAGES_UP, chance), mutatedJson(MESSAGES_UP, chance)]);
    };
    expect(make(1)).toEqual(make(1));
    expect(make(1)).not.toEqual(make(2));
  });

  it('keeps regressions of its targets only', () => {
    const names = TARGETS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(Object.keys(REGRESSIONS).filter((name) => !names.includes(name))).toEqual([]);
  });

  it(
    `THR-10 whoever sends ${INPUTS} bad inputs to every decoder crashes, hangs, fills and changes nothing`,
    async () => {
      const seed = Number(process.env.PAYBOX_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
      const { reports, failures } = await run({ inputs: INPUTS, seed });
      process.stdout.write(`fuzzing with PAYBOX_FUZZ_SEED=${seed}\n${tableOf(reports)}\n`);
      expect(failures).toEqual([]);
      expect(reports.map(({ name }) => name)).toEqual(TARGETS.map(({ name }) => name));
      expect(reports.reduce((sum, { inputs }) => sum + inputs, 0)).toBeGreaterThanOrEqual(INPUTS);
    },
    TIMEOUT_MS,
  );
});
