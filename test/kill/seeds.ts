import { expect } from 'vitest';
import { scriptOf, type WorldKind } from './script.ts';
import { playSeries, type Tally } from './series.ts';

/** Of all files together: the seeds 1 to RUNS. */
const RUNS = 80;
/** Worlds side by side: the files run side by side too. */
const LANES = 2;
export const KILL_TIMEOUT_MS = 900_000;

/** Plays all runs over this link, or the one that a failure named, and expects that no money and no QR went wrong. */
export async function expectMoneyRight(link: WorldKind['link']): Promise<void> {
  const only = process.env.PAYBOX_KILL_SEED;
  const all = only === undefined ? Array.from({ length: RUNS }, (_, index) => 1 + index) : [Number(only)];
  const seeds = all.filter((seed) => scriptOf(seed).kind.link === link);
  const tally = await playSeries({ seeds, lanes: LANES });
  process.stdout.write(summary(link, tally));
  expect(tally.failures.join('\n\n')).toBe('');
  expect(tally.runs).toBe(seeds.length);
  expect(tally.payments).toBeGreaterThanOrEqual(seeds.length / 2);
  expect(tally.silent).toBeLessThanOrEqual(tally.kills.agent);
}

function summary(link: string, { runs, kills, pushes, payments, silent, unanswered }: Tally): string {
  return (
    `${runs} runs over ${link}; killed: agent ${kills.agent}, gateway ${kills.gateway}, broker ${kills.broker} times; ` +
    `${pushes} pushes and ${payments} payments checked, ${unanswered} requests unanswered, ${silent} payments shown but not spoken\n`
  );
}
