import { describe, expect, it } from 'vitest';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { payboxToEnd } from '../support/processes.ts';
import { ACCOUNT, BOX1, BOXES, FOREIGN_ACCOUNT, OTHER_ACCOUNT, partnerServer, testGateway } from './harness.ts';

const SHOP = { bankAccount: '19036000111', bankCode: 'TCB', userBankName: 'PHO GIA TRUYEN' };
const PARTNER = { username: 'pho', password: 'pho-own-password', accounts: [SHOP.bankAccount] };
const LIVE = {
  mode: 'live',
  dataDir: 'data',
  accounts: [SHOP],
  partners: [PARTNER],
  boxes: BOXES.map((box) => ({ ...box, account: SHOP.bankAccount })),
};
const parsed = (change: object) => parseGatewayConfig({ ...LIVE, ...change }, 'gateway.yaml');
const KEY = 'Key-Of-The-Source-0123';
const TLS = { cert: 'cert.pem', key: 'key.pem' };

/** A word of 16 letters falls to a list of words within seconds. */
const WORD = 'counterclockwise';
const CASSO_KEY = 'mKp3'.repeat(16).replace('mKp3', 'Zq7x');
const weakKeys: [source: object, path: string, expected: string][] = [
  [{ kind: 'sepay', auth: { kind: 'apikey', key: WORD } }, 'auth.key', 'a secret of 128 bits'],
  [{ kind: 'sepay', auth: { kind: 'apikey', key: '4821' } }, 'auth.key', 'a secret of 128 bits'],
  [{ kind: 'sepay', auth: { kind: 'hmac', secret: `whsec_${WORD}` } }, 'auth.secret', 'the secret as SePay makes it'],
  [
    { kind: 'casso', auth: { kind: 'signature', key: CASSO_KEY, previousKey: WORD } },
    'auth.previousKey',
    'the key as Casso makes it',
  ],
  [{ kind: 'casso', auth: { kind: 'signature', key: WORD } }, 'auth.key', 'the key as Casso makes it'],
  [{ kind: 'casso', auth: { kind: 'secure-token', token: WORD } }, 'auth.token', 'a secret of 128 bits'],
  [{ kind: 'payos', checksumKey: WORD }, 'checksumKey', 'the key as payOS makes it'],
  [{ kind: 'vietqr', username: 'a', password: WORD }, 'password', 'a secret of 128 bits'],
];

function problemOf(change: object): string {
  try {
    parsed(change);
    return 'none';
  } catch (error) {
    return error instanceof Error ? error.message : '';
  }
}

