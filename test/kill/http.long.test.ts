import { it } from 'vitest';
import { expectMoneyRight, KILL_TIMEOUT_MS } from './seeds.ts';

it(
  'MSG-7 no payment is lost or announced twice, and no QR outlives its time, whichever program is killed when, over HTTP',
  () => expectMoneyRight('http'),
  KILL_TIMEOUT_MS,
);
