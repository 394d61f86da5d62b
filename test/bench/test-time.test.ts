import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { VirtualTime } from '../../src/bench/test-time.ts';

function pace(): VirtualTime {
  const opened = new VirtualTime();
  onTestFinished(() => opened.close());
  return opened;
}

describe('time that is skipped', () => {
  it('goes from one sleeper to the next, in order', async () => {
    const it = pace();
    const woken: number[] = [];
    for (const ms of [86_400_000, 1_000, 300_000]) void it.clock.sleep(ms).then(() => woken.push(ms));
    await it.wait(400_000);
    expect(woken).toEqual([1_000, 300_000]);
    expect(it.clock.monotonicMs()).toBeGreaterThanOrEqual(400_000);
    expect(it.clock.monotonicMs()).toBeLessThan(500_000);
  });

  it('is not skipped while something is under way', async () => {
    const it = pace();
    let passedMs = Number.NaN;
    const beganMs = it.clock.monotonicMs();
    const request = it.inRealTime(async () => {
      await delay(50);
      passedMs = it.clock.monotonicMs() - beganMs;
    });
    await Promise.all([it.wait(3_600_000), request]);
    expect(passedMs).toBeLessThan(60_000);
    expect(it.clock.monotonicMs()).toBeGreaterThanOrEqual(3_600_000);
  });

  it('goes by itself when nobody waits', async () => {
    const it = pace();
    const beganMs = it.clock.monotonicMs();
    await expect.poll(() => it.clock.monotonicMs() - beganMs, { timeout: 10_000 }).toBeGreaterThan(20);
  });
});
