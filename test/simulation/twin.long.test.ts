import { describe, expect, it } from 'vitest';
import { GatewayDisk } from './gateway-disk.ts';
import { run } from './twin.ts';

/** `PAYBOX_TWIN_SEED` runs one session alone, as a failure names it. */
const ONE = process.env.PAYBOX_TWIN_SEED;
const SESSIONS = 32;

describe('a program that is stopped at each of its writes', () => {
  it('a program that is stopped at each of its writes loses no payment and tells none twice', {
    timeout: 600_000,
  }, async () => {
    const wanted = ONE === undefined ? { sessions: SESSIONS, firstSeed: 1 } : { sessions: 1, firstSeed: Number(ONE) };
    const begun = process.cpuUsage();
    const figures = await run(wanted, await GatewayDisk.make());
    const seconds = (process.cpuUsage(begun).user / 1e6).toFixed(1);
    process.stdout.write(`twin ${JSON.stringify(figures)} in ${seconds} s of processor time\n`);
    expect(figures.sessions).toBe(wanted.sessions);
    expect(figures.reruns).toBe(2 * figures.writes);
  });
});
