import { request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { systemRandom } from '../../src/lib/random.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import {
  BOX1,
  expectRefused,
  failed,
  GENERATE,
  kept,
  order,
  partnerServer,
  push,
  SEND_QR,
  TEST_CALLBACK,
  type TestGateway,
  testCallback,
  testGateway,
} from './harness.ts';

const BODY_BYTES_MAX = 65_536;
/** Turns of direction, characters without width, fillers, selectors, tags, private and unassigned ones, separators. */
const UNSEEN = [
  ...['\u202a', '\u202e', '\u2066', '\u2069', '\u200e', '\u061c', '\u200b', '\u200d', '\u2060', '\u2064', '\ufeff'],
  ...['\u00ad', '\u180e', '\u3164', '\uffa0', '\u115f', '\u1160', '\u034f', '\u2800', '\ufe0f', '\u{e0100}'],
  ...['\u{e0041}', '\ue000', '\u{10ffff}', '\ufdd0', '\u0378', '\u2028', '\u0085', '\u009b'],
];
const ENDPOINTS = [GENERATE, SEND_QR, TEST_CALLBACK];
const RIGHT: Record<string, Record<string, unknown>> = {
  [GENERATE]: order(),
  [SEND_QR]: push(),
  [TEST_CALLBACK]: testCallback(),
};

/** A partner with an endpoint and a connected box: whatever could be changed would be. */
async function ready() {
  const partner = await partnerServer();
  const gateway = await testGateway({ callback: { url: partner.url } });
  const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
  return { gateway, partner, box };
}

/** That nothing came to boxes and partner, and no secret into the log. */
function expectUntold({ gateway, partner, box }: Awaited<ReturnType<typeof ready>>): void {
  expect([partner.calls, box.of('show'), box.of('payment')]).toEqual([[], [], []]);
  const log = JSON.stringify(gateway.log);
  for (const secret of ['demo-secret', BOX1.secret, push().checkSum, 'eyJ']) expect(log).not.toContain(secret);
}

const BODIES: readonly (readonly [name: string, body: string | Buffer])[] = [
  ['nothing', ''],
  ['white space', ' \n'],
  ['half an object', '{"amount":'],
  ['a trailing comma', '{"amount":1,}'],
  ['single quotes', "{'amount':1}"],
  ['two values', '{} {}'],
  ['NaN', '{"amount":NaN}'],
  ['a raw NUL byte in a text', '{"content":"\0"}'],
  ['a NUL byte after the end', `${JSON.stringify(order())}\0`],
  ['a form', 'amount=1'],
  ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
  ['UTF-16', Buffer.from(JSON.stringify(order()), 'utf16le')],
  ['null', 'null'],
  ['an array', '[]'],
  ['an array of a right request', JSON.stringify([order()])],
  ['a text', '"{}"'],
  ['a number', '42'],
  ['true', 'true'],
  ['brackets in brackets', '['.repeat(60_000)],
  ['brackets in brackets that end', '['.repeat(30_000) + ']'.repeat(30_000)],
];

