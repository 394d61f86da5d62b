import { expect, it } from 'vitest';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { listServer, sepayList } from '../support/provider-lists.ts';
import { type HookCall, moved, PROVIDERS, type Provider } from '../support/providers.ts';
import { admin } from './admin.ts';
import { ACCOUNT, BOX1, BOXES, type TestGateway, testGateway } from './harness.ts';

const casso = PROVIDERS['casso V2'] as Provider;
const sepay = PROVIDERS['sepay by key'] as Provider;

const post = async ({ origin }: TestGateway, name: string, { path, headers, body }: HookCall) => {
  const answer = await fetch(`${origin}/hooks/${name}${path}`, { method: 'POST', headers, body });
  await answer.body?.cancel();
  return answer.status;
};
const money = (id: number) => moved({ id, reference: `FT${id}`, atMs: Date.now(), bankAccount: ACCOUNT.bankAccount });
const told = (provider: Provider, id: number, key?: string) =>
  provider.call(provider.body(money(id)), { nowMs: Date.now(), ...(key && { key }) });

it('REG-8 a source that is added is heard at once, then changed, disabled, enabled and removed', async () => {
  const dataDir = await temporaryFolder();
  const gateway = await testGateway({ dataDir });
  const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
  const ask = async (method: string, path: string, body?: unknown) => {
    const answer = await admin(gateway, method, `sources${path}`, body);
    return [answer.status, answer.body.message];
  };
  expect(await post(gateway, 'till', told(sepay, 1))).toBe(404);
  expect(await ask('POST', '', { name: 'till', ...sepay.options })).toEqual([201, '']);
  expect(await ask('POST', '', { name: 'till', ...sepay.options })).toEqual([409, 'NAME_TAKEN']);
  expect(await ask('POST', '', { name: 'other', kind: 'sepay' })).toEqual([400, 'E46']);
  expect(await post(gateway, 'till', told(sepay, 1))).toBe(200);
  expect(await box.next('payment')).toMatchObject({ amount: 50_000 });
  expect(await post(gateway, 'till', told(sepay, 2, 'wrong'))).toBe(401);
  const { key } = (await admin(gateway, 'POST', 'sources/till/rotate')).body;
  expect(await post(gateway, 'till', told(sepay, 2))).toBe(401);
  expect(await post(gateway, 'till', told(sepay, 2, String(key)))).toBe(200);
  expect(await ask('PATCH', '/till', { auth: { kind: 'apikey', key: sepay.key } })).toEqual([200, '']);
  expect(await post(gateway, 'till', told(sepay, 3))).toBe(200);
  expect(await ask('PATCH', '/till', { kind: 'payos' })).toEqual([400, 'E46']);
  expect(await ask('POST', '/till/disable')).toEqual([200, '']);
  // It tells again later: 404 might end that.
  expect(await post(gateway, 'till', told(sepay, 4))).toBe(503);
  expect(await ask('POST', '/till/enable')).toEqual([200, '']);
  expect(await post(gateway, 'till', told(sepay, 4))).toBe(200);
  await eventually('all payments', () => box.of('payment').length === 4);
  const seen = await admin(gateway, 'GET', 'sources');
  expect(seen.body).toMatchObject([
    {
      name: 'till',
      kind: 'sepay',
      managed: 'store',
      hook: '/hooks/till',
      options: { auth: { kind: 'apikey', key: true } },
    },
  ]);
  const audit = await admin(gateway, 'GET', 'audit?target=sources/till');
  expect(Object.values(audit.body).map((it) => (it as { what: string }).what)).toEqual([
    ...['enabled', 'disabled', 'changed', 'rotated', 'added'],
  ]);
  const everything = JSON.stringify([seen.body, audit.body, gateway.log, await gateway.mock('/wire')]);
  for (const secret of [sepay.key, String(key)]) expect(everything).not.toContain(secret);
  await gateway.close();

  const again = await testGateway({ dataDir });
  expect(await post(again, 'till', told(sepay, 5))).toBe(200);
  expect((await admin(again, 'DELETE', 'sources/till')).status).toBe(200);
  expect(await post(again, 'till', told(sepay, 6))).toBe(404);
  // The ids of another kind could be taken for credits that this one told of.
  const other = await admin(again, 'POST', 'sources', { name: 'till', ...PROVIDERS.payos?.options });
  expect([other.status, other.body.message]).toEqual([409, 'NAME_TAKEN']);
  expect((await admin(again, 'POST', 'sources', { name: 'till', ...sepay.options })).status).toBe(201);
  expect(await post(again, 'till', told(sepay, 5))).toBe(200);
  expect((await again.mock('/credits')).length).toBe(5);
});

