import { createServer } from 'node:http';
import { type AddressInfo, isIP, type LookupFunction } from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, expect, it, onTestFinished } from 'vitest';
import { destinationProblem } from '../../src/gateway/config/callback-destination.ts';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { createPost } from '../../src/gateway/money/callbacks/attempt.ts';
import { ConfigError } from '../../src/lib/errors.ts';
import { webhookProblem } from '../../src/protocol/webhook.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { testGateway } from './harness.ts';

const OWN_PORT = 8800;
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const never = new AbortController().signal;

/** A partner on this machine that counts who comes. */
async function partner(answer = 200) {
  const seen: { headers: Record<string, string | string[] | undefined>; body: string; atMs: number }[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    seen.push({ headers: request.headers, body: Buffer.concat(chunks).toString(), atMs: Date.now() });
    response.statusCode = seen.length === 1 ? answer : 200;
    response.end('{}');
  });
  let connections = 0;
  server.on('connection', () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { port: (server.address() as AddressInfo).port, seen, connections: () => connections };
}

/** A name server that answers as told, one answer after the other. */
function resolver(...answers: string[][]) {
  const asked: string[] = [];
  const lookup: LookupFunction = (hostname, _options, callback) => {
    const answer = answers[Math.min(asked.length, answers.length - 1)] ?? [];
    asked.push(hostname);
    callback(
      null,
      answer.map((address) => ({ address, family: isIP(address) })),
    );
  };
  return { asked, lookup };
}

