import { expect } from 'vitest';
import { PARTS, type Part, shares } from './plan.ts';
import { tableOf } from './report.ts';
import { run } from './run.ts';

/** Of all parts together. */
export const INPUTS = 25_000;
export const FUZZ_TIMEOUT_MS = 900_000;
/** PAYBOX_FUZZ_SEED makes other inputs; the soak does so each time. */
const SEED = 1;

/** Feeds every decoder of this part its share of bad inputs, and expects that each is taken or refused, and no more. */
export async function expectHarmless(part: Part): Promise<void> {
  const seed = Number(process.env.PAYBOX_FUZZ_SEED ?? SEED);
  const { reports, failures } = await run({ inputs: INPUTS, seed, part });
  process.stdout.write(`fuzzing with PAYBOX_FUZZ_SEED=${seed}\n${tableOf(reports)}\n`);
  expect(failures).toEqual([]);
  expect(reports.map(({ name }) => name)).toEqual(PARTS[part].map(({ name }) => name));
  expect(reports.map(({ inputs }) => inputs)).toEqual([...shares(INPUTS, part).values()]);
}
