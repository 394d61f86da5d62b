import { expect } from 'vitest';
import type { BrokerName } from '../cluster/brokers.ts';
import { connectFakeBox, type FakeBoxOptions } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { BOX1 } from './harness.ts';
import { brokerOfLanes, gatewayInLane, LanesOfTest, watchPresence } from './lanes-fixture.ts';

/** A box that says hello in a lane, and the answer. */
export async function hello(url: string, lane: number, identity = BOX1, more: Partial<FakeBoxOptions> = {}) {
  const gateway = { origin: '', mqttUrl: url };
  const box = await connectFakeBox({ gateway, identity, transport: 'mqtt', lane, hello: false, ...more });
  await box.hello();
  await eventually('an answer', () => box.received.length > 0);
  return box;
}

/** A gateway goes, another one answers in its lane, and it comes back before the other knows that. */
export async function goneAndBack(broker: BrokerName): Promise<void> {
  const url = await brokerOfLanes(broker);
  const lanes = new LanesOfTest();
  lanes.living = [1, 2];
  lanes.homes.set(BOX1.terminalCode, 2);
  const one = await gatewayInLane(1, url, lanes);
  const first = await gatewayInLane(2, url, lanes);
  const said = await watchPresence(url, 2);
  expect((await hello(url, 2)).received[0]?.type).toBe('welcome');
  await first.close();
  await eventually('its goodbye', () => said.at(-1)?.online === false);
  lanes.living = [1];
  lanes.doors.set(2, 1);
  lanes.changed();
  const door = await eventually('the door', () => said.at(-1)?.online === true && said.at(-1)?.sessionId);
  const sentOn = await hello(url, 2);
  expect(sentOn.received).toMatchObject([{ type: 'refused', code: 'MOVED', shard: 1 }]);
  // The gateway is back before the holder of the door knows it.
  const back = await gatewayInLane(2, url, lanes);
  await eventually('its presence', () => back.isConnected() && said.at(-1)?.online && said.at(-1)?.sessionId !== door);
  const run = said.at(-1)?.sessionId;
  lanes.living = [1, 2];
  lanes.doors.delete(2);
  lanes.changed();
  await eventually('the end of the door', () => said.some((it) => !it.online && it.sessionId === door));
  await eventually('its presence again', () => said.at(-1)?.online === true);
  expect(said.at(-1)?.sessionId).toBe(run);
  const home = await hello(url, 2);
  expect(home.received).toMatchObject([{ type: 'welcome' }]);
  // The two contradict each other no longer: what was said last stays.
  const { length } = said;
  expect((await hello(url, 2)).received).toMatchObject([{ type: 'welcome' }]);
  expect([said.length, one.hub.sessions.size]).toEqual([length, 0]);
}
