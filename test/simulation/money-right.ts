import { expect } from 'vitest';
import { GatewayDisk } from './gateway-disk.ts';
import { simulate } from './simulation.ts';

const STEPS = 25_000;
const FAULTS = 'cut,partition,kill box,power cut,kill gateway,second device,display,disk,calendar'.split(',');

/** Simulates one seed, prints its figures, and expects that each kind of fault happened. */
export async function expectMoneyRight(seed: number): Promise<void> {
  const begun = process.cpuUsage();
  const { counts, ...figures } = await simulate(seed, STEPS, await GatewayDisk.make());
  const seconds = (process.cpuUsage(begun).user / 1e6).toFixed(1);
  process.stdout.write(
    `simulation ${JSON.stringify(figures)} in ${seconds} s of processor time\n${inColumns(counts)}\n`,
  );
  expect(figures.payments).toBeGreaterThan(250);
  for (const fault of FAULTS) expect(counts[fault], fault).toBeGreaterThan(0);
}

function inColumns(counts: Record<string, number>): string {
  return Object.entries(counts)
    .map(([what, count]) => `${String(count).padStart(8)} ${what}`)
    .join('\n');
}
