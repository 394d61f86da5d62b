import { lookup } from 'node:dns';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { createAskSource } from '../../src/gateway/money/asking.ts';
import { SOURCE_KINDS } from '../../src/gateway/money/sources/registry.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { eventually } from '../support/net.ts';
import { order, partnerServer, testGateway } from './harness.ts';
import { byKey, hookedGateway, SEPAY_KEY, sepayBody, signedBySepay, tellHook } from './hooks.ts';

const SECRET = 'whsec_0123456789abcdef0123456789abcdef';
const SIGNED = { kind: 'sepay', name: 'sepay', auth: { kind: 'hmac', secret: SECRET } };

/** A SePay webhook as a form: every value is a text, and null an empty one. */
async function formOf(type: 'multipart' | 'urlencoded', change: Record<string, unknown> = {}) {
  const fields = Object.entries(sepayBody(change)).map(([name, value]): [string, string] => [name, `${value ?? ''}`]);
  const form = type === 'multipart' ? new FormData() : new URLSearchParams();
  for (const [name, value] of fields) form.append(name, value);
  const request = new Request('http://localhost', { method: 'POST', body: form });
  return {
    type: request.headers.get('content-type') ?? '',
    body: Buffer.from(await request.arrayBuffer()),
  };
}

it.each(['multipart', 'urlencoded'] as const)(
  'SRC-7 THR-33 sepay sends %s: it is money as in JSON, by either proof',
  async (how) => {
    const gateway = await hookedGateway({
      config: {
        sources: [
          { ...SIGNED, name: 'signed' },
          { kind: 'sepay', name: 'sepay', auth: { kind: 'apikey', key: SEPAY_KEY } },
        ],
      },
    });
    await gateway.generate({});
    const first = await formOf(how);
    const signed = { 'content-type': first.type, ...signedBySepay(SECRET, first.body) };
    expect(
      await tellHook(gateway, first.body, {
        name: 'signed',
        headers: { ...signed, 'x-sepay-signature': `sha256=${'0'.repeat(64)}` },
      }),
    ).toMatchObject({ status: 401 });
    expect(await gateway.mock('/credits')).toEqual([]);
    expect(await tellHook(gateway, first.body, { name: 'signed', headers: signed })).toMatchObject({
      status: 200,
      body: { success: true },
    });
    expect(await gateway.mock('/payments')).toMatchObject([{ amount: 50_000, orderId: 'DH001' }]);
    // The same transfer in JSON, and in a form by the other proof, is no second payment.
    const second = await formOf(how, { id: 2, referenceCode: 'FT26001000002', content: 'ai do' });
    for (const [body, type] of [
      [second.body, second.type],
      [JSON.stringify(sepayBody({ id: 2, referenceCode: 'FT26001000002' })), 'application/json'],
    ] as const) {
      expect((await tellHook(gateway, body, { headers: { ...byKey, 'content-type': type } })).status).toBe(200);
    }
    expect(await gateway.mock('/payments')).toHaveLength(2);
  },
);

it.each([
  ['urlencoded', { transferAmount: '50.000' }, 'form: transferAmount: expected digits only'],
  ['multipart', { transferAmount: '-50000' }, 'form: transferAmount: expected digits only'],
  ['multipart', { transferType: 'into' }, 'form: transferType: '],
  ['urlencoded', { accountNumber: '' }, 'form: accountNumber: '],
] as const)('SRC-26 refuses a %s of sepay that is not as documented: %o', async (how, change, reason) => {
  const gateway = await hookedGateway();
  const { type, body } = await formOf(how, change);
  const answer = await tellHook(gateway, body, { headers: { ...byKey, 'content-type': type } });
  expect([answer.status, answer.headers.get('x-paybox-reason')]).toEqual([400, expect.stringContaining(reason)]);
});

it('SRC-7 a hook names the type of a body that it cannot read', async () => {
  const gateway = await hookedGateway();
  const reasonOf = async (type: string, body: string) => {
    const { headers, status } = await tellHook(gateway, body, { headers: { ...byKey, 'content-type': type } });
    return [status, headers.get('x-paybox-reason')];
  };
  expect(await reasonOf('multipart/form-data; boundary=x', '{}')).toEqual([
    400,
    'the body is no multipart/form-data; Content-Type is multipart/form-data, expected application/json',
  ]);
  expect(await reasonOf('text/xml', '<id>1</id>')).toEqual([
    400,
    expect.stringMatching(/Content-Type is text\/xml, expected/),
  ]);
});

it('MAT-7 the code that sepay found comes before the text, if it names an order', async () => {
  const gateway = await hookedGateway();
  for (const orderId of ['DH001', 'DH002']) await gateway.generate({ orderId, content: orderId });
  const both = { content: 'DH001 DH002 chuyen khoan' };
  await tellHook(gateway, sepayBody({ ...both, code: 'dh 001' }));
  await tellHook(gateway, sepayBody({ ...both, code: 'DH009', id: 2, referenceCode: 'FT26001000002' }));
  expect(await gateway.mock('/payments')).toMatchObject([{ orderId: 'DH002' }, { orderId: 'DH001' }]);
});

const REPLY = JSON.stringify({ error: false, errorReason: '000', toastMessage: '', object: { reftransactionid: 'a' } });
const TOKEN = JSON.stringify({ access_token: 'abc', token_type: 'Bearer', expires_in: 300 });
const marked = (text: string) => Buffer.from(`\ufeff${text}`);

