import { describe, expect, it } from 'vitest';
import { GatewayDisk } from './gateway-disk.ts';
import { simulate } from './simulation.ts';

/** `PAYBOX_SIMULATION_SEED` runs one seed alone, as a failure names it. */
const SEEDS = process.env.PAYBOX_SIMULATION_SEED?.split(',').map(Number) ?? [1, 2];
const STEPS = 25_000;
/** A deadline for machines that many share. */
const LONG = { timeout: 600_000 };

describe('box and gateway in a world of faults', () => {
  it.each(SEEDS)('lose no payment, announce none twice and show no QR too long: seed %i', LONG, async (seed) => {
    const begun = process.cpuUsage();
    const { counts, ...figures } = await simulate(seed, STEPS, await GatewayDisk.make());
    const seconds = (process.cpuUsage(begun).user / 1e6).toFixed(1);
    process.stdout.write(
      `simulation ${JSON.stringify(figures)} in ${seconds} s of processor time\n${inColumns(counts)}\n`,
    );
    expect(figures.payments).toBeGreaterThan(250);
    for (const fault of [
      'cut',
      'partition',
      'kill box',
      'power cut',
      'kill gateway',
      'second device',
      'display',
      'disk',
      'calendar',
    ]) {
      expect(counts[fault], fault).toBeGreaterThan(0);
    }
  });

  it('is the same every time', LONG, async () => {
    const disk = await GatewayDisk.make();
    expect(await simulate(7, 2_000, disk)).toEqual(await simulate(7, 2_000, disk));
  });
});

function inColumns(counts: Record<string, number>): string {
  return Object.entries(counts)
    .map(([what, count]) => `${String(count).padStart(8)} ${what}`)
    .join('\n');
}
