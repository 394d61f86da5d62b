import { describe, expect, it } from 'vitest';
import { turn, VirtualClock } from '../../src/lib/virtual-clock.ts';
import { Run } from '../simulation/machine.ts';

const STEPS_MAX = 10;

describe('a virtual clock', () => {
  it('advances for every positive wait, however large its time is', async () => {
    const clock = new VirtualClock();
    await clock.advance(2_098_252.617565452);
    const beforeMs = clock.monotonicMs();
    clock.after(Number.MIN_VALUE, () => undefined);
    clock.step();
    expect(clock.monotonicMs()).toBeGreaterThan(beforeMs);
    expect(clock.monotonicMs() - beforeMs).toBeLessThan(1e-6);
  });

  it('does not advance for a wait of nothing', () => {
    const clock = new VirtualClock();
    clock.after(5, () => undefined);
    clock.step();
    clock.after(0, () => undefined);
    clock.after(-1, () => undefined);
    expect([clock.step(), clock.step(), clock.step(), clock.monotonicMs()]).toEqual([true, true, false, 5]);
  });

  it('lets a program that counts from its own start reach each deadline', async () => {
    const world = new VirtualClock();
    await world.advance(1_964_069.5);
    const run = new Run(world, { offsetMs: 0 });
    // The larger time of the world cannot express this one exactly, and rounds it down.
    const deadlineMs = 134_183.423_334_233_06;
    let steps = 0;
    let isOver = false;
    void (async () => {
      while (run.monotonicMs() < deadlineMs) await run.sleep(deadlineMs - run.monotonicMs());
      isOver = true;
    })();
    for (; !isOver && steps < STEPS_MAX; steps += 1) {
      await turn();
      world.step();
      await turn();
    }
    expect(isOver).toBe(true);
  });
});
