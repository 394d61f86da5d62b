import { connectAsync } from 'mqtt';
import { expect, it, onTestFinished } from 'vitest';
import { parseGatewayConfig } from '../../../src/gateway/config/config.ts';
import { boxIdOf, boxIdTopic, ENROL_TOPIC } from '../../../src/protocol/dialect.ts';
import { boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../../src/protocol/topics.ts';
import { eventually } from '../../support/net.ts';
import { ACCOUNT, BOX1, BOXES, type TestGateway } from '../harness.ts';
import { loginAs } from '../mqtt-login.ts';
import { dialectGateway, firmware, LOGIN, VIETQR, VIETQR_BOX } from './support.ts';

const BOX_TOPIC = boxIdTopic(boxIdOf(VIETQR_BOX.terminalCode, VIETQR.boxIdSalt));

async function shared(gateway: TestGateway, options = {}) {
  const client = await connectAsync(gateway.mqttUrl ?? '', { ...LOGIN, ...options }, false);
  onTestFinished(() => client.endAsync(true));
  client.on('error', () => undefined);
  const ended = new Promise<void>((resolve) => client.once('close', () => resolve()));
  const granted = (topic: string) =>
    client.subscribeAsync(topic, { qos: 1 }).then(
      (grants) => grants.every((it) => it.qos !== 128),
      () => false,
    );
  return { client, ended, granted };
}

it('VQD-1 THR-31 the shared login subscribes to topics of the dialect, without wildcards, and to nothing else', async () => {
  const gateway = await dialectGateway();
  const { granted } = await shared(gateway);
  const own = [BOX_TOPIC, 'vietqr/bdsd/S1', 'vietqr/response/S1', '/vqr/handle-box/response/02005E100001'];
  for (const topic of own) expect([topic, await granted(topic)]).toEqual([topic, true]);
  const foreign = [
    ...[
      '#',
      'vietqr/#',
      'vietqr/boxId/+',
      '/vqr/#',
      'vietqr/boxId/',
      `${BOX_TOPIC}/x`,
      'vietqr/request/S1',
      ENROL_TOPIC,
    ],
    ...[boxTopic(BOX1.terminalCode, 'down'), boxTopic('+', 'up'), GATEWAY_PRESENCE_TOPIC, '$SYS/#'],
  ];
  for (const topic of foreign) expect([topic, await granted(topic)]).toEqual([topic, false]);
});

it('VQD-1 a connection of the shared login has at most 64 subscriptions', async () => {
  const { granted } = await shared(await dialectGateway());
  for (let at = 1; at <= 64; at += 1) expect(await granted(`vietqr/response/S${at}`)).toBe(true);
  expect(await granted('vietqr/response/S65')).toBe(false);
});

it.each([BOX_TOPIC, 'vietqr/bdsd/S1', 'vietqr/response/S1', boxTopic(BOX1.terminalCode, 'up'), GATEWAY_PRESENCE_TOPIC])(
  'VQD-1 THR-31 the shared login cannot speak for the gateway or another box: %s',
  async (topic) => {
    const gateway = await dialectGateway();
    const box = firmware(gateway);
    await eventually('the greeting', () => box.screen.kind === 'idle');
    const { client, ended } = await shared(gateway);
    const forged = { notificationType: 'N05', amount: '1', message: 'forged' };
    client.publish(topic, JSON.stringify(forged), { qos: 1 });
    await ended;
    expect(gateway.logged('mqtt-publish-refused')).toMatchObject([{ topic }]);
    expect(box.spoken).toEqual([]);
  },
);

it('VQD-1 a box with a login of its own reads and writes no topic of the dialect', async () => {
  const gateway = await dialectGateway();
  const login = await loginAs(gateway, BOX1);
  expect(await login.refused(BOX_TOPIC)).toBe(true);
  login.client.publish(ENROL_TOPIC, '{}', { qos: 1 });
  await login.ended;
});

it('VQD-1 nobody logs in under the code of such a box, or with another password', async () => {
  const gateway = await dialectGateway();
  const { url = '' } = { url: gateway.mqttUrl };
  for (const change of [{ username: VIETQR_BOX.terminalCode }, { password: 'guess' }, { password: '' }]) {
    await expect(connectAsync(url, { ...LOGIN, ...change }, false)).rejects.toMatchObject({ code: 4 });
  }
  const asked = {
    terminalCode: VIETQR_BOX.terminalCode,
    serialNumber: VIETQR_BOX.serialNumber,
    publicKey: 'x',
    proof: 'x',
  };
  const answer = await fetch(`${gateway.origin}/box/v1/enrolments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(asked),
  });
  expect(answer.status).toBeGreaterThanOrEqual(400);
});

it('VQD-1 more than eight boxes share the login', async () => {
  const gateway = await dialectGateway();
  const clients = await Promise.all(Array.from({ length: 12 }, () => shared(gateway)));
  expect(clients.map(({ client }) => client.connected)).toEqual(clients.map(() => true));
});

it('THR-32 such a box believes whoever can publish to its topic', async () => {
  const gateway = await dialectGateway();
  const box = firmware(gateway);
  await eventually('the greeting', () => box.screen.kind === 'idle');
  // Only the broker itself can do this, or somebody on the line.
  box.hear(JSON.stringify({ notificationType: 'N05', amount: '1', message: 'forged' }));
  expect(box.spoken).toEqual(['forged']);
  expect(await gateway.mock('/payments')).toEqual([]);
});

const parse = (boxes: unknown[], more: Record<string, unknown> = {}) =>
  parseGatewayConfig({ dataDir: 'none', accounts: [ACCOUNT], boxes, vietqrBoxes: VIETQR, ...more }, 'test');
const plain = { terminalCode: 'VVB000001', serialNumber: 'VVB900001' };

it.each([
  ['no salts and login', [VIETQR_BOX], { vietqrBoxes: undefined }, 'boxes.0.dialect: expected vietqrBoxes'],
  ['no MAC address', [{ ...VIETQR_BOX, macAddr: undefined }], {}, 'boxes.0.macAddr'],
  ['no MQTT', [VIETQR_BOX], { mqtt: null }, 'boxes.0.dialect: expected mqtt'],
  ['a secret', [{ ...VIETQR_BOX, secret: BOXES[0]?.secret }], {}, 'boxes.0.secret: expected none'],
  ['a MAC address of a box of our own', [{ ...plain, macAddr: '02005E100001' }], {}, 'boxes.0.macAddr'],
  ['a confirmation of a box of our own', [{ ...plain, confirm: 'displayed' }], {}, 'boxes.0.confirm'],
  [
    'one MAC address twice',
    [VIETQR_BOX, { ...VIETQR_BOX, ...plain, macAddr: '02.00.5e.10.00.01' }],
    {},
    'boxes.1.macAddr: the MAC address 02.00.5e.10.00.01 is already taken',
  ],
  ...['gateway', 'VVB000001'].map((username) => [
    `the login of another, ${username}`,
    [VIETQR_BOX],
    { vietqrBoxes: { ...VIETQR, login: { ...VIETQR.login, username } } },
    'vietqrBoxes.login.username',
  ]),
  [
    'a sample password where others reach the gateway',
    [VIETQR_BOX],
    { http: { host: '0.0.0.0', allowPlain: true }, adminToken: 'Zq8vT2mK5xW9bN4cR7yL1pF6' },
    'vietqrBoxes.login.password: is a sample',
  ],
  ['a text without the amount', [VIETQR_BOX], { vietqrBoxes: { ...VIETQR, paidMessage: 'paid' } }, '{amount}'],
] as [string, unknown[], Record<string, unknown>, string][])(
  'VQD-1 refuses a configuration with %s',
  (_what, boxes, more, problem) => {
    expect(() => parse(boxes, more)).toThrow(problem);
  },
);
