import { writeFile } from 'node:fs/promises';
import { get } from 'node:https';
import { join } from 'node:path';
import { generate } from 'mqtt-packet';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parseAgentConfig } from '../../src/device/agent/config.ts';
import type { Connection, GatewayAddress, Transport } from '../../src/device/agent/contract.ts';
import { httpTransport } from '../../src/device/agent/transports/http.ts';
import { mqttTransport } from '../../src/device/agent/transports/mqtt.ts';
import { LINK_SCHEMES, TRANSPORTS } from '../../src/device/agent/transports/registry.ts';
import { type Credential, createAuthority, issue, type Purpose, validFor } from '../../src/device/setup/pki.ts';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { isExposed, isLoopbackHost, isTlsUrl } from '../../src/lib/tls.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import { type TestGateway, testGateway } from '../gateway/harness.ts';
import { lightHttp, lightMqtt } from '../support/light-transport.ts';
import { eventually } from '../support/net.ts';
import { openssl } from '../support/openssl.ts';
import { type AgentAt, startConfigured } from '../support/processes.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { provisioned } from '../support/provisioned.ts';
import { transportIo } from '../support/transport-io.ts';

type Made = Awaited<ReturnType<typeof provisioned>>;
const YEAR_MS = 366 * 86_400_000;
const CLIENT: Purpose = { kind: 'client' };
const HERE: Purpose = { kind: 'server', hosts: ['localhost', '127.0.0.1'] };
const ACCEPTED = Buffer.from([0x20, 2, 0, 0]);
const NOT_AUTHORIZED = Buffer.from([0x20, 2, 0, 5]);

/** A gateway with certificates of `made`, or with this one for its servers, and with the boxes of `made`. */
async function guardedGateway(made: Made, server?: Credential): Promise<TestGateway> {
  const files = { cert: join(made.path, 'gateway/cert.pem'), key: join(made.path, 'gateway/key.pem') };
  const tls = server === undefined ? files : await filesOf(made, 'server', server);
  const boxes = await Promise.all(([1, 2] as const).map((n) => made.box(n)));
  const known = boxes.map(({ terminalCode, serialNumber, secret }) => ({ terminalCode, serialNumber, secret }));
  const embedded = { port: 0, tls: { ...tls, clientCa: join(made.path, 'ca.pem') } };
  return testGateway({ config: { http: { port: 0, tls }, mqtt: { embedded }, boxes: known } });
}

async function filesOf({ path }: Made, name: string, { cert, key }: Credential) {
  const files = { cert: join(path, `${name}.pem`), key: join(path, `${name}-key.pem`) };
  await writeFile(files.cert, cert);
  await writeFile(files.key, key);
  return files;
}

/** What the broker answers to a login through `openssl s_client`, and what that says of the connection. */
async function loginBy(gateway: TestGateway, made: Made, who: 1 | 2, args: readonly string[]) {
  const { terminalCode, secret } = await made.box(who);
  const login = { cmd: 'connect', clientId: 'by-hand', keepalive: 60, protocolId: 'MQTT', protocolVersion: 4 } as const;
  const connect = generate({ ...login, clean: true, username: terminalCode, password: Buffer.from(loginOf(secret)) });
  const input = Buffer.concat([connect, generate({ cmd: 'disconnect' })]);
  const fixed = ['s_client', '-connect', new URL(gateway.mqttUrl ?? '').host, '-CAfile', join(made.path, 'ca.pem')];
  return openssl([...fixed, '-quiet', '-verify_return_error', ...args], input);
}

const shown = ({ cert, key }: { cert: string; key: string }) => ['-cert', cert, '-key', key];
const refusals = (gateway: TestGateway, event: string) => gateway.log.filter((it) => it.event === event);

const { missing, note } = without(PROGRAMS.openssl);

