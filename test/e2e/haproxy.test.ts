import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { generate, parser } from 'mqtt-packet';
import { describe, expect, it, onTestFinished } from 'vitest';
import { freePorts } from '../../src/bench/engine/free-ports.ts';
import { BOX1, type TestGateway, testGateway } from '../gateway/harness.ts';
import { askFrom, basicOf } from '../support/callers.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { start } from '../support/processes.ts';
import { findProgram, PROGRAMS, without } from '../support/programs.ts';

const { missing, note } = without(PROGRAMS.haproxy);
const [STRANGER, CALLER] = ['127.0.0.9', '127.0.0.7'];
const GUESSES = 40;
const hostOf = (url: string | undefined) => new URL(url ?? '').host;

/** A gateway behind HAProxy with `scripts/haproxy.cfg`, in which only the ports are others. */
async function behindHaproxy(): Promise<{ gateway: TestGateway; origin: string; mqttUrl: string }> {
  const [webPort = 0, brokerPort = 0] = await freePorts(2);
  const http = { port: 0, trustedProxies: ['127.0.0.1'] };
  const gateway = await testGateway({ config: { http, mqtt: { embedded: { port: 0, proxyProtocol: true } } } });
  const sample = await readFile(join(import.meta.dirname, '../../scripts/haproxy.cfg'), 'utf8');
  const [defaults = '', web = '', , embedded = ''] = sample.split(/^(?=frontend )/m);
  const config = [
    defaults,
    web
      .replace('127.0.0.1:8800', `127.0.0.1:${webPort}`)
      .replaceAll(/127\.0\.0\.1:880\d check/g, `${hostOf(gateway.origin)} check`),
    embedded.replace('127.0.0.1:18830', hostOf(gateway.mqttUrl)).replace('127.0.0.1:1883', `127.0.0.1:${brokerPort}`),
  ].join('');
  const file = join(await temporaryFolder(), 'haproxy.cfg');
  await writeFile(file, config);
  const running = start(findProgram(PROGRAMS.haproxy) ?? 'haproxy', ['-db', '-f', file]);
  onTestFinished(async () => void (await running.stop('SIGKILL')));
  const origin = `http://127.0.0.1:${webPort}`;
  await eventually('HAProxy', async () => {
    if (running.child.exitCode !== null) throw new Error(`HAProxy ended: ${running.output()}`);
    return (await fetch(`${origin}/livez`).catch(() => undefined))?.ok;
  });
  return { gateway, origin, mqttUrl: `mqtt://127.0.0.1:${brokerPort}` };
}

/** A wrong login over MQTT; what the broker answers. */
async function wrongMqttLogin(mqttUrl: string, from: string): Promise<number | undefined> {
  const socket = connect({ port: Number(new URL(mqttUrl).port), host: '127.0.0.1', localAddress: from });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined);
  const login = { cmd: 'connect', protocolId: 'MQTT', protocolVersion: 4, clean: true, keepalive: 60 } as const;
  socket.write(generate({ ...login, clientId: 'x', username: 'nobody', password: Buffer.from('wrong') }));
  const answers = parser();
  socket.on('data', (bytes) => void answers.parse(bytes));
  const [packet] = (await once(answers, 'packet')) as [{ returnCode?: number }];
  socket.destroy();
  return packet.returnCode;
}

describe.skipIf(missing)(`behind HAProxy, as scripts/haproxy.cfg has it${note}`, () => {
  it('LIM-8 TOK-6 THR-35 an attacker who guesses over HTTP shuts out only himself, and no box', async () => {
    const { gateway, origin, mqttUrl } = await behindHaproxy();
    const login = async (from: string, password: string, headers = {}) => {
      const given = { authorization: basicOf('demo', password), ...headers };
      return (await askFrom(from, `${origin}/vqr/api/token_generate`, { headers: given })).status;
    };
    for (let n = 0; n < GUESSES; n += 1) await login(STRANGER, `guess-${n}`, { 'x-forwarded-for': `203.0.113.${n}` });
    expect([await login(STRANGER, 'demo-secret'), await login(CALLER, 'demo-secret')]).toEqual([429, 200]);
    expect(gateway.logged('request-refused').at(-1)).toMatchObject({ status: 429, address: STRANGER });
    const box = await connectFakeBox({ gateway: { origin, mqttUrl }, identity: BOX1, transport: 'http' });
    await gateway.generate();
    expect((await gateway.sendQr()).body).toMatchObject({ status: 'SUCCESS' });
    expect(box.of('show')).toHaveLength(1);
  });

  it('LIM-8 THR-29 a stranger behind HAProxy is no program of the machine of HAProxy', async () => {
    const { origin } = await behindHaproxy();
    expect((await askFrom(STRANGER, `${origin}/_mock/boxes`, { method: 'GET' })).status).toBe(401);
  });

  it('LIM-9 TOK-6 THR-35 an attacker who guesses over MQTT shuts out only himself, as HAProxy names the caller by the PROXY protocol; the checks of HAProxy are no strangers', async () => {
    const { gateway, origin, mqttUrl } = await behindHaproxy();
    for (let n = 0; n < GUESSES; n += 1) await wrongMqttLogin(mqttUrl, STRANGER);
    expect([await wrongMqttLogin(mqttUrl, STRANGER), await wrongMqttLogin(mqttUrl, CALLER)]).toEqual([3, 4]);
    const box = await connectFakeBox({ gateway: { origin, mqttUrl }, identity: BOX1, transport: 'mqtt' });
    await gateway.generate();
    expect((await gateway.sendQr()).body).toMatchObject({ status: 'SUCCESS' });
    expect(box.of('show')).toHaveLength(1);
    const events = gateway.log.filter(({ level }) => level !== 'info').map(({ event }) => event);
    expect(new Set(events)).toEqual(new Set(['mqtt-login-refused', 'mqtt-connection-failed']));
    expect(gateway.logged('mqtt-connection-failed').every(({ client }) => client === 'x')).toBe(true);
  });
});
