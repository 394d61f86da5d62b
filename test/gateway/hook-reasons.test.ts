import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { moved, PROVIDERS } from '../support/providers.ts';
import { ACCOUNT, type TestGateway, testGateway } from './harness.ts';
import { byKey, SEPAY, SEPAY_KEY, sepayBody, signedBySepay, tellHook } from './hooks.ts';

const SECRET = `whsec_${'0a'.repeat(20)}`;
const KEY = PROVIDERS['casso V2']?.key ?? 'k'.repeat(64);
const PAYOS_KEY = 'ab'.repeat(32);
const FORM = 'application/x-www-form-urlencoded';
const SECRETS = [SEPAY_KEY, SECRET, KEY, PAYOS_KEY, 'raw-secret', 'hook-password'];
const SOURCES = [
  SEPAY,
  { kind: 'sepay', name: 'signed', auth: { kind: 'hmac', secret: SECRET } },
  { kind: 'casso', name: 'casso', auth: { kind: 'signature', key: KEY } },
  { kind: 'casso', name: 'casso-v1', auth: { kind: 'secure-token', token: KEY } },
  { kind: 'payos', name: 'payos', checksumKey: PAYOS_KEY },
  { kind: 'vietqr', name: 'vietqr', username: 'hook', password: 'hook-password' },
];
const hooked = () => testGateway({ config: { mqtt: null, sources: SOURCES } });
type Headers = Record<string, string>;

/** Status and reason of a call with these headers alone. */
async function refusal(gateway: TestGateway, name: string, headers: Headers, body: unknown = sepayBody()) {
  const answer = await tellHook(gateway, body, { name, headers });
  const reason = answer.headers.get('x-paybox-reason') ?? '';
  for (const secret of SECRETS) expect(reason).not.toContain(secret);
  return [answer.status, reason];
}

