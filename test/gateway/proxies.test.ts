import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { MqttClient } from 'mqtt';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import { askFrom, basicOf, proxyBefore, proxyV2 } from '../support/callers.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { provisioned } from '../support/provisioned.ts';
import { BOX1, type TestGateway, testGateway } from './harness.ts';
import { loginAs } from './mqtt-login.ts';

const PROXY = '127.0.0.8';
const STRANGER = '198.51.100.6';
const CALLER = '198.51.100.7';
const TOKEN = 'Admin-Token-Of-A-Test-0123';
const portOf = (url: string | undefined) => Number(new URL(url ?? '').port);

/** A partner's login, whose secret is a word, through a proxy that names the caller; or from an address without one. */
async function login({ baseUrl }: TestGateway, from: string, forwarded: string | undefined, password = 'demo-secret') {
  const named = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
  const headers = { authorization: basicOf('demo', password), ...named };
  return (await askFrom(from, `${baseUrl}/api/token_generate`, { headers })).status;
}

const guess = async (ask: (n: number) => Promise<unknown>) => {
  for (let n = 0; n < 40; n += 1) await ask(n);
};

describe('X-Forwarded-For', () => {
  it('LIM-8 TOK-6 THR-35 of a trusted proxy says at whose address wrong logins count', async () => {
    const gateway = await testGateway({
      clock: new VirtualClock(),
      config: { mqtt: null, http: { port: 0, trustedProxies: [PROXY] } },
    });
    await guess((n) => login(gateway, PROXY, `203.0.113.${n}, ${STRANGER}`, 'wrong'));
    expect(await login(gateway, PROXY, STRANGER)).toBe(429);
    expect(await login(gateway, PROXY, CALLER)).toBe(200);
    expect(gateway.logged('request-refused').at(-1)).toMatchObject({ status: 429, address: STRANGER });
  });

  it('LIM-8 THR-35 of anybody else is not believed', async () => {
    const gateway = await testGateway({
      clock: new VirtualClock(),
      config: { mqtt: null, http: { port: 0, trustedProxies: [PROXY] } },
    });
    await guess((n) => login(gateway, '127.0.0.9', `203.0.113.${n}`, 'wrong'));
    expect(await login(gateway, '127.0.0.9', '203.0.113.99')).toBe(429);
    expect(await login(gateway, PROXY, '203.0.113.1')).toBe(200);
  });

  it('LIM-8 THR-29 a request through a trusted proxy is none of this machine, whatever it says or leaves out', async () => {
    const gateway = await testGateway({ config: { mqtt: null, http: { port: 0, trustedProxies: ['127.0.0.1'] } } });
    for (const path of ['/_mock/boxes', '/admin/v1/boxes']) {
      for (const headers of [{}, { 'x-forwarded-for': '127.0.0.1' }, { 'x-forwarded-for': '::1' }]) {
        const answer = await askFrom('127.0.0.1', `${gateway.origin}${path}`, { method: 'GET', headers });
        expect([path, headers, answer.status]).toEqual([path, headers, 401]);
        expect(answer.headers['x-paybox-reason']).toContain('through one of http.trustedProxies');
      }
      // Other programs of this machine are what they were.
      expect((await askFrom('127.0.0.2', `${gateway.origin}${path}`, { method: 'GET' })).status).toBe(200);
    }
  });
});