describe('a live gateway', () => {
  it('MOD-1 a live gateway is no sandbox, and needs no further key', () => {
    expect(parsed({})).toMatchObject({ mode: 'live', sandbox: false });
    expect(parsed({ sandbox: false })).toMatchObject({ mode: 'live', sandbox: false });
    expect(parseGatewayConfig({ dataDir: 'data' }, 'x')).toMatchObject({ mode: 'sandbox', sandbox: true });
    expect(parseGatewayConfig({ dataDir: 'data', sandbox: false }, 'x')).toMatchObject({
      mode: 'sandbox',
      sandbox: false,
    });
  });

  it('a wrong source names the sample file of sources', () => {
    const wrong = { sources: [{ kind: 'bank', name: 'bank' }] };
    expect(() => parsed(wrong)).toThrow(
      expect.objectContaining({ fix: expect.stringContaining('gateway-sources.yaml') }),
    );
  });

  it.each<[change: object, problem: string]>([
    [{ sandbox: true }, 'sandbox: expected false'],
    [{ enrolment: 'open' }, 'enrolment: expected code or closed'],
    [{ adminToken: 'Sample-admin-token-known-to-all' }, 'adminToken: is a sample'],
    [
      { boxes: [{ ...BOX1, account: SHOP.bankAccount, secret: 'Sample-box-secret-known-to-all' }] },
      'boxes.0.secret: is a sample',
    ],
    [{ partners: [{ ...PARTNER, password: 'sample-password' }] }, 'partners.0.password: is a sample'],
    [
      { sources: [{ kind: 'sepay', name: 'sepay', auth: { kind: 'apikey', key: 'sample-key' } }] },
      'sources.0.auth.key: is a sample',
    ],
    [{ partners: [{ ...PARTNER, username: 'demo' }] }, 'partners.0: expected no partner of the demo'],
    [{ partners: [{ ...PARTNER, password: 'demo-secret' }] }, 'partners.0: expected no partner of the demo'],
    [
      { partners: [{ ...PARTNER, callback: { url: 'http://shop.example/sync' } }] },
      'partners.0.callback.url: expected https://',
    ],
    [
      {
        partners: [
          {
            ...PARTNER,
            callback: {
              url: 'https://shop.example/',
              auth: { kind: 'token', url: 'http://shop.example/', username: 'a', password: 'b' },
            },
          },
        ],
      },
      'partners.0.callback.auth.url: expected https://',
    ],
    [{ accounts: [SHOP, ACCOUNT] }, 'accounts.1.bankAccount: expected no account of the demo'],
    [{ http: { host: '0.0.0.0', allowPlain: true } }, 'http.allowPlain: expected tls in its place'],
    [{ mqtt: { embedded: { host: '0.0.0.0', allowPlain: true } } }, 'mqtt.embedded.allowPlain: expected tls'],
    [{ mqtt: { url: 'mqtt://10.0.0.2', allowPlain: true } }, 'mqtt.allowPlain: expected mqtts:// or wss://'],
    [{ publicUrl: 'http://pay.example' }, 'publicUrl: expected https://'],
    ...['change-me', 'Sample', 'a-long-random-text', ' change-me '].map((password): [object, string] => [
      { partners: [{ ...PARTNER, password }] },
      'partners.0.password: is a sample',
    ]),
    [{ partners: [{ ...PARTNER, username: 'Demo' }] }, 'partners.0: expected no partner of the demo'],
    [
      {
        partners: [
          {
            ...PARTNER,
            callback: { url: 'https://shop.example/', signingSecret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' },
          },
        ],
      },
      'partners.0.callback.signingSecret: is a sample',
    ],
    [{ mqtt: { url: 'mqtts://broker.example', username: 'a', password: 'change-me' } }, 'mqtt.password: is a sample'],
    [{ databaseUrl: 'postgres://a:change-me@127.0.0.1/b' }, 'databaseUrl: its password is a sample'],
    ...['', '?sslmode=prefer', '?sslmode=disable'].map((tls): [object, string] => [
      { databaseUrl: `postgres://a:b@10.0.0.2/c${tls}` },
      'databaseUrl: expected ?sslmode=verify-full',
    ]),
  ])('MOD-1 refuses %j by name', (change, problem) => {
    const message = problemOf(change);
    expect(message).toContain(problem);
    expect(message).not.toContain('ample-key');
    // The same is allowed in a sandbox, but for what is dangerous in any case.
    expect(problemOf({ ...change, mode: 'sandbox' })).not.toContain(problem);
  });

  it.each([
    { http: { host: '0.0.0.0', tls: TLS } },
    { http: { host: '127.0.0.1', allowPlain: true } },
    { mqtt: { url: 'mqtts://broker.example' } },
    { publicUrl: 'https://pay.example' },
    { sources: [{ kind: 'payos', name: 'till', checksumKey: 'a1b2c3d4'.repeat(8), clientId: 'a', apiKey: 'b' }] },
    { sources: [{ kind: 'sepay', name: 'till', auth: { kind: 'hmac', secret: `whsec_${'a1b2c3d4'.repeat(4)}` } }] },
    { sources: [{ kind: 'casso', name: 'till', auth: { kind: 'signature', key: CASSO_KEY } }] },
    { databaseUrl: 'postgres://a:b@[::1]/c' },
    { databaseUrl: 'postgres://a:b@10.0.0.2/c?sslmode=verify-full' },
    {
      sources: [
        { kind: 'sepay', name: 'sample-shop', auth: { kind: 'apikey', key: 'f3b1c0de4a5968778695a4b3c2d1e0f0' } },
      ],
    },
  ])('takes %j', (change) => {
    expect(problemOf(change)).toBe('none');
  });
});

describe.each([
  ['a live gateway', { mode: 'live' }],
  ['a gateway with sandbox: false', { mode: 'sandbox', sandbox: false }],
])('%s', (_what, mode) => {
  it.each(weakKeys)(
    'MOD-4 THR-36 a live gateway accepts no money by a secret that anybody can guess: %j, %s',
    (source, path, expected) => {
      const change = { sources: [{ name: 'till', ...source }] };
      const problem = problemOf({ ...change, ...mode });
      expect(problem).toContain(`sources.0.${path}: expected ${expected}`);
      expect(problem).not.toContain(WORD);
      // The payments of a sandbox are tests.
      expect(problemOf({ ...change, mode: 'sandbox' })).toBe('none');
    },
  );

  it('MOD-4 a live gateway logs a sample secret once', () => {
    const sources = [{ kind: 'sepay', name: 'till', auth: { kind: 'apikey', key: 'sample-key' } }];
    expect(problemOf({ sources, ...mode }).match(/is a sample/g)).toHaveLength(1);
  });
});

it('SRC-31 SYN-7 asks no list at the metadata service of a cloud', () => {
  const auth = { kind: 'apikey', key: KEY };
  const api = { url: 'https://169.254.169.254', token: 'token-of-this-test' };
  expect(problemOf({ sources: [{ kind: 'sepay', name: 'feed', auth, api }] })).toContain('link-local, metadata');
});

/** The parts of the harness's configuration that are not of the demo. */
const OWN = {
  accounts: [SHOP, OTHER_ACCOUNT, FOREIGN_ACCOUNT],
  partners: [PARTNER],
  boxes: LIVE.boxes,
  sources: [{ kind: 'sepay', name: 'feed', auth: { kind: 'apikey', key: KEY } }],
};

describe('a live gateway with codes in its contents', () => {
  it.each(['code', 'vietqr'])(
    'FLT-4 MAT-6 THR-44 puts a code before a content that begins with FAULT, too: %s',
    async (contentPrefix) => {
      const gateway = await testGateway({ config: { ...OWN, mode: 'live', contentPrefix } });
      const basic = Buffer.from(`${PARTNER.username}:${PARTNER.password}`).toString('base64');
      const asked = await gateway.post('/api/token_generate', {}, { authorization: `Basic ${basic}` });
      const generate = async (content: string) => {
        const order = { ...SHOP, content, amount: 50_000, orderId: content, transType: 'C', qrType: 0 };
        const authorization = `Bearer ${asked.body.access_token}`;
        return gateway.post('/api/qr/generate-customer', order, { authorization });
      };
      const made = String((await generate('VICTIM')).body.content);
      expect(made).toMatch(/^(?:PB|VQR)\w+ VICTIM$/);
      const [code = ''] = made.split(' ');
      const { message, content = '' } = (await generate(`FAULT ${code}`)).body;
      // The longer code of the public service leaves no room for another one.
      expect([message, String(content).includes(code)]).toEqual([contentPrefix === 'code' ? 'E09' : undefined, false]);
      expect((await generate('FAULT PAID TWICE')).body.content).toMatch(/^(?:PB|VQR)\w+ FAULT PAID/);
    },
  );
});

describe('a gateway that goes live', () => {
  it('MOD-2 a live gateway shows its money to whoever has a token that may look, and to nobody who guesses', async () => {
    const adminToken = 'Token-of-this-test-0123456789';
    const gateway = await testGateway({ config: { ...OWN, mode: 'live', adminToken } });
    const byProxy = { 'x-forwarded-for': '203.0.113.7' };
    const statusOf = async (headers: Record<string, string>, path = '/metrics') =>
      (await fetch(`${gateway.origin}${path}`, { headers })).status;
    const bearer = (token: string) => ({ ...byProxy, authorization: `Bearer ${token}` });
    expect(await statusOf({})).toBe(401);
    expect(await statusOf(byProxy)).toBe(401);
    for (let guess = 0; guess < 40; guess += 1) await statusOf(bearer(`wrong-${guess}`));
    expect(await statusOf(bearer('wrong'))).toBe(429);
    expect(await statusOf(bearer(adminToken))).toBe(200);
    expect(await statusOf(bearer(adminToken), '/_mock/about')).toBe(200);
  });

  it('MOD-2 a live gateway refuses by name whatever only a sandbox does, and says what it is', async () => {
    const gateway = await testGateway({ config: { ...OWN, mode: 'live' } });
    expect(await gateway.mock('/about')).toMatchObject({ mode: 'live', sandbox: false });
    const ask = async (path: string, method = 'POST', body?: string) => {
      const type = body === undefined ? {} : { 'content-type': 'application/json' };
      const headers = { ...gateway.asAdmin, ...type };
      const answer = await fetch(`${gateway.origin}/_mock${path}`, { method, headers, ...(body ? { body } : {}) });
      const { message } = (await answer.json().catch(() => ({}))) as { message?: string };
      return [answer.status, message, answer.headers.get('x-paybox-reason')?.includes('mode: sandbox') ?? false];
    };
    const refused = [400, 'E75', true];
    expect(await ask('/faults', 'POST', '{"fault":"push-lost"}')).toEqual(refused);
    expect(await ask('/faults', 'DELETE')).toEqual(refused);
    expect(await ask('/orders/x/pay')).toEqual(refused);
    expect(await ask('/orders/x/cancel')).toEqual([404, 'E96', false]);
    expect(await ask('/callbacks/x/resend')).toEqual([404, 'E96', false]);
    expect((await ask('/keys/rotate'))[0]).toBe(200);
    expect((await ask('/callbacks/resend'))[0]).toBe(202);
    const authorization = `Bearer ${await gateway.token(PARTNER.username, PARTNER.password)}`;
    const paid = { bankAccount: SHOP.bankAccount, content: 'DH1', amount: 5_000, transType: 'C' };
    const test = await gateway.post('/bank/api/test/transaction-callback', paid, { authorization });
    expect([test.status, test.body.message]).toEqual([400, 'E75']);
  });

  it('MOD-2 `paybox pay` says that there is no test callback, not that its credentials are wrong', async () => {
    const pay = async (config: Record<string, unknown>, ...partner: string[]) => {
      const { origin } = await testGateway({ config });
      return payboxToEnd('pay', '--amount', '1000', '--content', 'DH001', '--gateway', origin, ...partner);
    };
    const live = await pay({ ...OWN, mode: 'live' });
    expect(live).toEqual({ code: 1, output: expect.stringContaining('is live: it has no test callback') });
    expect(live.output).not.toContain('E74');
    expect((await pay({}, '--username', 'nobody')).output).toMatch(/E74.*\n.*name a partner with --username/);
  });

  it.each([
    ['sandbox', { mode: 'sandbox' }, { mode: 'sandbox', sandboxMark: true }],
    ['sandbox without its mark', { mode: 'sandbox', sandboxMark: false }, { mode: 'sandbox', sandboxMark: false }],
    ['sandbox: false of before', { sandbox: false }, { mode: 'live', sandboxMark: false }],
    ['live', { mode: 'live' }, { mode: 'live', sandboxMark: false }],
  ])('MSG-13 tells its boxes: %s', async (_, config, welcome) => {
    const gateway = await testGateway({ config: { ...OWN, ...config } });
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    expect(box.of('welcome')).toMatchObject([welcome]);
  });

  it('MOD-3 tells nobody of the tests of its sandbox, lists them as such, and money as money, also back in a sandbox', async () => {
    const dataDir = await temporaryFolder();
    const partner = await partnerServer((_call, response) => void response.writeHead(500).end());
    const partners = [{ ...PARTNER, callback: { url: partner.url } }];
    const start = (config: object) => testGateway({ dataDir, config: { ...OWN, partners, ...config } });
    const sandbox = await start({ mode: 'sandbox' });
    const authorization = `Bearer ${await sandbox.token(PARTNER.username, PARTNER.password)}`;
    const paid = { bankAccount: SHOP.bankAccount, content: 'DH1', amount: 5_000, transType: 'C' };
    expect((await sandbox.post('/bank/api/test/transaction-callback', paid, { authorization })).status).toBe(200);
    await sandbox.close();

    const live = await start({ mode: 'live' });
    const box = await connectFakeBox({ gateway: live, identity: BOX1, transport: 'mqtt' });
    expect((await webhook(live.origin, 'FT1')).status).toBe(200);
    expect(await live.mock('/payments')).toMatchObject([
      { amount: 70_000, test: false },
      { amount: 5_000, test: true, boxes: [], callback: null },
    ]);
    await eventually('payment', () => box.of('payment').length > 0);
    expect(box.of('payment').map(({ amount }) => amount)).toEqual([70_000]);
    expect(await live.mock('/callbacks')).toMatchObject([{ transactionId: expect.any(String) }]);
    await live.close();

    const again = await start({ mode: 'sandbox' });
    expect((await webhook(again.origin, 'FT2')).status).toBe(200);
    const kinds = (await again.mock('/payments')).map(({ test }) => test);
    expect(kinds).toEqual([true, false, true]);
    expect(await again.mock('/callbacks')).toHaveLength(2);
  });

  it('MOD-3 keeps the tests of a sandbox tests where sandbox: false takes money after it', async () => {
    const dataDir = await temporaryFolder();
    const start = (config: object) => testGateway({ dataDir, config: { ...OWN, ...config } });
    const sandbox = await start({});
    expect((await webhook(sandbox.origin, 'FT1')).status).toBe(200);
    await sandbox.close();
    const shop = await start({ sandbox: false });
    expect((await webhook(shop.origin, 'FT2')).status).toBe(200);
    expect((await shop.mock('/payments')).map(({ test }) => test)).toEqual([false, true]);
  });

  it('MOD-3 takes what a gateway with sandbox: false has had for money, and still tells of it', async () => {
    const dataDir = await temporaryFolder();
    const before = await testGateway({ dataDir, config: { ...OWN, sandbox: false } });
    expect((await webhook(before.origin, 'FT1')).status).toBe(200);
    await before.close();
    const live = await testGateway({ dataDir, config: { ...OWN, mode: 'live' } });
    expect(await live.mock('/payments')).toMatchObject([
      { test: false, boxes: BOXES.map(() => ({ reportedAt: null })) },
    ]);
  });
});

function webhook(origin: string, referenceCode: string): Promise<Response> {
  const body = JSON.stringify({
    ...{ id: Number(referenceCode.slice(2)), gateway: 'Techcombank', transactionDate: vietnamTime() },
    ...{
      accountNumber: SHOP.bankAccount,
      code: null,
      content: 'ck tien pho',
      transferType: 'in',
      transferAmount: 70_000,
    },
    ...{ accumulated: 0, subAccount: null, referenceCode, description: '' },
  });
  const headers = { 'content-type': 'application/json', authorization: `Apikey ${KEY}` };
  return fetch(`${origin}/hooks/feed`, { method: 'POST', headers, body });
}

/** Now, as banks write it. */
function vietnamTime(): string {
  const now = new Date(Date.now() + 7 * 3_600_000).toISOString();
  return now.slice(0, 19).replace('T', ' ');
}
