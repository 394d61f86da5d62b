import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { VirtualTime, waitUntilRight, watchWhileRight } from '../../src/bench/test-time.ts';

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

  it('is checked ever more rarely while something is waited for, and evenly while it has to stay', async () => {
    const time = pace();
    const { signal } = new AbortController();
    let checks = 0;
    const look = (problem?: string) => async () => {
      checks += 1;
      return problem;
    };
    expect(await waitUntilRight(time, 600_000, look('not yet'), signal)).toBe('not yet');
    expect(time.clock.monotonicMs()).toBeGreaterThanOrEqual(600_000);
    // Each 25 ms they were 24,000, and each 100 ms 6,000.
    expect(checks).toBeGreaterThan(6_000);
    expect(checks).toBeLessThan(6_200);
    checks = 0;
    expect(await watchWhileRight(time, 10_000, look(), signal)).toBeUndefined();
    expect(checks).toBeGreaterThan(350);
  });

  it('goes by itself when nobody waits', async () => {
    const it = pace();
    const beganMs = it.clock.monotonicMs();
    await expect.poll(() => it.clock.monotonicMs() - beganMs, { timeout: 10_000 }).toBeGreaterThan(20);
  });
});
