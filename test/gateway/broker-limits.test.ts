import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { connectAsync, MqttClient } from 'mqtt';
import { generate, type Packet, parser } from 'mqtt-packet';
import { describe, expect, it, onTestFinished } from 'vitest';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import { boxTopic } from '../../src/protocol/topics.ts';
import { connectFakeBox, type FakeBoxIdentity } from '../support/fake-box.ts';
import { keptBytes } from '../support/memory.ts';
import { eventually } from '../support/net.ts';
import { bareBroker } from './bare-broker.ts';
import { BOX1, BOX2, BOX3, type TestGateway, testGateway } from './harness.ts';
import { loginAs } from './mqtt-login.ts';

const CONNECTIONS = 25;
const UNFINISHED = 999;
/** Far below what so many unfinished messages would take: they are 400 MB. */
const KEPT_BYTES_MAX = 100_000_000;
const PAYLOAD = Buffer.alloc(16_000, 'x');
const up = boxTopic(BOX1.terminalCode, 'up');
const portOf = ({ mqttUrl }: TestGateway) => Number(new URL(mqttUrl ?? '').port);

/** Logs in over a bare socket, and publishes what is never finished; whether the broker has ended it. */
function floodOfQos2(gateway: TestGateway): { isEnded: () => boolean; answers: string[] } {
  const socket = connect(portOf(gateway), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  let ended = false;
  const answers: string[] = [];
  socket
    .on('error', () => undefined)
    .once('close', () => {
      ended = true;
    });
  const read = parser().on('packet', ({ cmd }) => answers.push(cmd));
  socket.on('data', (chunk) => void read.parse(chunk));
  const login = { username: BOX1.terminalCode, password: Buffer.from(loginOf(BOX1.secret)) };
  const head = { cmd: 'connect', protocolId: 'MQTT', protocolVersion: 4, clean: true, keepalive: 60 } as const;
  const packets = function* () {
    yield generate({ ...head, ...login, clientId: crypto.randomUUID() } as Packet);
    for (let messageId = 1; messageId <= UNFINISHED; messageId += 1) {
      yield generate({ cmd: 'publish', topic: up, payload: PAYLOAD, qos: 2, messageId, dup: false, retain: false });
    }
  };
  Readable.from(packets())
    .on('error', () => undefined)
    .pipe(socket);
  return { isEnded: () => ended, answers };
}

describe('the embedded broker, of one box', () => {
  it('TOP-1 THR-27 the embedded broker stores nothing that is published with QoS 2, and ends who does', {
    timeout: 120_000,
  }, async () => {
    const gateway = await testGateway();
    const box = await connectFakeBox({ gateway, identity: BOX2, transport: 'mqtt' });
    const beforeBytes = keptBytes();
    const floods = Array.from({ length: CONNECTIONS }, () => floodOfQos2(gateway));
    await eventually('each to be ended', () => floods.every((it) => it.isEnded()), 60_000);
    expect(floods.flatMap((it) => it.answers)).not.toContain('pubrec');
    expect(gateway.logged('mqtt-publish-refused').map((it) => it.reason)).toContain('QoS 2');
    const keptMb = Math.round((keptBytes() - beforeBytes) / 1e6);
    process.stdout.write(`${CONNECTIONS} × ${UNFINISHED} unfinished publishes: ${keptMb} MB kept\n`);
    expect(keptMb).toBeLessThan(KEPT_BYTES_MAX / 1e6);
    const { terminalCode, serialNumber } = BOX2;
    expect((await gateway.sendQr({ terminalCode, serialNumber })).body.status).toBe('SUCCESS');
    expect(box.of('show')).toHaveLength(1);
  });

  it('TOP-3 the embedded broker refuses a last will with QoS 2', async () => {
    const gateway = await testGateway();
    const will = { topic: boxTopic(BOX1.terminalCode, 'presence'), payload: Buffer.from('{}'), qos: 2 as const };
    await expect(loginAs(gateway, BOX1, { will })).rejects.toThrow();
  });

  it('TOP-6 THR-18 THR-27 a box has eight connections at most, and one too many never ends the one in use', async () => {
    const gateway = await testGateway();
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    // The will of whoever has overheard the session says that it is this one.
    const payload = Buffer.from(JSON.stringify({ v: 1, online: true, sessionId: box.sessionId }));
    const will = { topic: boxTopic(BOX1.terminalCode, 'presence'), payload, qos: 1 as const, retain: true };
    const logins: Awaited<ReturnType<typeof loginAs>>[] = [];
    for (let n = 0; n < 30; n += 1) logins.push(await loginAs(gateway, BOX1, { will }));
    await eventually('all but seven to be ended', () => logins.filter((it) => it.client.connected).length === 7);
    expect((await gateway.sendQr()).body.status).toBe('SUCCESS');
    expect(box.of('show')).toHaveLength(1);
    expect(gateway.logged('box-disconnected')).toEqual([]);
    expect(gateway.logged('mqtt-connection-ended')).toHaveLength(23);
  });

  it('TOP-6 THR-18 one connection too many ends one of the address that has most: a box from another address gets in', async () => {
    const gateway = await testGateway();
    const strangers: MqttClient[] = [];
    for (let n = 0; n < 8; n += 1) strangers.push(await connectFrom(gateway, '127.0.0.9', BOX1));
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt', hello: false });
    for (let n = 0; n < 8; n += 1) strangers.push(await connectFrom(gateway, '127.0.0.9', BOX1));
    await box.hello();
    await box.next('welcome');
    expect(strangers.filter((it) => it.connected)).toHaveLength(7);
  });
});

/** A login that comes from an address of this machine of its own, as from another machine. */
async function connectFrom(gateway: TestGateway, localAddress: string, { terminalCode, secret }: FakeBoxIdentity) {
  const port = portOf(gateway);
  const client = new MqttClient(() => connect({ port, host: '127.0.0.1', localAddress }), {
    username: terminalCode,
    password: loginOf(secret),
    reconnectPeriod: 0,
    protocolVersion: 4,
  });
  onTestFinished(() => void client.end(true));
  const refused = new Promise<never>((_resolve, reject) => client.once('error', reject));
  client.on('error', () => undefined);
  await Promise.race([new Promise((resolve) => client.once('connect', resolve)), refused]);
  return client;
}

const codeOf = (login: Promise<unknown>) =>
  login.then(
    () => 0,
    (error: { code?: number }) => error.code,
  );

describe('guesses at the login of a box over MQTT', () => {
  it('TOK-6 THR-2 THR-35 guesses at a login over MQTT are refused from the 31st on, and keep no box out', async () => {
    const clock = new VirtualClock();
    const gateway = await testGateway({ clock });
    const wrong = { ...BOX1, secret: 'wrong' };
    // A box that has logged in from there before, behind the same address as the guesser.
    expect(await codeOf(connectFrom(gateway, '127.0.0.2', BOX2))).toBe(0);
    const codes: unknown[] = [];
    for (let n = 0; n < 31; n += 1) codes.push(await codeOf(connectFrom(gateway, '127.0.0.2', wrong)));
    expect(codes).toEqual([...Array<number>(30).fill(4), 3]);
    const line = { reason: 'too many wrong logins', address: '127.0.0.2' };
    expect(gateway.logged('mqtt-login-refused').at(-1)).toMatchObject(line);
    // The secrets of boxes have 128 bits: a right one is accepted all the same.
    for (const from of ['127.0.0.2', '127.0.0.3']) {
      for (const box of [BOX1, BOX2]) expect(await codeOf(connectFrom(gateway, from, box))).toBe(0);
    }
    const stranger = { ...BOX3, secret: 'wrong' };
    expect(await codeOf(connectFrom(gateway, '127.0.0.2', stranger))).toBe(3);
    await clock.advance(2_000);
    expect(await codeOf(connectFrom(gateway, '127.0.0.2', stranger))).toBe(4);
  });

  it('TOK-6 THR-2 guesses at a login over MQTT have one budget with those over HTTP', async () => {
    const gateway = await testGateway({ clock: new VirtualClock() });
    const authorization = `Basic ${Buffer.from(`${BOX1.terminalCode}:x`).toString('base64')}`;
    const guess = () => fetch(`${gateway.origin}/box/v1/stream`, { headers: { authorization } });
    for (let n = 0; n < 30; n += 1) expect((await guess()).status).toBe(401);
    expect(await codeOf(connectFrom(gateway, '127.0.0.1', { ...BOX1, secret: 'wrong' }))).toBe(3);
  });

  it('TOK-6 THR-2 guesses over MQTT keep no gateway from its own broker, whose name is worth nothing from outside', async () => {
    const { broker } = await bareBroker();
    const mqttUrl = broker.url;
    const posing = { terminalCode: broker.login.username, serialNumber: '', secret: 'x' };
    const right = () => connectAsync(mqttUrl, { ...broker.login, reconnectPeriod: 0 }, false);
    for (let n = 0; n < 130; n += 1) await codeOf(loginAs({ mqttUrl }, posing));
    expect(await codeOf(right())).toBe(3);
    const gateway = new MqttClient(() => broker.connect(), { ...broker.login, reconnectPeriod: 0 });
    onTestFinished(() => void gateway.end(true));
    await eventually('the gateway at its broker', () => gateway.connected);
    const fresh = await bareBroker();
    await expect(
      connectAsync(fresh.broker.url, { ...fresh.broker.login, reconnectPeriod: 0 }, false),
    ).rejects.toThrow();
  });
});
