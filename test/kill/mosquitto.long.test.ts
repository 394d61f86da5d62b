import { it } from 'vitest';
import { PROGRAMS, without } from '../support/programs.ts';
import { expectMoneyRight, KILL_TIMEOUT_MS } from './seeds.ts';

const { missing, note } = without(PROGRAMS.mosquitto);

it.skipIf(missing)(
  `MSG-7 no payment is lost or announced twice, and no QR outlives its time, whichever program is killed when, over Mosquitto${note}`,
  () => expectMoneyRight('mosquitto'),
  KILL_TIMEOUT_MS,
);