it('REG-8 the key of before is taken beside a new one where the provider changes it step by step', async () => {
  const gateway = await testGateway();
  await admin(gateway, 'POST', 'sources', { name: 'feed', ...casso.options });
  const none = await admin(gateway, 'POST', 'sources/feed/rotate', {});
  expect([none.status, none.body.message]).toEqual([400, 'E46']);
  const rotated = await admin(gateway, 'POST', 'sources/feed/rotate', { key: 'new-key-of-casso' });
  expect(rotated.body).toEqual({ status: 'SUCCESS', message: '' });
  expect(await post(gateway, 'feed', told(casso, 1))).toBe(200);
  expect(await post(gateway, 'feed', told(casso, 2, 'new-key-of-casso'))).toBe(200);
  await admin(gateway, 'POST', 'sources/feed/rotate', { key: 'newest-key-of-casso' });
  expect(await post(gateway, 'feed', told(casso, 3))).toBe(401);
});

it('REG-8 the token of casso V1 of before is refused at once', async () => {
  const gateway = await testGateway();
  const body = JSON.stringify({
    error: 0,
    data: [{ id: 7, tid: 'FT7', description: 'DH001', amount: 50_000, bank_sub_acc_id: ACCOUNT.bankAccount }],
  });
  const tell = async (token: string) => {
    const headers = { 'secure-token': token, 'content-type': 'application/json' };
    return (await fetch(`${gateway.origin}/hooks/feed`, { method: 'POST', headers, body })).status;
  };
  const auth = { kind: 'secure-token', token: 'token-of-before' };
  await admin(gateway, 'POST', 'sources', { name: 'feed', kind: 'casso', auth });
  expect(await tell('token-of-before')).toBe(200);
  await admin(gateway, 'POST', 'sources/feed/rotate', { key: 'token-from-now-on' });
  expect([await tell('token-of-before'), await tell('token-from-now-on')]).toEqual([401, 200]);
});

it('REG-8 SRC-27 the list of a source that is added is asked without a restart', async () => {
  const list = sepayList();
  const atMs = Date.now() - 20 * 60_000;
  list.moved.push(moved({ atMs: atMs - (atMs % 1000), bankAccount: ACCOUNT.bankAccount, reference: 'FT20' }));
  const gateway = await testGateway();
  const options = list.options(await listServer(list));
  expect((await admin(gateway, 'POST', 'sources', { name: 'till', ...options })).status).toBe(201);
  await eventually('its credit', async () => (await gateway.mock('/credits')).length === 1);
  await eventually('the agreement', async () => {
    const { body } = await admin(gateway, 'GET', 'sources/till');
    return body.found === 1 && body.list === true && body.agreedUpTo !== null;
  });
  await admin(gateway, 'POST', 'sources/till/disable');
  const asked = list.asked.length;
  await admin(gateway, 'POST', 'sources/till/enable');
  await eventually('another look at the list', () => list.asked.length > asked);
});

it("REG-8 the file's sources are listed as such, and change in the file only", async () => {
  const gateway = await testGateway({ config: { sources: [{ name: 'till', ...sepay.options }], registry: 'store' } });
  expect((await admin(gateway, 'GET', 'sources/till')).body).toMatchObject({ managed: 'file', kind: 'sepay' });
  for (const [method, path] of [
    ['DELETE', ''],
    ['PATCH', ''],
    ['POST', '/disable'],
    ['POST', '/rotate'],
  ] as const) {
    const answer = await admin(gateway, method, `sources/till${path}`, {});
    expect([method, path, answer.status, answer.body.message]).toEqual([method, path, 409, 'MANAGED_BY_FILE']);
    // They are the file's whatever `registry` says.
    expect(answer.body.reason).toMatch(/change it there and restart the gateway$/);
  }
});

