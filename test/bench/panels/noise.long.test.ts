import { it } from 'vitest';
import { PROGRAMS, without } from '../../support/programs.ts';
import { expectNoWrongSuccess } from './noise-fixture.ts';

const { missing, note } = without(PROGRAMS.socat);

it.skipIf(missing)(
  `no push to a dwin on a noisy wire is answered SUCCESS whose QR is not on it, by seed 4${note}`,
  () => expectNoWrongSuccess('dwin', 4),
);
