import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { expect, it } from 'vitest';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { temporaryFolder } from '../support/net.ts';
import { admin } from './admin.ts';
import { failed, GENERATE, kept, order, SEND_QR, TEST_CALLBACK, type TestGateway, testGateway } from './harness.ts';

const TOKEN = '/api/token_generate';
const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` });

it('TOK-1 TOK-2 gives a signed token of 300 seconds for Basic credentials', async () => {
  const gateway = await testGateway();
  const { status, body } = await gateway.post(TOKEN, '{}', basic('demo:demo-secret'));
  expect(status).toBe(200);
  expect(body).toEqual({ access_token: expect.any(String), token_type: 'Bearer', expires_in: 300 });
  const [head, claims] = String(body.access_token)
    .split('.', 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()));
  expect(head.alg).toBe('HS256');
  expect(claims.sub).toBe('demo');
  expect(claims.exp - claims.iat).toBe(300);
});

it('TOK-2 ends a token after 300 seconds, to the second', async () => {
  const clock = new VirtualClock();
  const gateway = await testGateway({ clock });
  const authorization = `Bearer ${await gateway.token()}`;
  const generate = () => gateway.generate({}, { authorization });
  await clock.advance(299_999);
  expect((await generate()).status).toBe(200);
  await clock.advance(1);
  const late = await generate();
  expect([late.status, late.body]).toEqual([401, { status: 'FAILED', message: 'E74' }]);
});

it('TOK-2 lets a token live for 300 seconds, in whatever part of a second it is issued', async () => {
  const clock = new VirtualClock();
  const gateway = await testGateway({ clock });
  await clock.advance(900);
  const authorization = `Bearer ${await gateway.token()}`;
  const generate = async () => (await gateway.generate({}, { authorization })).status;
  await clock.advance(299_999);
  expect(await generate()).toBe(200);
  await clock.advance(1_000);
  expect(await generate()).toBe(401);
});

it('TOK-2 keeps a token valid over a restart, but not at another gateway', async () => {
  const dataDir = await temporaryFolder();
  const first = await testGateway({ dataDir });
  const headers = { authorization: `Bearer ${await first.token()}` };
  await first.close();
  const again = await testGateway({ dataDir });
  expect((await again.generate({}, headers)).status).toBe(200);
  const other = await testGateway();
  expect((await other.generate({}, headers)).status).toBe(401);
});

it('TOK-3 does not read the body', async () => {
  const gateway = await testGateway();
  for (const [body, type] of [
    [undefined, undefined],
    ['{"a":', 'application/json'],
    ['<a/>', 'text/xml'],
    ['x'.repeat(200_000), 'application/json'],
  ]) {
    const headers = { ...basic('demo:demo-secret'), ...(type && { 'content-type': type }) };
    const answer = await fetch(`${gateway.baseUrl}${TOKEN}`, { method: 'POST', headers, ...(body && { body }) });
    expect([type, answer.status]).toEqual([type, 200]);
  }
});

it('TOK-4 refuses any other credentials', async () => {
  const gateway = await testGateway();
  for (const headers of [
    {},
    basic('demo:demo-secre'),
    basic('nobody:demo-secret'),
    basic('demo'),
    { authorization: 'Bearer demo:demo-secret' },
    { authorization: 'Basic demo:demo-secret' },
    basic(':'),
  ]) {
    const answer = await fetch(`${gateway.baseUrl}${TOKEN}`, { method: 'POST', headers });
    const came = [headers, answer.status, await answer.json(), gateway.refusals()];
    expect(came).toEqual([headers, 401, failed('E74'), ['E74']]);
    expect(answer.headers.get('www-authenticate')).toMatch(/^Basic /);
  }
  expect(JSON.stringify(gateway.log)).not.toContain('demo-secre');
});

it.each([GENERATE, SEND_QR, TEST_CALLBACK])('TOK-5 asks %s for a bearer before it looks at the body', async (path) => {
  const gateway = await testGateway();
  const token = await gateway.token();
  for (const authorization of [
    '',
    'Bearer',
    'Bearer x.y.z',
    `Basic ${token}`,
    `Bearer ${token}x`,
    `Bearer ${token.split('.').slice(0, 2).join('.')}.`,
    `Bearer ${token}.${token}`,
    `Bearer ${forged(token, { alg: 'none', typ: 'JWT' })}`,
    `Bearer ${forged(token, { alg: 'HS384', typ: 'JWT' })}`,
    `Bearer ${forged(token, undefined, { sub: 'admin' })}`,
    basic('demo:demo-secret').authorization,
  ]) {
    const { status, body, headers } = await gateway.post(path, '{"a":', { authorization, 'content-type': 'text/xml' });
    expect([status, body]).toEqual([401, { status: 'FAILED', message: 'E74' }]);
    expect(headers.get('www-authenticate')).toMatch(/^Bearer/);
  }
});

/** The token with another header or other claims, and its old signature; without one where its algorithm is none. */
function forged(token: string, header?: object, claims: object = {}): string {
  const [head = '', payload = '', signature = ''] = token.split('.');
  const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const told = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as object;
  const isUnsigned = JSON.stringify(header ?? {}).includes('none');
  return [header ? encoded(header) : head, encoded({ ...told, ...claims }), isUnsigned ? '' : signature].join('.');
}

it.each([
  ['its token has expired', async (_gateway: TestGateway, clock: VirtualClock) => void (await clock.advance(300_000))],
  [
    'its partner is disabled',
    async (gateway: TestGateway) => void (await admin(gateway, 'POST', 'partners/late/disable')),
  ],
  ['its partner is removed', async (gateway: TestGateway) => void (await admin(gateway, 'DELETE', 'partners/late'))],
])('TOK-5 THR-38 a body that was held back until %s changes nothing', async (_why, end) => {
  const clock = new VirtualClock();
  const gateway = await testGateway({ clock, config: { registry: 'store', mqtt: null } });
  await admin(gateway, 'POST', 'partners', { username: 'late', password: 'late-secret' });
  const token = await gateway.token('late');
  const body = JSON.stringify(order());
  const request = httpRequest(`${gateway.baseUrl}${GENERATE}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'content-length': body.length },
  });
  const answered = once(request, 'response');
  request.write(body.slice(0, 1));
  // A request that comes later on another connection is answered: the head before it was read.
  for (let asked = 0; asked < 3; asked += 1) {
    expect((await gateway.generate({}, { authorization: `Bearer ${await gateway.token('other')}` })).status).toBe(200);
  }
  const before = await kept(gateway);
  await end(gateway, clock);
  request.end(body.slice(1));
  const [response] = (await answered) as [IncomingMessage];
  response.resume();
  expect(response.statusCode).toBe(401);
  expect(await kept(gateway)).toEqual(before);
});
