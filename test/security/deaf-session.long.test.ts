import { readFile } from 'node:fs/promises';
import { request as ask, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loginOf } from '../../src/protocol/keys.ts';
import { BOX_ALIVE_MS, unheardMaxMs } from '../../src/protocol/messages.ts';
import { boxTopic } from '../../src/protocol/topics.ts';
import { ACCOUNT, BOX1, type TestGateway, testGateway } from '../gateway/harness.ts';
import { loginAs } from '../gateway/mqtt-login.ts';
import { eventually } from '../support/net.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { HONEST } from './hostile-relay.ts';
import { DOWN, NOBODY, PRESENCE, pay, pushed, reported, SUCCESS, stage, UP } from './hostile-stage.ts';
import { plainly, startMosquitto } from './mosquitto.ts';
import { type RealBox, startRealBox } from './real-box.ts';

const { missing, note } = without(PROGRAMS.mosquitto);
/** A busy machine may be later than what is promised. */
const FOUND_OUT_MS = unheardMaxMs(BOX_ALIVE_MS) + 60_000;
const BACK_MS = 60_000;

interface Place {
  gateway: TestGateway;
  box: RealBox;
  mqttUrl: string;
  secret: string;
}

async function embedded(): Promise<Place> {
  const gateway = await testGateway({ callback: NOBODY });
  const mqttUrl = gateway.mqttUrl ?? '';
  const box = await startRealBox(BOX1, { transport: 'mqtt', url: mqttUrl });
  return { gateway, box, mqttUrl, secret: BOX1.secret };
}

async function mosquitto(): Promise<Place> {
  const { made, url } = await startMosquitto(plainly);
  const mqttUrl = url.replace('mqtts:', 'mqtt:');
  const password = /password: (\S+)/.exec(await readFile(`${made.path}/gateway/gateway.yaml`, 'utf8'))?.[1] ?? '';
  const { terminalCode, serialNumber, secret } = await made.box(1);
  const boxes = [{ terminalCode, serialNumber, secret, account: ACCOUNT.bankAccount }];
  const config = { boxes, mqtt: { url: mqttUrl, username: 'gateway', password } };
  const gateway = await testGateway({ config, callback: NOBODY });
  const box = await startRealBox({ terminalCode, serialNumber, secret }, { transport: 'mqtt', url: mqttUrl });
  return { gateway, box, mqttUrl, secret };
}

const logged = (gateway: TestGateway, event: string) => gateway.log.filter((it) => it.event === event);

describe.each([
  ['the embedded broker', embedded, false],
  [`Mosquitto${note}`, mosquitto, missing],
] as const)('whoever has the login of a box at %s', (_broker, open, isMissing) => {
  it.skipIf(isMissing)(
    'THR-26 PRE-3 an attacker silences a box by no presence message: pushes, payments and screen go on',
    async () => {
      const { gateway, box, mqttUrl, secret } = await open();
      const { terminalCode } = BOX1;
      const { client, received } = await loginAs({ mqttUrl }, { terminalCode, secret });
      await client.subscribeAsync(boxTopic(terminalCode, 'down'), { qos: 1 });
      expect(await pushed(gateway, 'FIRST')).toEqual(SUCCESS);
      const sealed = await eventually('what is said to the box', () => received.at(-1)?.payload);
      const { sessionId } = JSON.parse(Buffer.from(sealed.split('.')[1] ?? '', 'base64url').toString('utf8'));
      for (const retain of [false, true]) {
        const forged = JSON.stringify({ v: 1, online: false, sessionId, proof: loginOf(secret) });
        await client.publishAsync(boxTopic(terminalCode, 'presence'), forged, { qos: 1, retain });
        const unsigned = JSON.stringify({ v: 1, online: false, sessionId });
        await client.publishAsync(boxTopic(terminalCode, 'presence'), unsigned, { qos: 1, retain });
      }
      await eventually('the refusals', () => logged(gateway, 'message-refused').length === 4);
      expect(await pushed(gateway, 'SECOND')).toEqual(SUCCESS);
      expect(await pay(gateway, 'SECOND')).toMatchObject({ status: 'SUCCESS' });
      await eventually('paid', async () => (await box.status()).state === 'paid');
      expect(logged(gateway, 'box-disconnected')).toEqual([]);
      expect(box.log.filter((it) => it.event === 'link-lost')).toEqual([]);
    },
  );
});

