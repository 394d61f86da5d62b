import { it } from 'vitest';
import { expectHarmless, FUZZ_TIMEOUT_MS, INPUTS } from './expect-harmless.ts';

it(
  `THR-10 whoever sends bad inputs, ${INPUTS} with those of the other parts, to every decoder of a message crashes, hangs, fills and changes nothing`,
  () => expectHarmless('messages'),
  FUZZ_TIMEOUT_MS,
);
