import { describe, expect, it } from 'vitest';
import { GatewayDisk } from './gateway-disk.ts';
import { expectMoneyRight } from './money-right.ts';
import { simulate } from './simulation.ts';

/** `PAYBOX_SIMULATION_SEED` runs one seed alone, as a failure names it. */
const SEEDS = process.env.PAYBOX_SIMULATION_SEED?.split(',').map(Number) ?? [1];
/** A deadline for machines that many share. */
const LONG = { timeout: 600_000 };

describe('box and gateway in a world of faults', () => {
  it.each(SEEDS)('lose no payment, announce none twice and show no QR too long: seed %i', LONG, expectMoneyRight);

  it('repeat every step of a simulation with the same seed', LONG, async () => {
    const disk = await GatewayDisk.make();
    expect(await simulate(7, 2_000, disk)).toEqual(await simulate(7, 2_000, disk));
  });
});
