import { describe, expect, it } from 'vitest';
import { systemClock, untilAborted, withAbortAfter, withDeadline } from '../../src/lib/clock.ts';

const never = () => new Promise<never>(() => undefined);

describe('time', () => {
  it('sleeps until it is woken, without an error', async () => {
    const wake = new AbortController();
    const slept = systemClock.sleep(3_600_000, wake.signal);
    wake.abort();
    await slept;
    await systemClock.sleep(3_600_000, wake.signal);
  });

  it('gives the result of work in time, undefined when late, and passes errors on', async () => {
    expect(await withDeadline(systemClock, 60_000, Promise.resolve(7))).toBe(7);
    expect(await withDeadline(systemClock, 1, never())).toBeUndefined();
    await expect(withDeadline(systemClock, 60_000, Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  });

  it('waits for work until a signal, and passes results and errors on', async () => {
    const ending = new AbortController();
    expect(await untilAborted(ending.signal, Promise.resolve(7))).toBe(7);
    await expect(untilAborted(ending.signal, Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    const waiting = expect(untilAborted(ending.signal, never())).rejects.toThrow('stopped');
    ending.abort(new Error('stopped'));
    await waiting;
    await expect(untilAborted(ending.signal, never())).rejects.toThrow('stopped');
  });

  it('aborts late work and work whose parent is aborted', async () => {
    const work = (signal: AbortSignal) =>
      new Promise<never>((_, reject) => {
        if (signal.aborted) reject(signal.reason);
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    const parent = new AbortController();
    await expect(withAbortAfter(systemClock, 1, parent.signal, work)).rejects.toThrow('not done within 1 ms');
    parent.abort(new Error('stopped'));
    await expect(withAbortAfter(systemClock, 60_000, parent.signal, work)).rejects.toThrow('stopped');
    expect(await withAbortAfter(systemClock, 60_000, new AbortController().signal, async () => 'done')).toBe('done');
  });
});