describe('a call to a hook', () => {
  it('SRC-33 a call to a hook with another kind of proof is answered with which one is missing, and what came instead', async () => {
    const gateway = await hooked();
    const signed = signedBySepay(SECRET, JSON.stringify(sepayBody()));
    const none = 'the call came with no header of a proof';
    const hmac = 'X-SePay-Signature is missing: this source has auth.kind hmac';
    const basic = `Basic ${Buffer.from('hook:raw-secret').toString('base64')}`;
    const cases: [name: string, headers: Headers, reason: string][] = [
      ['signed', byKey, `${hmac}; the call came with Authorization: Apikey`],
      ['signed', {}, `${hmac}; ${none}`],
      ['signed', { authorization: 'raw-secret' }, `${hmac}; the call came with Authorization of no known scheme`],
      ['signed', { 'secure-token': 'raw-secret' }, `${hmac}; the call came with Secure-Token`],
      [
        'signed',
        { 'x-sepay-signature': signed['x-sepay-signature'] ?? '' },
        'X-SePay-Timestamp is missing: this source has auth.kind hmac; the call came with X-SePay-Signature',
      ],
      [
        'sepay',
        signed,
        'Authorization is missing: this source has auth.kind apikey; the call came with X-SePay-Signature, X-SePay-Timestamp',
      ],
      [
        'sepay',
        { authorization: `Bearer ${SEPAY_KEY}` },
        'Authorization: expected Apikey and the key: this source has auth.kind apikey; the call came with Authorization: Bearer',
      ],
      [
        'casso',
        { 'secure-token': KEY },
        'X-Casso-Signature is missing: this source has auth.kind signature; the call came with Secure-Token',
      ],
      [
        'casso-v1',
        { 'x-casso-signature': 't=1,v1=00' },
        'Secure-Token is missing: this source has auth.kind secure-token; the call came with X-Casso-Signature',
      ],
      [
        'payos',
        byKey,
        'data is missing: expected data and its signature in the body: this source has kind payos; the call came with Authorization: Apikey',
      ],
      [
        'vietqr/bank/api/transaction-sync',
        { authorization: basic },
        'Authorization: expected Bearer and a token of /api/token_generate: this source has kind vietqr; the call came with Authorization: Basic',
      ],
      [
        'vietqr/api/token_generate',
        signed,
        'Authorization is missing: expected Basic, the user name and the password: this source has kind vietqr; the call came with X-SePay-Signature, X-SePay-Timestamp',
      ],
      ['vietqr/api/token_generate', { authorization: basic }, 'Authorization: the user name or the password is wrong'],
    ];
    for (const [name, headers, reason] of cases) {
      expect(await refusal(gateway, name, headers)).toEqual([401, reason]);
    }
    expect(await gateway.mock('/credits')).toEqual([]);
  });

  it('SRC-33 a refused hook names the body and the type that do not fit, or says that the body is empty or cut', async () => {
    const gateway = await hooked();
    const form = new URLSearchParams({ id: '1', transferAmount: '50000' }).toString();
    const json = JSON.stringify(sepayBody());
    const multipart = '--x\r\nContent-Disposition: form-data; name="id"\r\n\r\n1\r\n--x--\r\n';
    const isForm = 'the body is not JSON: it is a form; Content-Type is';
    const cases: [type: string, body: string, reason: RegExp | string][] = [
      ['application/json', form, `${isForm} application/json, expected ${FORM}`],
      [
        'application/json; charset=utf-8',
        multipart,
        /: it is a form; Content-Type is application\/json, expected multip/,
      ],
      [FORM, json, `form: id: expected a text, but it is missing`],
      [FORM, json, `; the body is JSON; Content-Type is ${FORM}, expected application/json`],
      ['multipart/form-data', multipart, 'Content-Type is multipart/form-data without a boundary, expected one'],
      [
        'multipart/form-data; boundary=x',
        json,
        'the body is no multipart/form-data; Content-Type is multipart/form-data, expected application/json',
      ],
      ['application/json', '', /^the body is empty$/],
      [FORM, '', /^the body is empty$/],
      ['application/json', json.slice(0, 40), /^the body is not JSON \(at position \d+\)$/],
      ['application/json', '{"id":', /^the body is not JSON \(it is cut at position 6\)$/],
      ['text/plain', '<br />', 'the body is not JSON; Content-Type is text/plain, expected application/json'],
    ];
    for (const [type, body, expected] of cases) {
      const [status, reason] = await refusal(gateway, 'sepay', { ...byKey, 'content-type': type }, body);
      expect([status, reason]).toEqual([
        400,
        typeof expected === 'string' ? expect.stringContaining(expected) : expect.stringMatching(expected),
      ]);
    }
    // A body of bytes has no type, unless a program names one.
    const untyped = await fetch(`${gateway.origin}/hooks/sepay`, {
      method: 'POST',
      headers: byKey,
      body: Buffer.from(form),
    });
    expect(untyped.headers.get('x-paybox-reason')).toBe(`${isForm} missing, expected ${FORM}`);
    await untyped.text();
    expect(await gateway.mock('/credits')).toEqual([]);
  });

  it('SRC-33 SRC-20 a call to a hook by Casso with t in seconds is answered that milliseconds are expected', async () => {
    const gateway = await hooked();
    const t = Math.floor(Date.now() / 1000);
    const hex = createHmac('sha512', KEY).update(`${t}.{"a":1}`).digest('hex');
    expect(await refusal(gateway, 'casso', { 'x-casso-signature': `t=${t},v1=${hex}` }, '{"a":1}')).toEqual([
      401,
      'X-Casso-Signature: expected t in milliseconds since 1970, not in seconds',
    ]);
  });

  it('SRC-26 a call to a hook names an account that came as a number', async () => {
    const gateway = await hooked();
    expect(await refusal(gateway, 'sepay', byKey, sepayBody({ accountNumber: 123456789 }))).toEqual([
      400,
      'accountNumber: expected a text, received a number, which loses a leading 0: put it in quotes',
    ]);
  });
});

it.each(['casso V2', 'payos'])('SRC-20 SRC-22 takes the signature of %s in capital letters', async (kind) => {
  const provider = PROVIDERS[kind];
  if (provider === undefined) throw new Error(`no provider ${kind}: ${Object.keys(PROVIDERS)}`);
  const gateway = await testGateway({ config: { mqtt: null, sources: [{ name: 'till', ...provider.options }] } });
  const nowMs = Date.now();
  const { headers, body } = provider.call(
    provider.body(moved({ id: 7, reference: 'FT7', atMs: nowMs, bankAccount: ACCOUNT.bankAccount })),
    { nowMs },
  );
  const upper = (text: string) => text.replaceAll(/[0-9a-f]{64,}/g, (hex) => hex.toUpperCase());
  const shown = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, upper(value)]));
  const sent = kind === 'payos' ? body.replace(/"signature":"[^"]*"/, upper) : body;
  expect([shown, sent]).not.toEqual([headers, body]);
  const answer = await fetch(`${gateway.origin}/hooks/till`, { method: 'POST', headers: shown, body: sent });
  expect([answer.status, await answer.json()]).toEqual([200, { success: true }]);
  expect(await gateway.mock('/credits')).toMatchObject([{ amount: 50_000 }]);
});