describe('a callback does not go to', () => {
  const own = Object.values(networkInterfaces())
    .flatMap((it) => it ?? [])
    .map((it) => it.address)
    .filter((it) => !it.startsWith('fe80'));

  it.each([
    '169.254.169.254',
    '169.254.0.1',
    '::ffff:169.254.169.254',
    '::ffff:a9fe:a9fe',
    '64:ff9b::a9fe:a9fe',
    'fe80::1',
    'febf::1',
    'fd00:ec2::254',
    'fd20:ce::254',
    'fd00:c1::a9fe:a9fe',
    'fd00:42::42',
    '100.100.100.200',
    '192.0.0.192',
    '168.63.129.16',
    '::ffff:100.100.100.200',
    '::ffff:c000:c0',
    '64:ff9b::100.100.100.200',
    '64:ff9b::c000:c0',
    '64:ff9b:1::a83f:8110',
    '::ffff:0:a83f:8110',
    '::169.254.169.254',
    '2002:a9fe:a9fe::1',
    '2002:6464:64c8:1::5',
    '224.0.0.1',
    '255.255.255.255',
    '64:ff9b::e000:1',
    'ff02::1',
  ])('SYN-7 THR-8 the link-local, metadata or multicast address %s, at any port', (address) => {
    for (const port of [80, 443, OWN_PORT]) expect(destinationProblem(address, port, new Set())).toContain(address);
  });

  // The registries of special-purpose addresses of IANA, first and last address of each network.
  it.each([
    ...['192.0.0.0', '192.0.0.255', '192.0.2.1', '198.51.100.255', '203.0.113.0', '198.18.0.0', '198.19.255.255'],
    ...['192.31.196.1', '192.52.193.255', '192.88.99.1', '192.175.48.1', '240.0.0.1', '255.255.255.255'],
    ...['fec0::', 'fec0::1', 'feff:ffff::1', '100::1', '100:0:0:1::1', '5f00::1', '3fff::1', '3fff:fff::1'],
    ...['2001:db8::1', '2001:db8:ffff::1', '2001::1', '2001:0:4136:e378:8000:63bf:3fff:fdd2', '2001:1::1', '2001:2::1'],
    ...['2001:3::1', '2001:4:112::1', '2001:10::1', '2001:20::1', '2001:30::1', '2001:1ff::1', '2620:4f:8000::1'],
    ...[
      '::2',
      '::8.8.8.8',
      '::10.0.0.1',
      '::ffff:0:8.8.8.8',
      '::ffff:0:10.0.0.1',
      '64:ff9b:1::8.8.8.8',
      '64:ff9b:1:2::1',
    ],
    ...[
      '64:ff9b::10.0.0.1',
      '64:ff9b::172.16.0.1',
      '64:ff9b::192.168.1.1',
      '64:ff9b::100.64.0.1',
      '64:ff9b::127.0.0.1',
    ],
    ...[
      '64:ff9b::0.0.0.0',
      '64:ff9b::192.0.2.1',
      '2002:a00:1::1',
      '2002:c0a8:101::1',
      '2002:7f00:1::1',
      '2002:c000:201::',
    ],
    ...[
      '::ffff:192.0.2.1',
      '::ffff:198.18.0.1',
      '::ffff:c633:6401',
      'fe80::1%lo',
      'fe80::1%eth0',
      '4000::1',
      'fe00::1',
    ],
  ])('SYN-7 THR-8 the special address %s, at any port', (address) => {
    for (const port of [80, 443, OWN_PORT]) expect(destinationProblem(address, port, new Set())).toContain(address);
  });

  it.each(['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1', '0.0.0.0', '::', '::ffff:0.0.0.0', ...own])(
    'the port of the gateway at %s, but to any other port there',
    (address) => {
      expect(destinationProblem(address, OWN_PORT, new Set([OWN_PORT]))).toContain('the gateway itself');
      expect(destinationProblem(address, 3000, new Set([OWN_PORT]))).toBeUndefined();
    },
  );

  it.each(own.filter((it) => isIP(it) === 4 && !it.startsWith('127.')))(
    'SYN-7 the port of the gateway at %s of its own, as IPv6 writes it',
    (address) => {
      const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
      const hex = `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
      for (const written of [`::ffff:${address}`, `::ffff:${hex}`, `0:0:0:0:0:ffff:${hex}`]) {
        expect(destinationProblem(written, OWN_PORT, new Set([OWN_PORT]))).toContain('the gateway itself');
      }
    },
  );

  it.each([
    ...['10.0.0.1', '172.16.0.1', '192.168.1.2', '100.64.0.1', '::ffff:10.0.0.1', 'fc00::1', 'fd12::1', 'fdff::1'],
    ...['8.8.8.8', '::ffff:8.8.8.8', '2606:4700::1', '2001:200::1', '2a00::1', '3ffe::1', '1.1.1.1', '223.255.255.255'],
    ...['100.100.100.201', '168.63.129.17', '64:ff9b::808:808', '2002:808:808::1', 'fd20:ce::255', '192.0.1.1'],
    ...['198.17.255.255', '198.20.0.0', '192.88.98.1', '172.32.0.1'],
  ])('but may go to %s', (address) => {
    expect(destinationProblem(address, OWN_PORT, new Set([OWN_PORT]))).toBeUndefined();
  });

  it.each([
    'http://169.254.169.254/latest/meta-data/',
    'http://2852039166/',
    'http://0xa9.0xfe.169.254/',
    'http://[fe80::1]/',
    'http://[::ffff:169.254.169.254]/',
    'http://100.100.100.200/latest/meta-data/',
    'http://[fd20:ce::254]/computeMetadata/v1/',
  ])('%s, whatever it is written like: neither configured nor attempted', async (url) => {
    const config = { dataDir: 'x', partners: [{ username: 'demo', password: 'x', callback: { url } }] };
    expect(() => parseGatewayConfig(config, 'test')).toThrow(ConfigError);
    expect(() => parseGatewayConfig(config, 'test')).toThrow(
      /partners\.0\.callback\.url: expected the address of a partner/,
    );
    const { lookup, asked } = resolver([]);
    await expect(createPost({ ownPorts: new Set(), lookup: () => lookup })(url, {}, '{}', never)).rejects.toThrow(
      'is not allowed',
    );
    expect(asked).toEqual([]);
  });

  it.each([
    'http://127.0.0.1:8800/x',
    'http://localhost:8800/',
    'http://localhost.:18830/',
    'http://[::1]:8800/',
    'http://0.0.0.0:8800/',
  ])('the gateway that is configured: %s, as its own url or as that of its token', (url) => {
    const problemWith = (callback: object) => () =>
      parseGatewayConfig({ dataDir: 'x', partners: [{ username: 'demo', password: 'x', callback }] }, 'test');
    expect(problemWith({ url })).toThrow(/partners\.0\.callback\.url: .*not of the gateway/);
    const auth = { kind: 'token', url, username: 'u', password: 'p' };
    expect(problemWith({ url: 'http://partner.example/', auth })).toThrow(/callback\.auth\.url: .*not of the gateway/);
    expect(problemWith({ url: 'http://127.0.0.1:3000/' })).not.toThrow();
  });

  it('SYN-7 THR-8 a callback does not go to a name with such an address among its own', async () => {
    const { port, connections } = await partner();
    for (const addresses of [['169.254.169.254'], ['127.0.0.1', '169.254.169.254'], ['fe80::1']]) {
      const { lookup } = resolver(addresses);
      const sent = createPost({ ownPorts: new Set(), lookup: () => lookup })(
        `http://rebound.example:${port}/`,
        {},
        '{}',
        never,
      );
      await expect(sent).rejects.toThrow(/^rebound\.example is not allowed: .* link-local/);
    }
    const { lookup } = resolver(['127.0.0.1']);
    const sent = createPost({ ownPorts: new Set([port]), lookup: () => lookup })(
      `http://rebound.example:${port}/`,
      {},
      '{}',
      never,
    );
    await expect(sent).rejects.toThrow('the gateway itself');
    expect(connections()).toBe(0);
  });

  it('SYN-7 THR-8 a callback goes to no other address than the one that was checked', async () => {
    const { port, seen } = await partner();
    const { lookup, asked } = resolver(['127.0.0.1'], ['169.254.169.254']);
    const url = `http://rebound.example:${port}/`;
    const post = createPost({ ownPorts: new Set(), lookup: () => lookup });
    expect(await post(url, {}, '{}', never)).toMatchObject({ status: 200 });
    expect([asked, seen.length, seen[0]?.headers.host]).toEqual([['rebound.example'], 1, `rebound.example:${port}`]);
    await expect(post(url, {}, '{}', never)).rejects.toThrow('link-local');
  });

  it('SYN-7 THR-8 a callback does not go to the gateway itself, when it was stored for a port that the gateway has opened since', async () => {
    const [dataDir, port] = [await temporaryFolder(), await freePort()];
    const config = { mqtt: null, callbackRetryWaitsMs: [0, 0, 60_000] };
    const options = { dataDir, callback: { url: `http://127.0.0.1:${port}/_mock/orders/DH001/pay` } };
    const first = await testGateway({ ...options, config: { ...config, callbackRetryWaitsMs: [60_000, 60_000] } });
    await first.testCallback();
    const attempts = (gateway: typeof first, count: number) =>
      eventually(`${count} attempts`, async () => {
        const [it] = await gateway.mock<{ attempts: { error: string | null }[] }[]>('/callbacks');
        return it !== undefined && it.attempts.length >= count && it.attempts;
      });
    await attempts(first, 1);
    await first.close();
    const again = await testGateway({ dataDir, config: { ...config, http: { port } } });
    const [callback] = await again.mock<{ id: string }[]>('/callbacks');
    await again.mock(`/callbacks/${callback?.id}/resend`, 'POST');
    const errors = (await attempts(again, 2)).map((it) => it.error);
    expect(errors[1]).toBe(`127.0.0.1:${port} is not allowed: 127.0.0.1 port ${port} is the gateway itself`);
    expect(again.refusals()).toEqual([]);
  });
});

