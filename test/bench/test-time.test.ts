import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { VirtualTime, waitUntilRight, watchWhileRight } from '../../src/bench/engine/test-time.ts';
import { systemClock } from '../../src/lib/clock.ts';

function pace(): VirtualTime {
  const opened = new VirtualTime();
  onTestFinished(() => opened.close());
  return opened;
}

describe('time that is skipped', () => {
  it('skipped time goes from one sleeper to the next, in order', async () => {
    const it = pace();
    const woken: number[] = [];
    for (const ms of [86_400_000, 1_000, 300_000]) void it.clock.sleep(ms).then(() => woken.push(ms));
    await it.wait(400_000);
    expect(woken).toEqual([1_000, 300_000]);
    expect(it.clock.monotonicMs()).toBeGreaterThanOrEqual(400_000);
    expect(it.clock.monotonicMs()).toBeLessThan(500_000);
  });

  it('time is not skipped while work is in progress', async () => {
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

  it('time is checked 25 ms at most after a sleeper was woken, and ever more rarely', async () => {
    const time = pace();
    const { signal } = new AbortController();
    const ticking = new AbortController();
    void (async () => {
      while (!ticking.signal.aborted) await time.clock.sleep(10);
    })();
    const atMs: number[] = [];
    const look = async () => {
      atMs.push(time.clock.monotonicMs());
      return 'not yet';
    };
    expect(await waitUntilRight(time, 10_000, look, signal)).toBe('not yet');
    ticking.abort();
    const pauses = atMs.slice(1).map((it, index) => it - (atMs[index] ?? 0));
    expect(atMs.length).toBeGreaterThan(100);
    expect(atMs.length).toBeLessThan(300);
    expect(Math.max(...pauses)).toBeLessThan(250);
  });

  it('time is checked once a second where all sleep, and then at once', async () => {
    const time = pace();
    const { signal } = new AbortController();
    let isThere = false;
    void time.clock.sleep(333_333).then(() => {
      isThere = true;
    });
    let checks = 0;
    const look = async () => {
      checks += 1;
      return isThere ? undefined : 'not yet';
    };
    expect(await waitUntilRight(time, 600_000, look, signal)).toBeUndefined();
    expect(checks).toBeGreaterThan(300);
    expect(checks).toBeLessThan(400);
    expect(time.clock.monotonicMs() - 333_333).toBeLessThan(200);
  });

  it('skipped time stops at a moment that a watch must not miss', async () => {
    const time = pace();
    let isRight = true;
    void time.clock.sleep(5_000).then(async () => {
      isRight = false;
      await time.clock.sleep(40);
      isRight = true;
    });
    const look = async () => (isRight ? undefined : 'it was wrong');
    expect(await watchWhileRight(time, 10_000, look, new AbortController().signal)).toBe('it was wrong');
  });

  it('time is skipped while a request waits for nothing but time', async () => {
    const time = pace();
    const beganMs = systemClock.monotonicMs();
    await time.untilAnswered(() => time.clock.sleep(600_000));
    expect(time.clock.monotonicMs()).toBeGreaterThanOrEqual(600_000);
    expect(systemClock.monotonicMs() - beganMs).toBeLessThan(60_000);
  });

  it('time is not skipped while a request waits for a program', async () => {
    const time = pace();
    let passedMs = Number.NaN;
    await time.untilAnswered(async () => {
      void time.clock.sleep(3_600_000);
      const beganMs = time.clock.monotonicMs();
      await promisify(execFile)('sleep', ['0.2']);
      passedMs = time.clock.monotonicMs() - beganMs;
    });
    expect(passedMs).toBeLessThan(60_000);
  });

  it('skipped time stops at a deadline, while work that is late gets real time', async () => {
    const time = pace();
    const { signal } = new AbortController();
    let isDone = false;
    let deadlineMs = 0;
    const look = async () => {
      if (time.clock.monotonicMs() >= 1_000 && deadlineMs === 0) {
        deadlineMs = time.clock.monotonicMs();
        setTimeout(() => {
          isDone = true;
        }, 15);
      }
      return isDone ? undefined : 'not yet';
    };
    expect(await waitUntilRight(time, 1_000, look, signal)).toBeUndefined();
    expect(time.clock.monotonicMs()).toBe(deadlineMs);
    // What sleeps longer than the deadline is too late, however long the overtime is.
    let isLate = false;
    void time.clock.sleep(1_001).then(() => {
      isLate = true;
    });
    expect(await waitUntilRight(time, 1_000, async () => (isLate ? undefined : 'not yet'), signal)).toBe('not yet');
  });

  it('time runs by itself when nobody waits', async () => {
    const it = pace();
    const beganMs = it.clock.monotonicMs();
    await expect.poll(() => it.clock.monotonicMs() - beganMs, { timeout: 10_000 }).toBeGreaterThan(20);
  });
});