describe.each(ENDPOINTS)('a request to %s that is not one', (path) => {
  it('ERR-1 ERR-3 ERR-5 a body that is no JSON object in UTF-8 is refused with E46', async () => {
    const stage = await ready();
    await expectRefused(
      stage.gateway,
      BODIES.map(([, body]) => [path, body, 'E46']),
    );
    expectUntold(stage);
  });

  it('ERR-2 ERR-3 another content type is refused with 415 E46', async () => {
    const stage = await ready();
    const body = Buffer.from(JSON.stringify(RIGHT[path]));
    const types = [
      ...['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/jsonx'],
      ...['text/json', 'application/json, text/plain', 'nonsense', ''],
    ];
    await expectRefused(
      stage.gateway,
      types.map((type) => [path, body, 'E46', { status: 415, type }]),
    );
    expectUntold(stage);
  });

  it('ERR-2 ERR-3 LIM-4 a body one byte beyond the limit is refused with 413 E46, and one at the limit accepted', async () => {
    const stage = await ready();
    const right = JSON.stringify(RIGHT[path]);
    await expectRefused(stage.gateway, [[path, right.padEnd(BODY_BYTES_MAX + 1), 'E46', { status: 413 }]]);
    expectUntold(stage);
    expect((await stage.gateway.post(path, right.padEnd(BODY_BYTES_MAX))).status).toBe(200);
  });

  it('ERR-2 LIM-4 a body beyond the limit is refused with 413 E46 when its length is not sent before', async () => {
    const stage = await ready();
    const before = await kept(stage.gateway);
    const authorization = `Bearer ${await stage.gateway.token()}`;
    expect(await chunked(stage.gateway, path, authorization)).toEqual({ status: 413, body: failed('E46') });
    expect([stage.gateway.refusals(), await kept(stage.gateway)]).toEqual([['E46'], before]);
    expectUntold(stage);
  });

  it('ERR-2 ERR-5 a token that has expired is refused with 401 E74', async () => {
    const clock = new VirtualClock();
    const gateway = await testGateway({ clock });
    const headers = { authorization: `Bearer ${await gateway.token()}` };
    await clock.advance(300_000);
    const answer = await gateway.post(path, RIGHT[path], headers);
    expect([answer.status, answer.body]).toEqual([401, failed('E74')]);
    expect(gateway.refusals()).toEqual(['E74']);
    expect(JSON.stringify(gateway.log)).not.toContain('eyJ');
    expect((await kept(gateway)).slice(1)).toEqual([[], [], []]);
  });

  it('ERR-2 ERR-5 another method is refused with 405', async () => {
    const gateway = await testGateway();
    for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const answer = await fetch(`${gateway.baseUrl}${path}`, { method });
      expect([method, answer.status, answer.headers.get('allow')]).toEqual([method, 405, 'POST']);
      if (method !== 'HEAD') expect(await answer.json()).toEqual(failed('E46'));
    }
    expect(gateway.refusals()).toHaveLength(6);
  });

  it('ERR-4 unknown fields are dropped and named in the log once', async () => {
    const stage = await ready();
    const strange = `{"__proto__":{"amount":1},"constructor":1,"extra":"private",${JSON.stringify(RIGHT[path]).slice(1)}`;
    const { status, body } = await stage.gateway.post(path, strange);
    expect(status).toBe(200);
    expect(JSON.stringify(body)).not.toContain('extra');
    const lines = stage.gateway.logged('unknown-fields-ignored');
    expect(lines).toEqual([expect.objectContaining({ path: `/vqr${path}`, fields: '__proto__ constructor extra' })]);
    expect(JSON.stringify(stage.gateway.log)).not.toContain('private');
    expect(JSON.stringify(await kept(stage.gateway))).not.toContain('extra');
  });
});

/** A body of unknown length, sent as long as the server reads it. */
function chunked(
  gateway: TestGateway,
  path: string,
  authorization: string,
): Promise<{ status: number; body: unknown }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization, 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
    const sending = request(`${gateway.baseUrl}${path}`, { method: 'POST', headers });
    sending.on('response', async (response) => {
      resolve({ status: response.statusCode ?? 0, body: JSON.parse(await text(response)) });
      sending.destroy();
    });
    sending.on('error', reject);
    sending.write(`{"a":"${'x'.repeat(BODY_BYTES_MAX)}`);
  });
}

describe('values that no field should hold', () => {
  it('ERR-3 ERR-5 a value that no field should hold is refused by the code of its field', async () => {
    const stage = await ready();
    const values = [
      [GENERATE, 'amount', '1e400', 'E02'],
      [GENERATE, 'amount', '-1e400', 'E02'],
      [GENERATE, 'amount', '99999999999999999999', 'E02'],
      [GENERATE, 'amount', '0.1', 'E02'],
      [GENERATE, 'content', '"\\u0000"', 'E34'],
      [GENERATE, 'content', '"\\ud800"', 'E34'],
      [GENERATE, 'bankAccount', '"0123456789\\u0000"', 'E10'],
      [GENERATE, 'qrType', '1e400', 'E46'],
      [SEND_QR, 'amount', '"1e400"', 'E02'],
      [SEND_QR, 'bankAccount', '"\\ud800"', 'E39'],
      [SEND_QR, 'terminalCode', '"VVB000001\\u0000"', 'E35'],
      [SEND_QR, 'qrCode', '"\\ud800"', 'QR_INVALID'],
      [TEST_CALLBACK, 'amount', '1e400', '002'],
      [TEST_CALLBACK, 'content', '"DH\\ud800"', '009'],
      [TEST_CALLBACK, 'bankAccount', '"\\u0000"', '010'],
    ] as const;
    await expectRefused(
      stage.gateway,
      values.map(([path, field, value, code]) => {
        return [path, JSON.stringify({ ...RIGHT[path], [field]: '@' }).replace('"@"', value), code];
      }),
    );
    expectUntold(stage);
  });

  it('ERR-3 the last of two equal keys counts, for the checkSum too', async () => {
    const { gateway, box } = await ready();
    const twice = (first: string, right: object) => `{${first},${JSON.stringify(right).slice(1)}`;
    expect((await gateway.post(GENERATE, twice('"amount":1', order()))).body.amount).toBe('50000');
    expect((await gateway.post(SEND_QR, twice('"amount":"1"', push()))).body.status).toBe('SUCCESS');
    expect(box.of('show')).toMatchObject([{ amount: 50_000 }]);
  });

  it.each(['content', 'orderId'])(
    'ERR-3 THR-7 takes no control character, nothing invisible and no half character in %s',
    async (field) => {
      const { gateway, box } = await ready();
      for (const text of ['a\0b', 'a\u001b[2Jb', 'a\nb', 'a\ud800b', ...UNSEEN.map((it) => `a${it}b`)]) {
        expect(await gateway.sendQr({ [field]: text })).toMatchObject({
          status: 400,
          body: failed('E46'),
        });
      }
      expect(box.of('show')).toEqual([]);
      expect((await gateway.sendQr({ content: 'Cà phê 🍜', orderId: 'số 1'.normalize('NFD') })).body.status).toBe(
        'SUCCESS',
      );
    },
  );
});