describe('a callback is signed', () => {
  it('SYN-8 THR-9 a callback is signed with the same id and another time at every attempt, where the partner has a signing secret', async () => {
    const { port, seen } = await partner(500);
    const callback = { url: `http://127.0.0.1:${port}/`, auth: { kind: 'bearer', token: 'b' }, signingSecret: SECRET };
    const gateway = await testGateway({ callback, config: { mqtt: null, callbackRetryWaitsMs: [1100] } });
    await gateway.testCallback();
    await eventually('two attempts', () => seen.length === 2);
    for (const { headers, body, atMs } of seen) {
      expect(webhookProblem(SECRET, headers, body, atMs)).toBeUndefined();
      expect(headers.authorization).toBe('Bearer b');
    }
    const [first, second] = seen;
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    expect(second?.headers['webhook-timestamp']).not.toBe(first?.headers['webhook-timestamp']);
    const [kept] = await eventually('the attempt', async () => {
      const [it] = await gateway.mock<{ attempts: { request: { headers: object } }[] }[]>('/callbacks');
      return it?.attempts.length === 2 && it.attempts;
    });
    expect(kept?.request.headers).toMatchObject({ 'webhook-id': first?.headers['webhook-id'] });
    expect(JSON.stringify(gateway.log)).not.toContain(SECRET);
  });

  it('SYN-8 a callback is signed only where the configuration asks for it', async () => {
    const { port, seen } = await partner();
    const gateway = await testGateway({ callback: { url: `http://127.0.0.1:${port}/` }, config: { mqtt: null } });
    await gateway.testCallback();
    await eventually('the callback', () => seen.length === 1);
    expect(Object.keys(seen[0]?.headers ?? {}).filter((it) => it.startsWith('webhook'))).toEqual([]);
  });

  it.each(['secret', 'whsec_', 'whsec_AAAA', `whsec_${'!'.repeat(32)}`])(
    'with no secret such as %s',
    (signingSecret) => {
      const callback = { url: 'http://partner.example/', signingSecret };
      const config = { dataDir: 'x', partners: [{ username: 'demo', password: 'x', callback }] };
      expect(() => parseGatewayConfig(config, 'test')).toThrow(/callback\.signingSecret: expected whsec_/);
    },
  );
});
