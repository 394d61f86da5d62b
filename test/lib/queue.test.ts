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

  it('or drops the oldest, as told', async () => {
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
});
