import { it } from 'vitest';
import { expectCommitsAfterCuts } from './power-cut-fixture.ts';

it.each([2, 3, 4])(
  'a power cut at any moment leaves every commit that was reported, and a sound file (seed %i)',
  (seed) => expectCommitsAfterCuts(seed),
);
