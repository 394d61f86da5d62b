import { expect, it, onTestFinished } from 'vitest';
import type { Metrics } from '../../src/gateway/common/metrics.ts';
import type { Attempt, MakeAttempt } from '../../src/gateway/money/callbacks/attempt.ts';
import { CallbackDispatcher } from '../../src/gateway/money/callbacks/dispatcher.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { opened, pay } from '../store/rows.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { SharedPlaces } from './shared-places.ts';
import { only, storedOf, worldOf } from './stage-records.ts';

type Result = Attempt['result'];

/** Two gateways that share a store, whose partner answers as told: the callbacks that each of them has sent. */
async function twoGateways(answer: (id: string) => Result | Promise<Result>) {
  const clock = new VirtualClock();
  const store = await opened({ dataDir: await temporaryFolder() });
  const places = new SharedPlaces();
  const stored = storedOf({ store, directory: { partner: async () => undefined } });
  const gatewayOf = (run: string) => {
    const sent: string[] = [];
    const attempt: MakeAttempt = async ({ id }) => {
      sent.push(id);
      const result = await answer(id);
      const status = result === 'delivered' ? 200 : 500;
      const texts = { warning: null, answer: '', error: null, requestHeaders: {} };
      return { result, status, ...texts, startedAtMs: clock.wallMs(), durationMs: 1 };
    };
    const metrics = only<Metrics>({ called: () => undefined });
    const world = worldOf({ clock, place: places.join(run) });
    const dispatcher = new CallbackDispatcher(world, stored, metrics, attempt);
    onTestFinished(() => dispatcher.close());
    return { sent, dispatcher };
  };
  const [a, b] = [gatewayOf('a'), gatewayOf('b')];
  const due = (id: string) =>
    pay(store, `of ${id}`, { atMs: clock.wallMs(), callback: { id, url: 'http://127.0.0.1:9/', body: '{}' } });
  const statusOf = async (id: string) => (await store.callbacks.find(id))?.status;
  return { a, b, clock, store, places, due, statusOf };
}

it('SYN-4 one of two gateways delivers the callbacks of a partner, whichever of them stores a payment', async () => {
  const { a, b, clock, places, due, statusOf } = await twoGateways(() => 'delivered');
  for (const it of [a, b]) it.dispatcher.start();
  await due('c1');
  a.dispatcher.wake('demo');
  await eventually('the first', async () => (await statusOf('c1')) === 'delivered');
  await due('c2');
  b.dispatcher.wake('demo');
  await eventually('the hint', () => places.hints.length === 1);
  expect(places.hints).toEqual([{ about: 'callbacks', partner: 'demo' }]);
  expect(b.dispatcher.wakeHere('demo')).toBe(false);
  expect(a.dispatcher.wakeHere('demo')).toBe(true);
  await eventually('the second', async () => (await statusOf('c2')) === 'delivered');
  await due('c3');
  // No hint arrives.
  await eventually('the wait of both', () => clock.sleeping().length >= 2);
  await clock.advance(1_000);
  await eventually('the third', async () => (await statusOf('c3')) === 'delivered');
  expect([a.sent, b.sent]).toEqual([['c1', 'c2', 'c3'], []]);
  expect(places.hints).toHaveLength(1);
});

it('SYN-4 a gateway goes on with the callbacks of one that has ended, a second later at most', async () => {
  const { a, b, clock, places, due, statusOf } = await twoGateways((id) => (id === 'c1' ? 'retry' : 'delivered'));
  a.dispatcher.start();
  await due('c1');
  a.dispatcher.wake('demo');
  await eventually('the attempt', () => a.sent.length === 1);
  await a.dispatcher.close();
  await due('c2');
  b.dispatcher.start();
  await eventually('the wait', () => clock.sleeping().includes(1_000));
  expect(b.sent).toEqual([]);
  places.end('a');
  await clock.advance(1_000);
  await eventually('what was left', () => b.sent.length === 2);
  expect(b.sent.toSorted()).toEqual(['c1', 'c2']);
  await eventually('its delivery', async () => (await statusOf('c2')) === 'delivered');
});

it('SYN-5 a callback that is resent at another gateway stays delivered, although an attempt of its queue fails later', async () => {
  const slow = Promise.withResolvers<Result>();
  const answers: (Result | Promise<Result>)[] = [slow.promise, 'delivered'];
  const { a, b, store, due, statusOf } = await twoGateways(() => answers.shift() ?? 'failed');
  await due('c1');
  a.dispatcher.wake('demo');
  await eventually('the attempt of the queue', () => a.sent.length === 1);
  await b.dispatcher.resend('c1');
  expect(await statusOf('c1')).toBe('delivered');
  slow.resolve('retry');
  await eventually('both attempts', async () => (await store.callbacks.attemptsOf(['c1'], 9)).length === 2);
  expect(await store.callbacks.find('c1')).toMatchObject({ status: 'delivered', tries: 0, warning: null });
  a.dispatcher.wakeHere('demo');
  await a.dispatcher.close();
  expect([a.sent, b.sent]).toEqual([['c1'], ['c1']]);
});
