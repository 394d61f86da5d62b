import { it } from 'vitest';
import { expectHarmless, FUZZ_TIMEOUT_MS, INPUTS } from './expect-harmless.ts';

it(
  `THR-10 THR-33 SRC-3 whoever sends bad inputs, ${INPUTS} with those of the other parts, to every door of a gateway crashes, hangs, fills and changes nothing`,
  () => expectHarmless('services'),
  FUZZ_TIMEOUT_MS,
);
