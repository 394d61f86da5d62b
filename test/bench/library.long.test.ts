import { describe, expect, it } from 'vitest';
import { ordersFaults, PASSED, scenarios, verdictOn } from './library.ts';

/** Held elsewhere: one needs a program that can be killed, the other takes a minute or more even where time is skipped. */
const ELSEWHERE = ['power-cut.yaml', 'day-in-a-shop.yaml'];

describe('our box and gateway', () => {
  const here = scenarios().filter((name) => !ELSEWHERE.includes(name) && !ordersFaults(name));

  it.each(here)('our box and gateway pass the scenario %s', async (name) => {
    expect(await verdictOn(name)).toEqual(PASSED);
  });

  it('our box and gateway pass a morning of day-in-a-shop.yaml', async () => {
    const morning = (source: string) => source.replaceAll('1000', '20');
    expect(await verdictOn('day-in-a-shop.yaml', { change: morning })).toEqual(PASSED);
  });
});
