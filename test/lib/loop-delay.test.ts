import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { LoopDelay } from '../../src/lib/loop-delay.ts';
import { eventually } from '../support/net.ts';

const STOP_MS = 200;

it('tells for how long the process did nothing else, and begins anew with each reading', async () => {
  const delay = new LoopDelay();
  expect(delay.longestSeconds()).toBeUndefined();
  // The pause before each try lets it take the sample from which the stop is measured.
  const stopped = await eventually('the stop', async () => {
    const untilMs = performance.now() + STOP_MS;
    while (performance.now() < untilMs);
    for (let turns = 0; turns < 3; turns += 1) await turn();
    const seconds = delay.longestSeconds() ?? 0;
    return seconds * 1_000 >= STOP_MS / 2 && seconds;
  });
  expect(stopped).toBeLessThan(60);
  expect(delay.longestSeconds()).toBeLessThan(stopped);
});
