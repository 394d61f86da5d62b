import { it } from 'vitest';
import { expectHarmless, FUZZ_TIMEOUT_MS, INPUTS } from './expect-harmless.ts';

it(
  `THR-10 whoever sends bad inputs, ${INPUTS} with those of the other parts, to every decoder of a device or a file crashes, hangs, fills and changes nothing`,
  () => expectHarmless('devices'),
  FUZZ_TIMEOUT_MS,
);
