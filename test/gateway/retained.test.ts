import type { AedesPublishPacket } from 'aedes';
import memory, { type Persistence } from 'aedes-persistence';
import { type IClientOptions, MqttClient } from 'mqtt';
import { describe, expect, it, onTestFinished } from 'vitest';
import { retainedByTopic } from '../../src/gateway/boxes/broker.ts';
import { boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../src/protocol/topics.ts';
import { eventually } from '../support/net.ts';
import { fc } from '../support/properties.ts';
import { bareBroker } from './bare-broker.ts';
import { BOX1, BOX2 } from './harness.ts';
import { loginAs, type Received } from './mqtt-login.ts';

type Broker = Awaited<ReturnType<typeof bareBroker>>['broker'];

/** What a box hears of, which tells that all that comes before it has come. */
const LAST = 'last';

/** A login that may publish and subscribe to anything, and hears what comes to it. */
async function gatewayClient(broker: Broker, options: IClientOptions = {}) {
  const client = new MqttClient(() => broker.connect(), { ...broker.login, reconnectPeriod: 0, ...options });
  await new Promise<void>((resolve) => client.once('connect', () => resolve()));
  client.on('error', () => undefined);
  onTestFinished(() => client.endAsync(true));
  return client;
}

/** What a new subscription to these filters is told of the past: topic, payload, QoS and flag, sorted. */
async function retainedFor(broker: Broker, ...filters: string[]): Promise<Received[]> {
  const client = await gatewayClient(broker);
  const received: Received[] = [];
  client.on('message', (topic, payload, { qos, retain }) => {
    received.push({ topic, payload: payload.toString('utf8'), qos, retain });
  });
  await client.publishAsync(LAST, 'the last', { qos: 1, retain: true });
  // What is retained comes filter by filter, so that nothing is still to come after this one.
  await client.subscribeAsync([...filters, LAST], { qos: 1 });
  await eventually('the last of what is retained', () =>
    received.some(({ topic, retain }) => topic === LAST && retain),
  );
  await client.endAsync();
  return received.filter(({ topic }) => topic !== LAST).sort((one, other) => (one.topic < other.topic ? -1 : 1));
}

const kept = (topic: string, payload: string, qos = 1): Received => ({ topic, payload, qos, retain: true });

describe('what the embedded broker retains', () => {
  it('comes to a filter that names its topic, and to one with wildcards', async () => {
    const { broker } = await bareBroker();
    const client = await gatewayClient(broker);
    const topics = ['a/b/1', 'a/b/2', 'a/c', 'a', '/a/b/1', 'a/b/1/'];
    for (const topic of topics) await client.publishAsync(topic, `of ${topic}`, { qos: 1, retain: true });
    await client.publishAsync('a/b/3', 'not retained', { qos: 1 });
    for (const topic of topics) expect(await retainedFor(broker, topic)).toEqual([kept(topic, `of ${topic}`)]);
    for (const other of ['a/b', 'a/b/3', 'a/b/11', 'A/B/1', 'b']) expect(await retainedFor(broker, other)).toEqual([]);
    const told = async (...filters: string[]) => (await retainedFor(broker, ...filters)).map(({ topic }) => topic);
    expect(await told('a/b/+')).toEqual(['a/b/1', 'a/b/2']);
    expect(await told('+/+/1')).toEqual(['a/b/1']);
    expect(await told('a/#')).toEqual(['a', 'a/b/1', 'a/b/1/', 'a/b/2', 'a/c']);
    expect(await told('a/c', 'a/b/2')).toEqual(['a/b/2', 'a/c']);
    expect(await told('a/c', 'a/b/+')).toEqual(['a/b/1', 'a/b/2', 'a/c']);
  });

  it('is the newest of its topic, and nothing after an empty message', async () => {
    const { broker } = await bareBroker();
    const client = await gatewayClient(broker);
    const say = (payload: string, retain = true) => client.publishAsync('a/b', payload, { qos: 1, retain });
    const now = async () => [await retainedFor(broker, 'a/b'), await retainedFor(broker, 'a/+')];
    const both = (payload: string) => [[kept('a/b', payload)], [kept('a/b', payload)]];
    await say('first');
    await say('second');
    await say('passing', false);
    expect(await now()).toEqual(both('second'));
    await say('', false);
    expect(await now()).toEqual(both('second'));
    await say('');
    expect(await now()).toEqual([[], []]);
    await say('');
    await say('third');
    expect(await now()).toEqual(both('third'));
  });

  it('keeps the quality of service that it was published with', async () => {
    const { broker } = await bareBroker();
    const client = await gatewayClient(broker);
    for (const qos of [0, 1, 2] as const) await client.publishAsync(`q/${qos}`, 'x', { qos, retain: true });
    const told = [kept('q/0', 'x', 0), kept('q/1', 'x', 1), kept('q/2', 'x', 1)];
    expect(await retainedFor(broker, 'q/0', 'q/1', 'q/2')).toEqual(told);
    expect((await retainedFor(broker, 'q/+')).map(({ topic }) => topic)).toEqual(told.map(({ topic }) => topic));
  });

  it('TOP-3 PRE-1 is the last will of a box that is cut off, and what it said of itself before', async () => {
    const { broker } = await bareBroker();
    const presence = boxTopic(BOX1.terminalCode, 'presence');
    const will = { topic: presence, payload: Buffer.from('gone'), qos: 1 as const, retain: true };
    const { client, ended } = await loginAs({ mqttUrl: broker.url }, BOX1, { will });
    await client.publishAsync(presence, 'here', { qos: 1, retain: true });
    expect(await retainedFor(broker, presence)).toEqual([kept(presence, 'here')]);
    client.stream.destroy();
    await ended;
    await eventually('the last will', async () => (await retainedFor(broker, presence))[0]?.payload === 'gone');
    expect(await retainedFor(broker, boxTopic('+', 'presence'))).toEqual([kept(presence, 'gone')]);
  });

  it('TOP-3 tells a box the presence of its gateway, and nothing of another box', async () => {
    const { broker } = await bareBroker();
    const gateway = await gatewayClient(broker);
    for (const { terminalCode } of [BOX1, BOX2]) {
      await gateway.publishAsync(boxTopic(terminalCode, 'down'), `to ${terminalCode}`, { qos: 1, retain: true });
    }
    await gateway.publishAsync(GATEWAY_PRESENCE_TOPIC, 'here', { qos: 1, retain: true });
    const { client, received } = await loginAs({ mqttUrl: broker.url }, BOX1);
    const filters = [boxTopic(BOX2.terminalCode, 'down'), boxTopic(BOX1.terminalCode, 'down'), GATEWAY_PRESENCE_TOPIC];
    await client.subscribeAsync(filters, { qos: 1 }).catch(() => undefined);
    await eventually('the presence', () => received.some(({ topic }) => topic === GATEWAY_PRESENCE_TOPIC));
    expect(received).toEqual([
      kept(boxTopic(BOX1.terminalCode, 'down'), `to ${BOX1.terminalCode}`),
      kept(GATEWAY_PRESENCE_TOPIC, 'here'),
    ]);
  });

  it('knows no shared subscriptions, and takes $SYS and $share for topics like others', async () => {
    const { broker } = await bareBroker();
    const client = await gatewayClient(broker);
    for (const topic of ['a/b', '$SYS/own', '$share/group/c']) {
      await client.publishAsync(topic, topic, { qos: 1, retain: true });
    }
    expect(await retainedFor(broker, '$share/group/a/b')).toEqual([]);
    expect(await retainedFor(broker, '$share/group/a/+')).toEqual([]);
    for (const topic of ['$SYS/own', '$share/group/c']) {
      expect(await retainedFor(broker, topic)).toEqual([kept(topic, topic)]);
    }
  });
});

const level = fc.constantFrom('', 'a', 'b', '$SYS', 'constructor', '__proto__');
const topicName = fc.array(level, { minLength: 1, maxLength: 3 }).map((levels) => levels.join('/'));
const filterName = fc
  .array(fc.oneof({ weight: 4, arbitrary: level }, fc.constant('+')), { minLength: 1, maxLength: 3 })
  .chain((levels) => fc.constantFrom(levels.join('/'), [...levels, '#'].join('/')));
const publish = fc.record({ topic: topicName, text: fc.constantFrom('', 'one', 'two') });

const packetOf = ({ topic, text }: { topic: string; text: string }) =>
  ({ cmd: 'publish', topic, payload: Buffer.from(text), qos: 1, retain: true, dup: false }) as AedesPublishPacket;

async function found(persistence: Persistence, filters: readonly string[]): Promise<AedesPublishPacket[]> {
  return persistence.createRetainedStreamCombi([...filters]).toArray();
}

describe('retainedByTopic', () => {
  it("finds what the library's own memory finds, in its order of filters", async () => {
    const scenario = fc.record({
      published: fc.array(publish, { maxLength: 20 }),
      filters: fc.array(fc.oneof(topicName, filterName), { minLength: 1, maxLength: 4 }),
    });
    await fc.assert(
      fc.asyncProperty(scenario, async ({ published, filters }) => {
        const [ours, theirs] = [retainedByTopic(memory()), memory()];
        for (const it of published) {
          const packet = packetOf(it);
          await Promise.all([ours.storeRetained(packet), theirs.storeRetained({ ...packet })]);
          // As the broker does once a packet is kept.
          Object.assign(packet, { payload: Buffer.from('changed'), retain: false });
        }
        expect(await found(ours, filters)).toEqual(await found(theirs, filters));
      }),
      { numRuns: 500 },
    );
  });

  it('asks the library only where a filter has a wildcard', async () => {
    const asked: string[][] = [];
    const theirs = memory();
    const matching = theirs.createRetainedStreamCombi.bind(theirs);
    const counting = Object.assign(theirs, {
      createRetainedStreamCombi: (filters: string[]) => {
        asked.push(filters);
        return matching(filters);
      },
    });
    const ours = retainedByTopic(counting);
    await ours.storeRetained(packetOf({ topic: 'a/b', text: 'one' }));
    for (const filters of [['a/b'], ['a/b', 'a/c'], ['a/+'], ['a/b', '#']]) await found(ours, filters);
    expect(asked).toEqual([['a/+'], ['a/b', '#']]);
  });
});