describe.skipIf(missing)(`the embedded broker over TLS, to openssl s_client${note}`, () => {
  it.each(['-tls1_2', '-tls1_3'])('TLS-3 lets a box in with its own certificate (%s)', async (version) => {
    const made = await provisioned();
    const gateway = await guardedGateway(made);
    const { out, errors } = await loginBy(gateway, made, 1, [version, ...shown((await made.box(1)).files)]);
    expect(out, errors).toEqual(ACCEPTED);
    expect(refusals(gateway, 'mqtt-handshake-refused')).toEqual([]);
  });

  it.each<[string, (made: Made) => Promise<string[]>]>([
    ['without a certificate', async () => []],
    ["with another authority's certificate in its name", (made) => madeBy(made, otherAuthority, CLIENT)],
    ['with a certificate that has run out', (made) => madeBy(made, made.authority, CLIENT, -2)],
    ["with a server's certificate", (made) => madeBy(made, made.authority, HERE)],
    ['with TLS 1.1', async (made) => ['-tls1_1', '-cipher', 'ALL:@SECLEVEL=0', ...shown((await made.box(1)).files)]],
    ['with CBC', async (made) => ['-tls1_2', '-cipher', 'ECDHE-ECDSA-AES128-SHA', ...shown((await made.box(1)).files)]],
  ])('TLS-3 THR-12 refuses the handshake of a stranger who knows the secret of a box, %s', async (_how, args) => {
    const made = await provisioned();
    const gateway = await guardedGateway(made);
    const { out } = await loginBy(gateway, made, 1, await args(made));
    expect(out.toString('hex')).toBe('');
    await eventually('the log', () => refusals(gateway, 'mqtt-handshake-refused').length === 1);
    expect(refusals(gateway, 'mqtt-login-refused')).toEqual([]);
  });

  it("THR the embedded broker refuses a box that knows another's secret under its own certificate, by name", async () => {
    const made = await provisioned();
    const gateway = await guardedGateway(made);
    const { out } = await loginBy(gateway, made, 1, shown((await made.box(2)).files));
    expect(out).toEqual(NOT_AUTHORIZED);
    expect(refusals(gateway, 'mqtt-login-refused')).toMatchObject([
      { box: 'VVB000001', reason: 'the certificate is that of VVB000002' },
    ]);
  });

  it('TLS-1 THR-11 the embedded broker with TLS answers nobody without TLS', async () => {
    const made = await provisioned();
    const gateway = await guardedGateway(made);
    const plain = (gateway.mqttUrl ?? '').replace('mqtts:', 'mqtt:');
    await expect(open(mqttTransport, made, { url: plain })).rejects.toThrow();
  });
});

async function madeBy(made: Made, authority: (made: Made) => Promise<Credential>, purpose: Purpose, years = 0) {
  const validity = validFor(Date.now() + years * YEAR_MS, 1);
  return shown(await filesOf(made, 'other', await issue(await authority(made), 'VVB000001', purpose, validity)));
}

async function otherAuthority(): Promise<Credential> {
  return createAuthority('elsewhere', validFor(Date.now(), 1));
}

/** Box 1's session by a transport, with its files where the address has TLS. */
async function open<T extends GatewayAddress>(
  transport: Transport<T>,
  made: Made,
  options: { url: string; tls?: Record<string, string> },
): Promise<Connection> {
  const { files, secret, terminalCode, serialNumber } = await made.box(1);
  const tls = /^(https|mqtts):/.test(options.url) ? { tls: { ...files, ...options.tls } } : {};
  const parsed = transport.options.parse({ connectTimeoutMs: 20_000, ...options, ...tls });
  const io = transportIo({ identity: { terminalCode, serialNumber, secret } });
  const session = await transport.open(parsed, io, new AbortController().signal);
  onTestFinished(() => session.close());
  return session;
}