describe('addresses that are not there', () => {
  it('ERR-2 ERR-5 answers 404 at every other address', async () => {
    const gateway = await testGateway();
    for (const path of [
      ...['/nothing', '/vqr', '/vqr/', '/vqr/api/token_generate/', '/vqr/api/TOKEN_GENERATE', '/api/token_generate'],
      ...['/_mock/nothing', '/docs/nothing', '/docs/..%2fpackage.json', '/docs/package.json', '/docs/constructor'],
      ...['/%zz', '/%00', `/${'x'.repeat(5000)}`],
    ]) {
      const answer = await fetch(`${gateway.origin}${path}?token=abc-private`);
      const came = [path, answer.status, await answer.json(), gateway.refusals()];
      expect(came).toEqual([path, 404, failed('E46'), ['E46']]);
    }
    expect(JSON.stringify(gateway.log)).not.toContain('abc-private');
  });

  it('ERR-2 another method at an unknown address is answered 405', async () => {
    const gateway = await testGateway();
    for (const [method, path, allow] of [
      ['POST', '/', 'GET'],
      ['DELETE', '/healthz', 'GET'],
      ['PUT', '/_mock/orders', 'GET'],
      ['GET', '/_mock/orders/1/pay', 'POST'],
      ['GET', '/vqr/api/token_generate', 'POST'],
      ['POST', '/qr/abc', 'GET'],
      ['POST', '/box/v1/stream', 'GET'],
      ['GET', '/box/v1/messages', 'POST'],
    ] as const) {
      const answer = await fetch(`${gateway.origin}${path}`, { method });
      const came = [path, answer.status, answer.headers.get('allow'), await answer.json(), gateway.refusals()];
      expect(came).toEqual([path, 405, allow, failed('E46'), ['E46']]);
    }
  });

  it('ERR-1 ERR-5 a request that is not HTTP is answered and logged', async () => {
    const gateway = await testGateway();
    for (const bytes of [
      'nonsense\r\n\r\n',
      'GET / HTTP/9.9\r\n\r\n',
      `GET / HTTP/1.1\r\nhost: x\r\na: ${'x'.repeat(20_000)}\r\n\r\n`,
    ]) {
      const socket = connect(Number(new URL(gateway.origin).port), '127.0.0.1');
      socket.write(bytes);
      const answer = await text(socket);
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
      expect([answer.split('\r\n\r\n')[1], gateway.refusals()]).toEqual([JSON.stringify(failed('E46')), ['E46']]);
    }
  });
});

it('ERR-1 ERR-2 ERR-5 answers a fault of its own with 500 E05, says why in the log only, and goes on', async () => {
  let broken = false;
  const uuid = () => {
    if (broken) throw new Error('no entropy today');
    return systemRandom.uuid();
  };
  const gateway = await testGateway({ random: { ...systemRandom, uuid } });
  await gateway.generate({ amount: -1 });
  broken = true;
  const answer = await gateway.generate();
  expect([answer.status, answer.body]).toEqual([500, failed('E05')]);
  const lines = gateway.log.filter((it) => it.level === 'error');
  expect(lines).toMatchObject([{ code: 'E05', reason: 'no entropy today' }]);
  broken = false;
  expect((await gateway.generate()).status).toBe(200);
});

it('ERR-5 leaves a gateway that works after a thousand bad requests', async () => {
  const { gateway, box } = await ready();
  const bodies = Array.from({ length: 1000 }, (_, i) => BODIES[i % BODIES.length]?.[1] ?? '');
  for (let at = 0; at < bodies.length; at += 50) {
    const some = bodies.slice(at, at + 50);
    await Promise.all(some.map((body, i) => gateway.post(ENDPOINTS[i % 3] ?? GENERATE, body)));
  }
  expect(gateway.refusals()).toHaveLength(1000);
  expect((await gateway.sendQr()).body.status).toBe('SUCCESS');
  await eventually('the push', () => box.of('show').length === 1);
});
