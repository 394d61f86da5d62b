import { expect, it } from 'vitest';
import { openMqttChannel } from '../../src/gateway/boxes/mqtt-channel.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually } from '../support/net.ts';

const WHERE = { where: 'mqtt://127.0.0.1:1' };
const connection = () => {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  return { closed, isConnected: true, disconnectBoxes: () => undefined, close: async () => resolve() };
};

it('SHA-5 one of several gateways has its channel while the broker is away, says why, and dials on', async () => {
  const clock = new VirtualClock();
  const { log, lines } = keptLog();
  let isThere = false;
  const open = async () => {
    if (!isThere) throw new Error('it is away');
    return connection();
  };
  const channel = await openMqttChannel(WHERE, open, { clock, log, mayBeAway: true });
  expect(channel.isConnected()).toBe(false);
  expect(JSON.stringify(lines)).toContain('the MQTT broker 127.0.0.1:1 cannot be used: it is away');
  isThere = true;
  await eventually('the broker', async () => {
    await clock.advance(250);
    return channel.isConnected();
  });
  await channel.close();
  await expect(openMqttChannel(WHERE, () => Promise.reject(new Error('x')), { clock, log })).rejects.toThrow('used: x');
});

it('SHA-5 one of several gateways waits a second for a broker that hangs, and leaves one without waiting', async () => {
  const clock = new VirtualClock();
  const late = Promise.withResolvers<ReturnType<typeof connection>>();
  const opening = openMqttChannel(WHERE, () => late.promise, { clock, log: keptLog().log, mayBeAway: true });
  await eventually('the wait', () => clock.sleeping().includes(1_000));
  await clock.advance(1_000);
  const channel = await opening;
  expect(channel.isConnected()).toBe(false);
  await channel.close();
  const gone = connection();
  late.resolve(gone);
  await gone.closed;
});

it('THR-41 a broker that ends each connection at once is dialled ever more seldom, until a connection lasts', async () => {
  const clock = new VirtualClock();
  const opened: ReturnType<typeof connection>[] = [];
  const open = async () => {
    const next = connection();
    opened.push(next);
    return next;
  };
  const channel = await openMqttChannel(WHERE, open, { clock, log: keptLog().log });
  const waitAfterEnd = async (lastedMs: number) => {
    const count = opened.length;
    await clock.advance(lastedMs);
    await opened.at(-1)?.close();
    await eventually('the wait', () => clock.sleeping().length > 0);
    const [waitMs = 0] = clock.sleeping();
    await clock.advance(waitMs);
    await eventually('the next', () => opened.length === count + 1);
    return waitMs;
  };
  const waitsMs: number[] = [];
  for (const lastedMs of [5_000, 0, 100, 1_999, 2_000, 0]) waitsMs.push(await waitAfterEnd(lastedMs));
  expect(waitsMs).toEqual([250, 500, 1000, 2000, 250, 500]);
  await channel.close();
});