describe.each<[string, Transport<GatewayAddress>, (gateway: TestGateway) => string]>([
  ['mqtts', mqttTransport, (gateway) => gateway.mqttUrl ?? ''],
  ['mqtts with a light client', lightMqtt, (gateway) => gateway.mqttUrl ?? ''],
  ['https', httpTransport, (gateway) => gateway.origin],
  ['https with the sockets of light boxes', lightHttp, (gateway) => gateway.origin],
])('a box over %s', (_scheme, transport, urlOf) => {
  it('TLS-2 a box reaches its gateway by every name in its certificate', async () => {
    const made = await provisioned();
    const url = urlOf(await guardedGateway(made));
    await open(transport, made, { url });
    await open(transport, made, { url: url.replace('127.0.0.1', 'localhost') });
  });

  it.each<[string, Purpose, number, (made: Made) => Promise<Credential>, RegExp]>([
    [
      'of another host',
      { kind: 'server', hosts: ['gateway.example'] },
      0,
      (made) => made.authority(),
      /link\.url: it must/,
    ],
    ['of another authority', HERE, 0, otherAuthority, /link\.tls\.ca/],
    ['that has run out', HERE, -2, (made) => made.authority(), /clock/],
    ['that does not hold yet', HERE, 2, (made) => made.authority(), /clock/],
    ['of a box', CLIENT, 0, (made) => made.authority(), /./],
  ])('TLS-2 THR-13 takes no gateway with a certificate %s', async (_what, purpose, years, authority, fix) => {
    const made = await provisioned();
    const validity = validFor(Date.now() + years * YEAR_MS, 1);
    const server = await issue(await authority(made), '127.0.0.1', purpose, validity);
    const gateway = await guardedGateway(made, server);
    const error: unknown = await open(transport, made, { url: urlOf(gateway) }).catch((it: unknown) => it);
    expect(error).toMatchObject({ code: 'PEER_MISSING', fix: expect.stringMatching(fix) });
    expect(refusals(gateway, 'box-connected')).toEqual([]);
  });

  it('a box accepts the name that its configuration gives for that of the address', async () => {
    const made = await provisioned();
    const purpose: Purpose = { kind: 'server', hosts: ['gateway.example'] };
    const server = await issue(await made.authority(), 'gateway.example', purpose, validFor(Date.now(), 1));
    const url = urlOf(await guardedGateway(made, server));
    await open(transport, made, { url, tls: { servername: 'gateway.example' } });
  });

  it('a box names a file that is not there, and uses it once it is', async () => {
    const made = await provisioned();
    const url = urlOf(await guardedGateway(made));
    const ca = join(made.path, 'later.pem');
    await expect(open(transport, made, { url, tls: { ca } })).rejects.toThrow(/link\.tls\.ca: cannot be read: .*later/);
    await writeFile(ca, await made.text('ca.pem'));
    await open(transport, made, { url, tls: { ca } });
  });
});

describe('the HTTPS of a gateway', () => {
  it.skipIf(missing)(
    `TLS-1 THR-11 the HTTPS of a gateway answers over TLS 1.2 and 1.3 only, and nothing without TLS${note}`,
    async () => {
      const made = await provisioned();
      const gateway = await guardedGateway(made);
      expect(gateway.baseUrl).toMatch(/^https:/);
      const { host, port } = new URL(gateway.origin);
      const fixed = [
        's_client',
        '-connect',
        host,
        '-CAfile',
        join(made.path, 'ca.pem'),
        '-quiet',
        '-verify_return_error',
      ];
      const request = `GET /healthz HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
      const answerTo = async (...args: string[]) =>
        String((await openssl([...fixed, '-ign_eof', ...args], request)).out);
      expect(await answerTo('-tls1_3')).toMatch(/^HTTP\/1\.1 200/);
      expect(await answerTo('-tls1_2')).toMatch(/^HTTP\/1\.1 200/);
      expect(await answerTo('-tls1_1', '-cipher', 'ALL:@SECLEVEL=0')).toBe('');
      const plainly = await fetch(`http://127.0.0.1:${port}/healthz`).then(
        (it) => it.status,
        () => 'nothing',
      );
      expect(plainly).not.toBe(200);
    },
  );

  it('the HTTPS of a gateway is the scheme of every address that it prints', async () => {
    const made = await provisioned();
    const gateway = await guardedGateway(made);
    const ca = await made.text('ca.pem');
    const text = await new Promise<string>((resolve, reject) => {
      get(`${gateway.origin}/openapi.json`, { ca }, (answer) => {
        const parts: string[] = [];
        answer.on('data', (part: Buffer) => parts.push(String(part)));
        answer.on('end', () => resolve(parts.join('')));
      }).on('error', reject);
    });
    expect(text).not.toContain('"url":"http:');
  });
});

