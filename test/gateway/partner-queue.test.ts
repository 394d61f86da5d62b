import { expect, it } from 'vitest';
import { PartnerQueue } from '../../src/gateway/money/callbacks/partner-queue.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { storedOf, worldOf } from './stage-records.ts';

it('SYN-4 misses no callback that comes while the store is read', async () => {
  const clock = new VirtualClock();
  const closing = new AbortController();
  const attempted = Promise.withResolvers<string>();
  const due: string[] = [];
  let reads = 0;
  const nextDue = async () => {
    const found = due.splice(0).map((id) => ({ id, tries: 1, next_at_ms: 0 }));
    await Promise.resolve();
    reads += 1;
    if (reads > 1) return found;
    due.push('late');
    queue.wake();
    return found;
  };
  const queue: PartnerQueue = new PartnerQueue(
    'demo',
    worldOf({ clock }),
    storedOf({ store: { callbacks: { nextDue, neverTried: async () => [] } } }),
    { waitsMs: [1000], attempt: async (id) => attempted.resolve(id) },
    closing.signal,
  );
  expect(await attempted.promise).toBe('late');
  closing.abort();
  await queue.ended();
});