describe('the PROXY protocol in front of HTTP', () => {
  it('LIM-9 TOK-6 THR-35 says at whose address wrong logins count', async () => {
    const gateway = await testGateway({
      clock: new VirtualClock(),
      config: { mqtt: null, http: { port: 0, trustedProxies: [PROXY], proxyProtocol: true } },
    });
    const proxied = { ...gateway, baseUrl: `http://127.0.0.1:${await proxyBefore(portOf(gateway.origin), PROXY)}/vqr` };
    await guess(() => login(proxied, '127.0.0.9', undefined, 'wrong'));
    expect(await login(proxied, '127.0.0.9', undefined)).toBe(429);
    // A word of his own about where he is does not help.
    expect(await login(proxied, '127.0.0.9', '127.0.0.7')).toBe(429);
    expect(await login(proxied, '127.0.0.7', undefined)).toBe(200);
    expect(gateway.logged('request-refused').at(-1)).toMatchObject({ status: 429, address: '127.0.0.9' });
  });

  it('LIM-9 THR-29 what comes through it is none of this machine', async () => {
    const gateway = await testGateway({
      config: { mqtt: null, http: { port: 0, trustedProxies: ['127.0.0.1'], proxyProtocol: true } },
    });
    for (const header of [proxyV2({ source: '127.0.0.1' }), proxyV2({ command: 0x20 })]) {
      const answer = await exchange(gateway, '127.0.0.1', [header, Buffer.from(requestOf('/_mock/boxes'))]);
      expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    }
    expect(await exchange(gateway, '127.0.0.2', [Buffer.from(requestOf('/_mock/boxes'))])).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('LIM-9 takes the header in pieces, and what comes with it, also a long body', async () => {
    const gateway = await testGateway({
      config: { mqtt: null, http: { port: 0, trustedProxies: [PROXY], proxyProtocol: true }, adminToken: TOKEN },
    });
    const header = proxyV2({ source: CALLER, extra: Buffer.alloc(500) });
    const pieces = [header.subarray(0, 5), header.subarray(5, 20), header.subarray(20)];
    expect(await exchange(gateway, PROXY, [...pieces, Buffer.from(requestOf('/livez'))])).toMatch(/^HTTP\/1\.1 200 /);
    const body = JSON.stringify({ x: 'y'.repeat(60_000) });
    const post = `POST /vqr/api/qr/generate-customer HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
    const authorization = `Authorization: Bearer ${await gateway.token()}\r\nConnection: close\r\n`;
    const whole = Buffer.from(`${post}${authorization}Content-Length: ${body.length}\r\n\r\n${body}`);
    expect(await exchange(gateway, PROXY, [Buffer.concat([header, whole])])).toMatch(/^HTTP\/1\.1 400 .*E46/s);
  });

  it.each([
    ['a request without a header', Buffer.from(requestOf('/livez')), /expected the signature/],
    ['a header of version 1', Buffer.from('PROXY TCP4 1.2.3.4 127.0.0.1 1 2\r\n'), /expected the signature/],
    ['UDP', proxyV2({ family: 0x12, source: '1.2.3.4' }), /expected TCP/],
    ['a header without an end', proxyV2({ source: '1.2.3.4' }).subarray(0, 20), /ended in the middle/],
  ])('LIM-9 THR-35 closes what a trusted proxy begins with %s, and says why', async (_what, bytes, reason) => {
    const gateway = await testGateway({
      config: { mqtt: null, http: { port: 0, trustedProxies: [PROXY], proxyProtocol: true } },
    });
    expect(await exchange(gateway, PROXY, [bytes], true)).toBe('');
    const [line, ...more] = gateway.logged('proxy-header-refused');
    expect(line).toMatchObject({ address: PROXY, option: 'http', reason: expect.stringMatching(reason) });
    expect(more).toEqual([]);
  });

  it('LIM-9 closes a connection whose header does not come, after 5 s, and is not held up by it at its end', async () => {
    const clock = new VirtualClock();
    const gateway = await testGateway({
      clock,
      config: { mqtt: null, http: { port: 0, trustedProxies: [PROXY], proxyProtocol: true } },
    });
    const socket = await opened(gateway, PROXY);
    socket.write(proxyV2({ source: CALLER }).subarray(0, 10));
    await eventually('the wait', () => clock.sleeping().includes(5_000));
    await clock.advance(5_000);
    await eventually('the end', () => socket.closed);
    expect(gateway.logged('proxy-header-refused')).toMatchObject([{ reason: 'it was not complete within 5000 ms' }]);
    const other = await opened(gateway, PROXY);
    await eventually('the wait', () => clock.sleeping().includes(5_000));
    await gateway.close();
    await eventually('the end', () => other.closed);
    expect(gateway.logged('proxy-header-refused')).toHaveLength(1);
  });

  it('LIM-9 THR-35 of anybody else is no header', async () => {
    const gateway = await testGateway({
      config: { mqtt: null, http: { port: 0, trustedProxies: [PROXY], proxyProtocol: true } },
    });
    const header = proxyV2({ source: CALLER });
    expect(await exchange(gateway, '127.0.0.9', [header, Buffer.from(requestOf('/livez'))])).toMatch(
      /^HTTP\/1\.1 400 /,
    );
    expect(await exchange(gateway, '127.0.0.9', [Buffer.from(requestOf('/livez'))])).toMatch(/^HTTP\/1\.1 200 /);
    expect(gateway.logged('proxy-header-refused')).toEqual([]);
  });

  it('LIM-9 TLS-1 goes before TLS', async () => {
    const made = await provisioned();
    const tls = { cert: join(made.path, 'gateway/cert.pem'), key: join(made.path, 'gateway/key.pem') };
    const gateway = await testGateway({
      clock: new VirtualClock(),
      config: { mqtt: null, http: { port: 0, tls, trustedProxies: [PROXY], proxyProtocol: true } },
    });
    const ca = await readFile(join(made.path, 'ca.pem'));
    const port = await proxyBefore(portOf(gateway.origin), PROXY);
    const ask = (localAddress: string, password: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        const agent = new Agent({ ca, localAddress });
        const headers = { authorization: basicOf('demo', password) };
        request(`https://127.0.0.1:${port}/vqr/api/token_generate`, { method: 'POST', headers, agent }, (answer) => {
          resolve(answer.statusCode);
          answer.resume().once('end', () => agent.destroy());
        })
          .once('error', reject)
          .end();
      });
    await guess(() => ask('127.0.0.9', 'wrong'));
    expect([await ask('127.0.0.9', 'demo-secret'), await ask('127.0.0.7', 'demo-secret')]).toEqual([429, 200]);
  });
});

