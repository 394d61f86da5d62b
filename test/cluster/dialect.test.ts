import { connectAsync } from 'mqtt';
import { expect, it, onTestFinished } from 'vitest';
import { GATEWAY_LOGIN } from '../../src/device/setup/brokers.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { paidTopic } from '../../src/protocol/dialect.ts';
import { newSecret } from '../../src/protocol/secret.ts';
import { dialectGateway, firmware, LOGIN, TO_IT, VIETQR } from '../gateway/dialect/support.ts';
import { partnerServer, processed, qrFor } from '../gateway/harness.ts';
import { brokerOfLanes, LANES_PASSWORD } from '../gateway/lanes-fixture.ts';
import { eventually } from '../support/net.ts';
import { startPostgres } from '../support/postgres.ts';

const pushOf = (orderId: string) => ({ ...TO_IT, orderId, content: orderId, qrCode: qrFor({ purpose: orderId }) });
const SUCCESS = { status: 'SUCCESS', message: '' };

it('VQD-5 VQD-6 VQD-7 SHA-5 one gateway serves the boxes of the dialect for all, and another takes over', async () => {
  const databaseUrl = await (await startPostgres()).database();
  const url = await brokerOfLanes('mosquitto', { [VIETQR.login.username]: VIETQR.login.password });
  const mqtt = { url, username: GATEWAY_LOGIN, password: LANES_PASSWORD };
  const adminToken = newSecret(systemRandom);
  const callback = { url: (await partnerServer(processed)).url };
  const start = (name: string) =>
    dialectGateway({ callback, config: { databaseUrl, mqtt, adminToken, cluster: { name } } });
  const [a, b] = [await start('a'), await start('b')];
  const host = await connectAsync(url, LOGIN);
  onTestFinished(() => host.endAsync(true));
  const told: string[] = [];
  host.on('message', (_topic, payload) => told.push(JSON.parse(String(payload)).content));
  await host.subscribeAsync(paidTopic(TO_IT.terminalCode), { qos: 1 });

  const box = firmware({ mqttUrl: url });
  await eventually('its session', () => a.logged('box-connected').length === 1);
  for (const [gateway, orderId] of [
    [a, 'DH001'],
    [b, 'DH002'],
  ] as const) {
    expect((await gateway.sendQr(pushOf(orderId))).body).toEqual(SUCCESS);
    await eventually('its QR', () => box.screen.qrCode === qrFor({ purpose: orderId }));
    // The payment arrives at the other gateway.
    expect((await (gateway === a ? b : a).testCallback({ content: orderId })).status).toBe(200);
    await eventually('the host', () => told.includes(orderId));
  }
  await eventually('both payments', () => box.spoken.length === 2);
  expect(b.logged('box-connected')).toEqual([]);

  expect((await b.sendQr(pushOf('DH003'))).body).toEqual(SUCCESS);
  await a.close();
  await eventually('its session at the other', () => b.logged('box-connected').length === 1);
  await eventually('its QR again', () => box.screen.qrCode === qrFor({ purpose: 'DH003' }));
  expect((await b.testCallback({ content: 'DH003' })).status).toBe(200);
  await eventually('the third payment', () => box.spoken.length === 3);
  expect((await b.sendQr(pushOf('DH004'))).body).toEqual(SUCCESS);
  expect([told, box.types().filter((it) => it === 'N05').length]).toEqual([['DH001', 'DH002', 'DH003'], 3]);
});