it.each([
  ['a byte order mark', undefined, marked, null],
  ['gzip', 'gzip', (text: string) => gzipSync(marked(text)), null],
  ['br', 'br', (text: string) => brotliCompressSync(text), null],
])('SYN-12 reads token and reply of a partner with %s', async (_what, encoding, encode, warning) => {
  const { origin } = await partnerServer(({ path }, response) => {
    if (encoding !== undefined) response.setHeader('content-encoding', encoding);
    response.end(encode(path === '/token' ? TOKEN : REPLY));
  });
  const auth = { kind: 'token', url: `${origin}/token`, username: 'a', password: 'b' };
  const gateway = await testGateway({ callback: { url: `${origin}/paid`, auth } });
  await gateway.testCallback({});
  await eventually('the callback', async () => (await gateway.mock('/callbacks'))[0]?.status === 'delivered');
  expect((await gateway.mock('/callbacks'))[0]).toMatchObject({ warning, attemptCount: 1 });
});

it.each([
  [
    'a token in zstd',
    '/token',
    'zstd',
    /^the answer to the token request cannot be read: Content-Encoding: zstd is not known/,
  ],
  ['a page for a token', '/token', undefined, /^the answer to the token request is not JSON$/],
])('SYN-12 names what is wrong with %s', async (_what, at, encoding, error) => {
  const { origin } = await partnerServer(({ path }, response) => {
    if (path === at && encoding !== undefined) response.setHeader('content-encoding', encoding);
    response.end(path === at ? '<html>' : REPLY);
  });
  const auth = { kind: 'token', url: `${origin}/token`, username: 'a', password: 'b' };
  const gateway = await testGateway({ callback: { url: `${origin}/paid`, auth } });
  await gateway.testCallback({});
  await eventually('an attempt', async () => Number((await gateway.mock('/callbacks'))[0]?.attemptCount) > 0);
  const [callback] = await gateway.mock('/callbacks');
  const { attempts } = await gateway.mock<{ attempts: { error: string }[] }>(`/callbacks/${callback?.id}`);
  expect(attempts[0]?.error).toMatch(error);
});

it('SYN-12 SYN-3 a reply that cannot be read is delivered, with a warning that names its encoding', async () => {
  const { origin } = await partnerServer((_call, response) =>
    response.setHeader('content-encoding', 'zstd').end(REPLY),
  );
  const gateway = await testGateway({ callback: { url: `${origin}/paid` } });
  await gateway.testCallback({});
  await eventually('the callback', async () => (await gateway.mock('/callbacks'))[0]?.status === 'delivered');
  expect((await gateway.mock('/callbacks'))[0]).toMatchObject({
    warning: 'the reply cannot be read: Content-Encoding: zstd is not known; expected gzip, deflate, br or none',
  });
});

it('SRC-32 catch-up reads a list with gzip and a byte order mark, and names what is wrong with another', async () => {
  let encoding = 'gzip';
  const list = { status: 'success', data: [], meta: { pagination: { has_more: false } } };
  const { origin } = await partnerServer((_call, response) => {
    response.setHeader('content-encoding', encoding).end(gzipSync(marked(JSON.stringify(list))));
  });
  const api = { url: origin, token: 'a' };
  const kind = SOURCE_KINDS.get('sepay');
  const source = kind?.open({ ...SIGNED, api }, { clock: systemClock, random: systemRandom });
  const ask = createAskSource(systemClock, { ownPorts: new Set(), lookup: () => lookup });
  const listed = async () => {
    const all = [];
    for await (const it of source?.list?.({ sinceMs: 0, untilMs: 1, orders: [] }, ask) ?? []) all.push(it);
    return all;
  };
  expect(await listed()).toEqual([{ credits: [], unread: [] }]);
  encoding = 'br';
  await expect(listed()).rejects.toThrow('Content-Encoding: the body is no br');
  encoding = 'identity';
  await expect(listed()).rejects.toThrow('the answer of the list cannot be read: the body is not UTF-8 at byte 1');
});

it('ERR-9 THR-46 the gateway reads a call with gzip and a charset, and names the encoding that it refuses', async () => {
  const gateway = await testGateway();
  const authorization = `Bearer ${await gateway.token()}`;
  const call = async (body: Buffer, headers: Record<string, string>) => {
    const url = `${gateway.baseUrl}/api/qr/generate-customer`;
    const how = { 'content-type': 'application/json', authorization, ...headers };
    const answer = await fetch(url, { method: 'POST', headers: how, body });
    return [answer.status, answer.headers.get('x-paybox-reason')];
  };
  const json = JSON.stringify(order());
  expect(await call(gzipSync(marked(json)), { 'content-encoding': 'gzip' })).toEqual([200, null]);
  const utf16 = { 'content-type': 'application/json; charset=utf-16le' };
  expect(await call(Buffer.from(json, 'utf16le'), utf16)).toEqual([200, null]);
  expect(await call(Buffer.from(json), { 'content-encoding': 'zstd' })).toEqual([
    415,
    'Content-Encoding: zstd is not known; expected gzip, deflate, br or none',
  ]);
  expect(await call(gzipSync(Buffer.alloc(70_000)), { 'content-encoding': 'gzip' })).toEqual([
    413,
    'the body is longer than 65536 bytes once its gzip is undone',
  ]);
  expect(await call(Buffer.from('{"a":"\xe1"}', 'latin1'), {})).toEqual([
    400,
    'body: expected UTF-8 JSON: the body is not UTF-8 at byte 6',
  ]);
});
