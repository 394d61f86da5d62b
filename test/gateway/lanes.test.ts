import { connectAsync } from 'mqtt';
import { expect, it, onTestFinished } from 'vitest';
import { GATEWAY_LOGIN } from '../../src/device/setup/brokers.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { BOX1, BOX2, BOXES } from './harness.ts';
import { goneAndBack, hello } from './lane-doors.ts';
import { brokerOfLanes, gatewayInLane, LANES_PASSWORD, LanesOfTest, pushTo, watchPresence } from './lanes-fixture.ts';

it('SHA-1 SHA-2 a box begins in lane 0, is sent to the lane of its home, and has a session there alone', async () => {
  const url = await brokerOfLanes();
  const lanes = new LanesOfTest();
  lanes.living = [1, 2];
  lanes.homes.set(BOX1.terminalCode, 2);
  lanes.doors.set(0, 1);
  const one = await gatewayInLane(1, url, lanes);
  const two = await gatewayInLane(2, url, lanes);
  const begun = await hello(url, 0);
  expect(begun.received).toMatchObject([{ type: 'refused', code: 'MOVED', shard: 2, sessionId: begun.sessionId }]);
  expect([one.hub.session(BOX1.terminalCode), two.hub.session(BOX1.terminalCode)]).toEqual([undefined, undefined]);
  const home = await hello(url, 2);
  expect(home.received).toMatchObject([{ type: 'welcome' }]);
  expect(two.hub.session(BOX1.terminalCode)?.sessionId).toBe(home.sessionId);
  // Whatever else is said at a door changes nothing.
  await begun.send({ type: 'shown', pushId: crypto.randomUUID() });
  await begun.send({ type: 'alive' });
  await begun.hello();
  await begun.next('refused', 2);
  expect([begun.heard, one.hub.sessions.size]).toEqual([[], 0]);
});

it('MSG-4 SHA-2 a door refuses a box that is not registered, and sends it nowhere', async () => {
  const url = await brokerOfLanes();
  const lanes = new LanesOfTest();
  lanes.living = [1];
  lanes.doors.set(0, 1);
  await gatewayInLane(1, url, lanes);
  const stranger = await connectFakeBox({
    ...{ gateway: { origin: '', mqttUrl: url }, identity: BOX2, transport: 'mqtt', hello: false },
  });
  await stranger.hello({ serialNumber: BOX1.serialNumber });
  expect(await stranger.next('refused')).toMatchObject({ code: 'NOT_REGISTERED' });
  expect(stranger.received.map((it) => 'shard' in it)).toEqual([false]);
});

it('SHA-2 SHA-5 boxes of a gateway that is gone are sent on from its lane, until it is back there', () =>
  goneAndBack('mosquitto'));

it('SHA-3 the presence of lane 0 names the number of lanes, and says so when there is one more', async () => {
  const url = await brokerOfLanes();
  const lanes = new LanesOfTest();
  lanes.living = [1];
  lanes.count = 2;
  lanes.doors.set(0, 1);
  const said = await watchPresence(url, 0);
  await gatewayInLane(1, url, lanes);
  await eventually('the first', () => said.length === 1);
  lanes.changed();
  lanes.count = 3;
  lanes.changed();
  await eventually('the second', () => said.length === 2);
  lanes.changed();
  expect((await hello(url, 0)).received).toMatchObject([{ code: 'MOVED', shard: 1 }]);
  expect(said.map((it) => it.shards)).toEqual([2, 3]);
  expect(said[0]?.sessionId).toBe(said[1]?.sessionId);
});

/** A gateway in lane 1 with two boxes whose home is lane 2. The first one shows a push. */
async function boxesAwayFromHome() {
  const url = await brokerOfLanes();
  const lanes = new LanesOfTest();
  lanes.living = [1];
  for (const { terminalCode } of BOXES) lanes.homes.set(terminalCode, 2);
  const one = await gatewayInLane(1, url, lanes);
  const showing = await hello(url, 1, BOX1);
  const idle = await hello(url, 1, BOX2);
  expect(await pushTo(one.hub, BOX1)).toEqual({ ok: true });
  return { lanes, one, showing, idle };
}

it('SHA-2 the holder sends boxes home a few each second, and none on which a push is open', async () => {
  const { lanes, one, showing, idle } = await boxesAwayFromHome();
  const { pushId, orderId } = await showing.next('show');
  lanes.living = [1, 2];
  lanes.changed();
  expect(await idle.next('refused')).toMatchObject({ code: 'MOVED', shard: 2, sessionId: idle.sessionId });
  expect([...one.hub.sessions.keys()]).toEqual([BOX1.terminalCode]);
  await showing.send({ type: 'ended', pushId, orderId, how: 'withdrawn' });
  expect(await showing.next('refused')).toMatchObject({ code: 'MOVED', shard: 2 });
  expect(showing.of('refused')).toHaveLength(1);
  expect(one.hub.sessions.size).toBe(0);
});

it('SHA-2 a gateway that ends sends all boxes home at once, also those on which a push is open', async () => {
  const { lanes, one, showing, idle } = await boxesAwayFromHome();
  await showing.next('show');
  lanes.leaving = [1];
  lanes.living = [2];
  lanes.changed();
  for (const box of [showing, idle]) {
    expect(await box.next('refused')).toMatchObject({ code: 'MOVED', shard: 2, sessionId: box.sessionId });
  }
  expect(one.hub.sessions.size).toBe(0);
});

it.each([
  ['hangs', () => new Promise<number>(() => undefined)],
  ['fails', () => Promise.reject(new Error('the database is away'))],
])('PRE-2 PRE-6 a door opens while the store %s, and names the spread that it knew last', async (_how, boxCount) => {
  const url = await brokerOfLanes();
  const lanes = new LanesOfTest();
  lanes.living = [1];
  const said = await watchPresence(url, 0);
  const one = await gatewayInLane(1, url, lanes);
  one.stored.directory.boxCount = async () => 400;
  lanes.doors.set(0, 1);
  lanes.changed();
  await eventually('the door', () => said.some((it) => it.online));
  one.stored.directory.boxCount = boxCount;
  lanes.doors.delete(0);
  lanes.changed();
  await eventually('its end', () => said.some((it) => !it.online));
  lanes.doors.set(0, 1);
  lanes.changed();
  await eventually('the door again', () => said.at(-1)?.online);
  expect(said.filter((it) => it.online).map((it) => it.spreadMs)).toEqual([400, 400]);
});

it('SHA-2 a door that has lost the broker does not say that it is there once the gateway of its lane is back', async () => {
  const url = await brokerOfLanes();
  const lanes = new LanesOfTest();
  lanes.living = [1];
  lanes.doors.set(2, 1);
  const said = await watchPresence(url, 2);
  const one = await gatewayInLane(1, url, lanes);
  const door = await eventually('the door', () => said.find((it) => it.online));
  // Nobody has closed it yet.
  lanes.doors.delete(2);
  const clientId = `gateway-${door.sessionId.slice(0, 8)}`;
  const thief = await connectAsync(url, { username: GATEWAY_LOGIN, password: LANES_PASSWORD, clientId });
  onTestFinished(() => thief.endAsync(true));
  await eventually('its end', () => said.some((it) => !it.online));
  await eventually('its next attempt', () => one.logged('broker-unreachable').length > 0 || said.at(-1)?.online);
  expect(said.map((it) => it.online)).toEqual([true, false]);
});
