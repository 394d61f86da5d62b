import Fastify from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import { answerBeforeClosing } from '../../src/gateway/doors/app.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { eventually } from '../support/net.ts';

/** An app whose answer waits for `gate`. */
async function appWith(clock: Parameters<typeof answerBeforeClosing>[1], gate: Promise<unknown>) {
  const app = Fastify({ forceCloseConnections: true, return503OnClosing: false });
  answerBeforeClosing(app, clock);
  let asked = 0;
  app.get('/', async () => {
    asked += 1;
    await gate;
    return 'answered';
  });
  const origin = await app.listen({ port: 0 });
  onTestFinished(() => app.close());
  return { app, origin, asked: () => asked };
}

it('an app that closes answers who has asked, and takes no more connections meanwhile', async () => {
  const gate = Promise.withResolvers<void>();
  const { app, origin, asked } = await appWith(systemClock, gate.promise);
  const answer = fetch(origin);
  await eventually('the question', () => asked() === 1);
  const closed = app.close();
  await eventually('a closed door', () =>
    fetch(origin, { headers: { connection: 'close' } }).then(
      () => false,
      () => true,
    ),
  );
  gate.resolve();
  expect(await (await answer).text()).toBe('answered');
  await closed;
});

it('an app that closes leaves a question that has no answer', async () => {
  const clock = new VirtualClock();
  const { app, origin, asked } = await appWith(clock, new Promise(() => {}));
  const answer = expect(fetch(origin)).rejects.toThrow();
  await eventually('the question', () => asked() === 1);
  let closed = false;
  const closing = app.close().then(() => {
    closed = true;
  });
  await eventually('the end', async () => {
    await clock.advance(100);
    return closed;
  });
  await closing;
  await answer;
});