describe('a connection without TLS', () => {
  const box = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' };
  const agent = (link: object) => () => parseAgentConfig({ box, link, dataDir: 'data' }, 'box.yaml');
  const gateway = (config: object) => () => parseGatewayConfig({ dataDir: 'data', ...config }, 'gateway.yaml');

  it.each([
    { transport: 'mqtt', url: 'mqtt://broker.example' },
    { transport: 'mqtt', url: 'ws://192.168.1.2:9001' },
    { transport: 'http', url: 'http://10.0.0.1:8800' },
    { transport: 'http', url: 'http://127.0.0.1.example' },
    { transport: 'http', url: 'http://localhost.example' },
    { transport: 'http', url: 'http://[2001:db8::1]:8800' },
  ])('TLS-1 THR-11 is none that a box makes beyond its own machine: $url', (link) => {
    expect(agent(link)).toThrow(/link\.url: expected an address with TLS .* allowPlain: true/);
    expect(agent({ ...link, allowPlain: true })).not.toThrow();
  });

  it.each([
    { transport: 'mqtt', url: 'mqtt://localhost' },
    { transport: 'mqtt', url: 'ws://127.0.0.2:9001' },
    { transport: 'http', url: 'http://[::1]:8800' },
    { transport: 'mqtt', url: 'mqtts://broker.example' },
    { transport: 'http', url: 'https://gateway.example' },
  ])('is one that a box may make, or has TLS: $url', (link) => {
    expect(agent(link)).not.toThrow();
  });

  it('a connection without TLS has no certificates', () => {
    expect(agent({ transport: 'mqtt', url: 'mqtt://127.0.0.1', tls: { ca: 'ca.pem' } })).toThrow(
      /link\.tls: expected only/,
    );
    const half = { transport: 'mqtt', url: 'mqtts://a.example', tls: { cert: 'cert.pem' } };
    expect(agent(half)).toThrow(/link\.tls: expected cert and key together/);
    const tls = { ca: 'ca.pem' };
    for (const where of [{ url: 'mqtt://127.0.0.1' }, { embedded: {} }]) {
      expect(gateway({ mqtt: { ...where, tls } })).toThrow(/mqtt\.tls: expected only beside a url with TLS/);
    }
  });

  it.each<[string, object]>([
    ['http.host', { http: { host: '0.0.0.0' } }],
    ['http.host', { http: { host: '::' } }],
    ['mqtt.embedded.host', { mqtt: { embedded: { host: '192.168.1.2' } } }],
    ['mqtt.url', { mqtt: { url: 'mqtt://broker.example' } }],
  ])('TLS-1 THR-11 is none that a gateway takes or makes beyond its own machine: %s', (path, config) => {
    expect(gateway(config)).toThrow(new RegExp(`${path}: expected .* allowPlain: true`));
    const [key = '', value] = Object.entries(config)[0] ?? [];
    const allowed = path.startsWith('mqtt.embedded')
      ? { mqtt: { embedded: { ...value.embedded, allowPlain: true } } }
      : { [key]: { ...value, allowPlain: true } };
    expect(gateway(allowed)).not.toThrow();
  });

  it('TLS-1 a box logs an allowed connection without TLS and shows it in its status', async () => {
    // An address of documentation, where nobody is.
    const link = { transport: 'http', url: 'http://192.0.2.1:8800', allowPlain: true };
    const displays = [{ driver: 'png', path: 'screen.png' }];
    const config = { box, link, displays, http: { port: 0 }, dataDir: 'data' };
    const { running, at } = await startConfigured<AgentAt>('agent', config);
    const status = (await (await fetch(`${at.boxUrl}/status`)).json()) as { link: unknown };
    expect(status.link).toMatchObject({ gateway: link.url, plain: true });
    expect(running.output()).toMatch(/"event":"link-not-encrypted","gateway":"http:\/\/192\.0\.2\.1:8800"/);
  });

  it.each([...TRANSPORTS.values()])(
    'TLS-1 a connection without TLS is refused by the transport $name',
    async ({ name, schemes, example, ownLogin }) => {
      const names = { terminalCode: 'VVB000001', serialNumber: 'VVB900001' };
      const box = ownLogin === undefined ? { ...names, secret: 'Sample-box-secret-known-to-all' } : names;
      const config = (url: string) => ({ box, link: { ...example, transport: name, url }, dataDir: 'data' });
      for (const url of Object.keys(schemes).map((scheme) => `${scheme}://gateway.example`)) {
        const parsed = () => parseAgentConfig(config(url), 'box.yaml');
        if (isTlsUrl(url, schemes)) expect(parsed().link.transport).toBe(name);
        else expect(parsed).toThrow(/allowPlain/);
      }
    },
  );

  it('a connection without TLS to another machine differs from one that stays on this machine', () => {
    const exposed = (url: string) => isExposed(url, LINK_SCHEMES);
    expect(['127.0.0.1', '127.9.9.9', '::1', '[::1]', 'LOCALHOST'].map(isLoopbackHost)).toEqual(Array(5).fill(true));
    expect(['0.0.0.0', '::', '10.0.0.1', '128.0.0.1', 'localhost.', '127.0.0.1.nip.io'].map(isLoopbackHost)).toEqual(
      Array(6).fill(false),
    );
    expect(['https://a.example', 'mqtts://a.example', 'memory:', 'no address'].map(exposed)).toEqual(
      Array(4).fill(false),
    );
    // A transport may have a scheme that nobody knows to be encrypted.
    expect(['http://a.example', 'tunnel://a.example', 'ws://a.example'].map(exposed)).toEqual([true, true, true]);
  });
});