const SHOP = { bankAccount: '19036000111', bankCode: 'TCB', userBankName: 'PHO GIA TRUYEN' };
const OWN = {
  accounts: [SHOP],
  partners: [{ username: 'pho', password: 'pho-own-password', accounts: [SHOP.bankAccount] }],
  boxes: BOXES.map((box) => ({ ...box, account: SHOP.bankAccount })),
};
const SAMPLES: [table: string, row: Record<string, unknown>, problem: string][] = [
  ['partners', { username: 'demo' }, 'expected no partner of the demo'],
  ['partners', { username: 'a', password: 'demo-secret' }, 'expected no partner of the demo'],
  ['partners', { username: 'b', callback: { url: 'http://shop.example/x' } }, 'callback.url: expected https://'],
  [
    'partners',
    { username: 'c', callback: { url: 'https://shop.example/', auth: { kind: 'bearer', token: 'sample-token' } } },
    'callback.auth.token: is a sample',
  ],
  ['accounts', ACCOUNT, 'expected no account of the demo'],
  [
    'boxes',
    { ...BOX1, terminalCode: 'VVB000099', serialNumber: 'VVB900099', secret: 'Sample-Box-Secret-Known-To-All' },
    'secret: is a sample',
  ],
  ['sources', { kind: 'sepay', name: 'x', auth: { kind: 'apikey', key: 'sample-key' } }, 'auth.key: is a sample'],
  [
    'sources',
    { kind: 'sepay', name: 'x', auth: { kind: 'apikey', key: '4821' } },
    'auth.key: expected a secret of 128 bits',
  ],
];

it('MOD-4 a gateway with sandbox: false takes no weak key of a source, neither added nor chosen, and does not start with one', async () => {
  const weak = { kind: 'sepay', name: 'till', auth: { kind: 'apikey', key: '4821' } };
  const money = await testGateway({ config: { ...OWN, sandbox: false } });
  expect(await admin(money, 'POST', 'sources', weak)).toMatchObject({
    status: 400,
    body: { reason: expect.stringContaining('auth.key: expected a secret of 128 bits') },
  });
  const strong = { ...weak, auth: { kind: 'apikey', key: 'Key-Of-The-Source-0123' } };
  expect((await admin(money, 'POST', 'sources', strong)).status).toBe(201);
  expect((await admin(money, 'POST', 'sources/till/rotate', { key: '4821' })).status).toBe(400);
  expect((await admin(money, 'POST', 'sources/till/rotate', {})).status).toBe(200);
  const dataDir = await temporaryFolder();
  const sandbox = await testGateway({ dataDir, config: OWN });
  expect((await admin(sandbox, 'POST', 'sources', weak)).status).toBe(201);
  await sandbox.close();
  const start = testGateway({ dataDir, config: { ...OWN, sandbox: false } });
  await expect(start).rejects.toThrow('sources.till.auth.key: expected a secret of 128 bits');
});

it.each(SAMPLES)(
  'MOD-1 a live gateway takes no row of %s as %j, and does not start with one',
  async (table, row, problem) => {
    const live = await testGateway({ config: { ...OWN, mode: 'live' } });
    const { account: _account, ...free } = row;
    const refused = await admin(live, 'POST', table, free, live.asAdmin);
    expect([refused.status, refused.body.reason]).toEqual([400, expect.stringContaining(problem)]);
    const dataDir = await temporaryFolder();
    const sandbox = await testGateway({ dataDir, config: OWN });
    expect((await admin(sandbox, 'POST', table, free)).status).toBe(201);
    await sandbox.close();
    await expect(testGateway({ dataDir, config: { ...OWN, mode: 'live' } })).rejects.toThrow(problem);
  },
);
