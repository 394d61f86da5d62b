import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runScenario } from '../../src/bench/run.ts';
import { readScenario } from '../../src/bench/scenario.ts';
import { emulated, SEED } from './stand.ts';

const LIBRARY = resolve(import.meta.dirname, '../scenarios');
/** Held elsewhere: one needs a program that can be killed, the other takes minutes even where time is skipped. */
const ELSEWHERE = ['power-cut.yaml', 'day-in-a-shop.yaml'];
const files = readdirSync(LIBRARY).filter((name) => name.endsWith('.yaml') && !ELSEWHERE.includes(name));

describe('our box and gateway', () => {
  it.each(files)('pass %s', async (name) => {
    const options = { seed: SEED, updateGoldens: false, signal: new AbortController().signal, onStep: () => undefined };
    const { outcome, reason, where } = await runScenario(await readScenario(join(LIBRARY, name)), emulated(), options);
    expect({ outcome, reason, where }).toEqual({ outcome: 'passed', reason: '', where: undefined });
  });
});