it('THR-26 MSG-11 MSG-12 whoever runs the broker or a proxy is found out: a last will played too early, and swallowed messages', {
  timeout: 240_000,
}, async () => {
  // All at once: most of it is the time after which a box that hears nothing gives up.
  await Promise.all([playsTheLastWill(), swallowsAtTheBroker(), swallowsOverHttp()]);
});

/** The box says hello anew, and is told each payment once. */
async function playsTheLastWill(): Promise<void> {
  const { relay, gateway, box } = await stage();
  expect(await pushed(gateway, 'SHOWN')).toEqual(SUCCESS);
  await relay.inject(PRESENCE, relay.wills.get(BOX1.terminalCode) ?? '');
  await eventually('offline', () => logged(gateway, 'box-disconnected').length === 1);
  expect(await pay(gateway, 'SHOWN')).toMatchObject({ status: 'SUCCESS' });
  await eventually('another session', () => logged(gateway, 'box-connected').length === 2, FOUND_OUT_MS);
  await expectOnePayment(gateway, box);
  expect(await pushed(gateway, 'AFTER')).toEqual(SUCCESS);
}

/** The screen tells the truth, and payments come once. */
async function swallowsAtTheBroker(): Promise<void> {
  const { relay, gateway, box } = await stage(2_000);
  relay.rule = (message) => (message.topic === UP ? undefined : HONEST(message));
  await eventually('the box to show that it is not connected', () => isOffline(box), FOUND_OUT_MS);
  const screen = async () => (await fetch(`${box.origin}/screen.txt`)).text();
  await eventually('the screen to say so', async () => /Mất kết nối|Đang kết nối/i.test(await screen()));
  expect(box.log.filter((it) => it.event === 'link-lost').map((it) => it.reason)).toContainEqual(
    expect.stringContaining('heartbeat'),
  );
  expect(await pay(gateway, 'MEANWHILE')).toMatchObject({ status: 'SUCCESS' });
  relay.rule = HONEST;
  await eventually('the box to be back', async () => !(await isOffline(box)), BACK_MS);
  await expectOnePayment(gateway, box);
  expect(relay.messages(DOWN, 'payment').length).toBeGreaterThan(0);
}

/** A proxy that answers posts and delivers none. */
async function swallowsOverHttp(): Promise<void> {
  const gateway = await testGateway({ callback: NOBODY });
  const relay = await swallowingProxy(gateway.origin);
  const box = await startRealBox(BOX1, { transport: 'http', url: relay.url });
  relay.swallows = true;
  await eventually('offline over HTTP', () => isOffline(box), FOUND_OUT_MS);
  relay.swallows = false;
  await eventually('the box to be back over HTTP', async () => !(await isOffline(box)), BACK_MS);
  expect(await pushed(gateway, 'AFTER')).toEqual(SUCCESS);
}

const isOffline = async (box: RealBox) => !(await box.status()).online;

async function expectOnePayment(gateway: TestGateway, box: RealBox): Promise<void> {
  await eventually('paid', async () => (await box.status()).lastPayment !== null);
  await eventually('its report', async () => (await reported(gateway)).length === 1);
  expect(logged(gateway, 'payment-announced')).toHaveLength(1);
}

/** A proxy that passes streams on, and says of each post that it was taken. */
async function swallowingProxy(origin: string) {
  const proxy = { url: '', swallows: false };
  const server = createServer((request, response) => {
    if (proxy.swallows && request.method === 'POST') {
      request.resume().on('end', () => response.writeHead(202).end());
      return;
    }
    const { method = 'GET', headers, url = '' } = request;
    const passed = ask(`${origin}${url}`, { method, headers, agent: false });
    passed.on('error', () => response.destroy());
    passed.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      response.flushHeaders();
      answer.on('error', () => response.destroy()).pipe(response);
    });
    response.on('close', () => passed.destroy());
    request.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return proxy;
}