describe('the PROXY protocol in front of the embedded broker', () => {
  const config = {
    http: { port: 0, trustedProxies: [PROXY] },
    mqtt: { embedded: { port: 0, proxyProtocol: true } },
  };

  /** The answer of the broker to a wrong login: 4, or 3 once nothing is compared any more. */
  async function wrongLogin(port: number, localAddress: string): Promise<number | undefined> {
    const login = { username: 'nobody', password: 'wrong', protocolVersion: 4, reconnectPeriod: 0 } as const;
    const client = new MqttClient(() => connect({ port, host: '127.0.0.1', localAddress }), login);
    const code = new Promise<number | undefined>((resolve) => {
      client.once('error', (error) => resolve((error as { code?: number }).code));
    });
    client.connect();
    return code.finally(() => client.endAsync(true));
  }

  it('LIM-9 TOK-6 THR-35 says at whose address wrong logins count, also over HTTP; boxes come in through it', async () => {
    const gateway = await testGateway({ clock: new VirtualClock(), config });
    const port = await proxyBefore(portOf(gateway.mqttUrl), PROXY);
    await guess(() => wrongLogin(port, '127.0.0.9'));
    expect([await wrongLogin(port, '127.0.0.9'), await wrongLogin(port, '127.0.0.7')]).toEqual([3, 4]);
    expect(gateway.logged('mqtt-login-refused').at(-1)).toMatchObject({ address: '127.0.0.7' });
    expect(await login(gateway, PROXY, '127.0.0.9')).toBe(429);
    const mqttUrl = `mqtt://127.0.0.1:${port}`;
    const box = await connectFakeBox({ gateway: { ...gateway, mqttUrl }, identity: BOX1, transport: 'mqtt' });
    await gateway.generate();
    expect((await gateway.sendQr()).body).toMatchObject({ status: 'SUCCESS' });
    expect(box.of('show')).toHaveLength(1);
    // Others come without a proxy, as before.
    await loginAs(gateway, BOX1);
  });

  it('LIM-9 THR-35 closes what a trusted proxy begins without a header, and says why; a connection without a word is none', async () => {
    const gateway = await testGateway({ config });
    const at = { ...gateway, origin: (gateway.mqttUrl ?? '').replace('mqtt', 'http') };
    expect(await exchange(at, PROXY, [], true)).toBe('');
    expect(await exchange(at, PROXY, [proxyV2({ command: 0x20 })], true)).toBe('');
    const { client } = await loginAs({ mqttUrl: gateway.mqttUrl }, BOX1, {
      password: loginOf(BOX1.secret),
    });
    await client.endAsync(true);
    expect(await exchange(at, PROXY, [Buffer.from('101000044d515454', 'hex')], true)).toBe('');
    expect(gateway.logged('proxy-header-refused')).toMatchObject([{ address: PROXY, option: 'mqtt.embedded' }]);
  });
});

it.each<[config: object, problem: string]>([
  [{ http: { trustedProxies: ['proxy.example'] } }, 'http.trustedProxies.0: expected an IP address, or a network'],
  [{ http: { trustedProxies: ['0.0.0.0/0'] } }, 'http.trustedProxies.0: expected an IP address, or a network'],
  [{ http: { proxyProtocol: true } }, 'http.proxyProtocol: expected http.trustedProxies beside it'],
  [
    { mqtt: { embedded: { proxyProtocol: true } } },
    'mqtt.embedded.proxyProtocol: expected http.trustedProxies beside it',
  ],
])('LIM-8 LIM-9 a configuration with %j is refused by name', (config, problem) => {
  expect(() => parseGatewayConfig({ dataDir: 'data', ...config }, 'gateway.yaml')).toThrow(problem);
});

function requestOf(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`;
}

async function opened({ origin }: { origin: string }, from: string): Promise<Socket> {
  const socket = connect({ port: portOf(origin), host: '127.0.0.1', localAddress: from, noDelay: true });
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}

/** Sends these pieces, each by itself, and returns the whole answer. */
async function exchange(at: { origin: string }, from: string, pieces: Buffer[], ends = false): Promise<string> {
  const socket = await opened(at, from);
  const answer = text(socket).catch(() => '');
  for (const piece of pieces) await new Promise((resolve) => socket.write(piece, resolve));
  if (ends) socket.end();
  return answer;
}
