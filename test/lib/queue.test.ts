import { describe, expect, it } from 'vitest';
import { BoundedQueue } from '../../src/lib/queue.ts';

async function rest<T>(queue: BoundedQueue<T>): Promise<T[]> {
  queue.close();
  return Array.fromAsync(queue);
}

describe('a bounded queue', () => {
  it('refuses what is over its limit', async () => {
    const queue = new BoundedQueue<number>(2, 'reject');
    expect([1, 2, 3].map((item) => queue.offer(item))).toEqual([true, true, false]);
    expect(await rest(queue)).toEqual([1, 2]);
  });

  it('a bounded queue drops the oldest entry if configured so', async () => {
    const queue = new BoundedQueue<number>(2, 'drop-oldest');
    expect([1, 2, 3].map((item) => queue.offer(item))).toEqual([true, true, true]);
    expect(await rest(queue)).toEqual([2, 3]);
  });

  it('hands each item to a waiting reader and takes nothing after its end', async () => {
    const queue = new BoundedQueue<number>(2, 'reject');
    const reading = Array.fromAsync(queue);
    for (const item of [1, 2, 3]) {
      queue.offer(item);
      await Promise.resolve();
      await new Promise(setImmediate);
    }
    queue.close();
    expect(queue.offer(4)).toBe(false);
    expect(await reading).toEqual([1, 2, 3]);
  });

  it('looks for what waits, and takes the oldest of it away', async () => {
    const queue = new BoundedQueue<number>(9, 'reject');
    for (const item of [1, 2, 3, 4]) queue.offer(item);
    expect(queue.some((item) => item > 4)).toBe(false);
    expect(queue.discard((item) => item > 4)).toBe(false);
    expect(queue.some((item) => item > 2)).toBe(true);
    expect(queue.discard((item) => item > 2)).toBe(true);
    expect(await rest(queue)).toEqual([1, 2, 4]);
  });

  it('tells when nothing waits any more', async () => {
    const queue = new BoundedQueue<number>(9, 'reject');
    await queue.drained();
    for (const item of [1, 2]) queue.offer(item);
    const told: string[] = [];
    void queue.drained().then(() => told.push('drained'));
    for await (const item of queue) {
      told.push(String(item));
      await new Promise(setImmediate);
      if (item === 2) queue.close();
    }
    expect(told).toEqual(['1', 'drained', '2']);
  });
});
