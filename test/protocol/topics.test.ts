import { expect, it } from 'vitest';
import {
  boxMayPublish,
  boxMaySubscribe,
  boxRights,
  boxTopic,
  GATEWAY_PRESENCE_TOPIC,
  gatewayPresenceTopic,
  gatewayRights,
  gatewaysTopic,
  LANES_MAX,
  parseBoxTopic,
} from '../../src/protocol/topics.ts';

const BOX = 'VVB000001';
const OWN = 'paybox/v1/boxes/VVB000001';

it('TOP-1 names the topics of boxes and gateway', () => {
  expect(boxTopic(BOX, 'down')).toBe(`${OWN}/down`);
  expect(boxTopic(BOX, 'up')).toBe(`${OWN}/up`);
  expect(boxTopic(BOX, 'presence')).toBe(`${OWN}/presence`);
  expect(GATEWAY_PRESENCE_TOPIC).toBe('paybox/v1/gateway/presence');
});

it('TOP-1 reads back the box and channel of a topic', () => {
  for (const channel of ['down', 'up', 'presence'] as const) {
    expect(parseBoxTopic(boxTopic(BOX, channel))).toStrictEqual({ lane: 0, terminalCode: BOX, channel });
  }
});

it('SHA-1 names the topics of a lane, and those of a gateway alone for lane 0', () => {
  expect(boxTopic(BOX, 'down', 7)).toBe('paybox/v2/7/boxes/VVB000001/down');
  expect(gatewayPresenceTopic(7)).toBe('paybox/v2/7/gateway/presence');
  expect(boxTopic(BOX, 'down', 0)).toBe(boxTopic(BOX, 'down'));
  expect(gatewayPresenceTopic(0)).toBe(GATEWAY_PRESENCE_TOPIC);
  expect(gatewaysTopic(7)).toBe('paybox/v2/gateways-7/gateway/presence');
  expect(boxRights(BOX, 7)).toEqual({
    read: ['paybox/v2/7/boxes/VVB000001/down', 'paybox/v2/7/gateway/presence'],
    write: ['paybox/v2/7/boxes/VVB000001/up', 'paybox/v2/7/boxes/VVB000001/presence'],
  });
  expect(gatewayRights(7)).toEqual({
    read: ['paybox/v2/7/boxes/+/up', 'paybox/v2/7/boxes/+/presence', 'paybox/v2/7/gateway/presence'],
    write: ['paybox/v2/7/boxes/+/down', 'paybox/v2/7/gateway/presence'],
  });
});

it('SHA-1 reads back the lane of a topic, and takes no number that none has', () => {
  for (const lane of [1, 9, 10, 1000, LANES_MAX - 1]) {
    expect(parseBoxTopic(boxTopic(BOX, 'up', lane))).toStrictEqual({ lane, terminalCode: BOX, channel: 'up' });
  }
  for (const lane of ['0', '00', '01', '-1', '+1', '1.0', '1e2', ' 1', '', '+', '#', String(LANES_MAX), '99999']) {
    expect(parseBoxTopic(`paybox/v2/${lane}/boxes/${BOX}/up`), lane).toBeUndefined();
  }
});

/** What is neither a topic of this box nor the gateway's presence. */
const FOREIGN = [
  '',
  '#',
  '+',
  '/',
  'paybox/#',
  'paybox/v1/#',
  'paybox/v1/boxes/#',
  'paybox/v1/boxes/+/down',
  'paybox/v1/boxes/+/up',
  'paybox/v1/+/presence',
  'paybox/+/gateway/presence',
  `${OWN}`,
  `${OWN}/`,
  `${OWN}/#`,
  `${OWN}/+`,
  `${OWN}/down/`,
  `${OWN}/down/#`,
  `${OWN}/down/x`,
  `${OWN}/a+`,
  `${OWN}/DOWN`,
  `/${OWN}/down`,
  `/${OWN}/up`,
  ` ${OWN}/down`,
  `${OWN}/up\n`,
  `${OWN}/down\u0000`,
  'a+',
  'a+/b',
  'paybox/v2/boxes/VVB000001/down',
  'paybox/v1/boxes/vvb000001/down',
  'paybox/v1/boxes/VVB00001/down',
  'paybox/v1/boxes/VVB0000011/down',
  'paybox/v1/boxes/VVB000002/down',
  'paybox/v1/boxes/VVB000002/up',
  'paybox/v1/boxes/VVB000002/presence',
  'paybox/v1/boxes/VVB000001/../VVB000002/down',
  '$SYS/#',
  '$SYS/broker/clients/total',
  `$share/group/${OWN}/down`,
  '$share/group/#',
  `$queue/${OWN}/down`,
  'paybox/v1/gateway/#',
  'paybox/v1/gateway/presence/x',
  'paybox/v1/gateway/+',
];

it.each(FOREIGN)('TOP-3 a box neither publishes nor subscribes to %j', (topic) => {
  expect(boxMayPublish(BOX, topic)).toBe(false);
  expect(boxMaySubscribe(BOX, topic)).toBe(false);
});

it('TOP-3 a box publishes to its up and its presence only', () => {
  expect(boxMayPublish(BOX, `${OWN}/up`)).toBe(true);
  expect(boxMayPublish(BOX, `${OWN}/presence`)).toBe(true);
  expect(boxMayPublish(BOX, `${OWN}/down`)).toBe(false);
  expect(boxMayPublish(BOX, GATEWAY_PRESENCE_TOPIC)).toBe(false);
});

it('TOP-3 a box subscribes to its down and the presence of the gateway only', () => {
  expect(boxMaySubscribe(BOX, `${OWN}/down`)).toBe(true);
  expect(boxMaySubscribe(BOX, GATEWAY_PRESENCE_TOPIC)).toBe(true);
  expect(boxMaySubscribe(BOX, `${OWN}/up`)).toBe(false);
  expect(boxMaySubscribe(BOX, `${OWN}/presence`)).toBe(false);
});

it('TOP-1 no other topic is taken for one of a box', () => {
  const others = FOREIGN.filter((topic) => !/^paybox\/v1\/boxes\/VVB000002\/(down|up|presence)$/.test(topic));
  expect(others.filter((topic) => parseBoxTopic(topic) !== undefined)).toEqual([]);
  expect(parseBoxTopic(GATEWAY_PRESENCE_TOPIC)).toBeUndefined();
});
