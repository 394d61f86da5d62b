import { it } from 'vitest';
import { expectMoneyRight } from './money-right.ts';

it('box and gateway lose no payment, announce none twice and show no QR too long: seed 2', { timeout: 600_000 }, () =>
  expectMoneyRight(2),
);
