import { expect, it } from 'vitest';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { admin } from './admin.ts';
import { ACCOUNT, BOX1, BOX2, BOX3, OTHER_ACCOUNT, partnerServer, processed, testGateway } from './harness.ts';

const STORE = { config: { registry: 'store' } };
const SIGNING = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

it('REG-4 adds a partner, an account and a box, links them, and names what it refuses', async () => {
  const gateway = await testGateway(STORE);
  const calls: [method: string, path: string, body: unknown, status: number, code?: string][] = [
    ['POST', 'partners', { username: 'shop' }, 201],
    ['POST', 'partners', { username: 'shop' }, 409, 'NAME_TAKEN'],
    ['POST', 'partners', { username: 'a b' }, 400, 'E46'],
    ['POST', 'accounts', { bankAccount: '77', bankCode: 'MB', userBankName: 'A', partner: 'shop' }, 201],
    ['POST', 'accounts', { bankAccount: '78', bankCode: 'MB', userBankName: 'A', partner: 'nobody' }, 400, 'E46'],
    ['POST', 'accounts', { bankAccount: '78', bankCode: 'NONE', userBankName: 'A' }, 400, 'E46'],
    ['POST', 'boxes', { terminalCode: 'VVB000077', serialNumber: 'VVB900077', account: '77' }, 201],
    ['POST', 'boxes', { terminalCode: 'VVB000078', serialNumber: 'VVB900077' }, 409, 'NAME_TAKEN'],
    ['DELETE', 'partners/shop', undefined, 409, 'STILL_IN_USE'],
    ['DELETE', 'accounts/77', undefined, 409, 'STILL_IN_USE'],
    ['POST', 'boxes/VVB000077/link', { account: '79' }, 400, 'E46'],
    ['POST', 'boxes/VVB000077/unlink', {}, 200],
    ['DELETE', 'accounts/77', undefined, 200],
    ['DELETE', 'partners/shop', undefined, 200],
    ['DELETE', 'boxes/VVB000077', undefined, 200],
    ['DELETE', 'boxes/VVB000077', undefined, 404, 'E96'],
  ];
  for (const [method, path, body, status, code] of calls) {
    const answer = await admin(gateway, method, path, body);
    expect([method, path, answer.status, code === undefined ? undefined : answer.body.message]).toEqual([
      ...[method, path, status],
      code,
    ]);
  }
  const audit = await admin(gateway, 'GET', 'audit?target=boxes/VVB000077');
  expect(audit.body).toMatchObject([
    { who: 'loopback', what: 'removed' },
    { who: 'loopback', what: 'unlinked', detail: { account: null } },
    { who: 'loopback', what: 'added' },
  ]);
});

it('REG-4 lists page after page, and no secret', async () => {
  const gateway = await testGateway(STORE);
  const first = await admin(gateway, 'GET', 'boxes?limit=2');
  expect(first.body).toMatchObject([{ terminalCode: BOX1.terminalCode }, { terminalCode: BOX2.terminalCode }]);
  const next = await admin(gateway, 'GET', `boxes?limit=1&after=${BOX2.terminalCode}`);
  expect(next.body).toMatchObject([{ terminalCode: BOX3.terminalCode, managed: 'store', disabled: false }]);
  const partners = await admin(gateway, 'GET', 'partners');
  expect(JSON.stringify([first, partners])).not.toMatch(/[-"]secret|password/);
});

it('REG-5 gives a partner a new password, once, and the old one ends', async () => {
  const gateway = await testGateway(STORE);
  const { password } = (await admin(gateway, 'POST', 'partners/demo/rotate', {})).body;
  expect(typeof (await gateway.token('demo', String(password)))).toBe('string');
  const old = await gateway.post('/api/token_generate', {}, { authorization: `Basic ${btoa('demo:demo-secret')}` });
  expect(old.status).toBe(401);
});

it('REG-6 refuses a disabled partner, whose token ends too, until it is enabled', async () => {
  const gateway = await testGateway(STORE);
  const authorization = `Bearer ${await gateway.token()}`;
  await admin(gateway, 'POST', 'partners/demo/disable', {});
  expect((await gateway.post('/api/qr/generate-customer', {}, { authorization })).status).toBe(401);
  await admin(gateway, 'POST', 'partners/demo/enable', {});
  expect((await gateway.post('/api/qr/generate-customer', {}, { authorization })).status).toBe(400);
});

it.each(['mqtt', 'http'] as const)('REG-5 REG-6 a box over %s is linked anew, then disabled', async (transport) => {
  const gateway = await testGateway(STORE);
  const box = await connectFakeBox({ gateway, identity: BOX1, transport });
  expect((await gateway.sendQr()).body.status).toBe('SUCCESS');
  await admin(gateway, 'POST', `boxes/${BOX1.terminalCode}/link`, { account: OTHER_ACCOUNT.bankAccount });
  await eventually('the end of its session', () => box.of('refused').some((it) => it.code === 'SESSION_ENDED'));
  const again = await connectFakeBox({ gateway, identity: BOX1, transport });
  expect(again.of('welcome')).toMatchObject([{ link: OTHER_ACCOUNT }]);
  await admin(gateway, 'POST', `boxes/${BOX1.terminalCode}/disable`, {});
  await eventually('its refusal', () => again.of('refused').some((it) => it.disabled === true));
  expect((await gateway.sendQr({ bankAccount: ACCOUNT.bankAccount })).body.status).toBe('FAILED');
  const asking = await connectFakeBox({ gateway, identity: BOX1, transport, hello: false });
  await asking.hello();
  expect(await asking.next('refused')).toMatchObject({ code: 'NOT_REGISTERED', disabled: true });
  expect(asking.of('welcome')).toEqual([]);
  expect((await admin(gateway, 'GET', `boxes/${BOX1.terminalCode}`)).body).toMatchObject({ online: false });
  await admin(gateway, 'POST', `boxes/${BOX1.terminalCode}/enable`, {});
  const enabled = await connectFakeBox({ gateway, identity: BOX1, transport });
  expect(enabled.of('welcome')).toHaveLength(1);
});

it('REG-5 CBK-7 a box that is linked anew hears of no money to the account of before: neither what waited nor its order', async () => {
  const gateway = await testGateway({ ...STORE, callback: { url: (await partnerServer(processed)).url } });
  expect((await gateway.testCallback({ content: 'before' })).status).toBe(200);
  const box = await connectFakeBox({ gateway, identity: BOX2, transport: 'http' });
  expect((await gateway.sendQr({ terminalCode: BOX2.terminalCode, serialNumber: BOX2.serialNumber })).body.status).toBe(
    'SUCCESS',
  );
  for (const { terminalCode } of [BOX1, BOX2]) {
    await admin(gateway, 'POST', `boxes/${terminalCode}/link`, { account: OTHER_ACCOUNT.bankAccount });
  }
  await eventually('the end of its session', () => box.of('refused').length > 0);
  expect((await gateway.testCallback()).status).toBe(200);
  const again = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
  const { bankAccount, bankCode } = OTHER_ACCOUNT;
  expect((await gateway.testCallback({ bankAccount, bankCode, content: 'own' })).status).toBe(200);
  await eventually('its own payment', () => again.of('payment').some(({ content }) => content === 'own'));
  expect(new Set(again.of('payment').map(({ content }) => content))).toEqual(new Set(['own']));
  const payments =
    await gateway.mock<{ content: string; boxes: { terminalCode: string; toldAt: unknown }[] }[]>('/payments');
  expect(payments.map(({ content, boxes }) => [content, boxes.length])).toEqual([
    ['own', 3],
    ['DH001', 0],
    ['before', 2],
  ]);
  expect(gateway.logged('notices-dropped')).toMatchObject([{ box: BOX1.terminalCode, count: 1 }]);
});

const PARTNER_URL = 'https://shop.example/hook';

it('REG-4 REG-9 changes what is named, and tells who comes too late', async () => {
  const gateway = await testGateway(STORE);
  const seen = async (path: string) => (await admin(gateway, 'GET', path)).body;
  await admin(gateway, 'PATCH', 'partners/demo', { callback: { url: PARTNER_URL, signingSecret: SIGNING } });
  expect(await seen('partners/demo')).toMatchObject({ callback: { url: PARTNER_URL, auth: 'none', signed: true } });
  await admin(gateway, 'PATCH', 'partners/demo', { callback: null });
  expect(await seen('partners/demo')).toMatchObject({ callback: null });
  const account = `accounts/${ACCOUNT.bankAccount}`;
  await admin(gateway, 'PATCH', account, { userBankName: 'PHAM VAN D', contentPrefix: 'code' });
  expect(await seen(account)).toMatchObject({ userBankName: 'PHAM VAN D', bankCode: 'MB', contentPrefix: 'code' });
  expect(String((await gateway.generate({ userBankName: 'PHAM VAN D' })).body.content)).toMatch(
    /^PB[2-9A-Z]{7} DH001$/,
  );
  expect((await admin(gateway, 'PATCH', account, { bankAccount: '1' })).body).toMatchObject({ message: 'E46' });
  const box = `boxes/${BOX3.terminalCode}`;
  const taken = await admin(gateway, 'PATCH', box, { serialNumber: BOX1.serialNumber });
  expect([taken.status, taken.body.message]).toEqual([409, 'NAME_TAKEN']);
  // Two admins have read the same row, and change it at the same time.
  const { changedAt } = await seen(box);
  const both = await Promise.all(
    ['VVB900031', 'VVB900032'].map((serialNumber) =>
      admin(gateway, 'PATCH', box, { serialNumber }, { 'if-match': `"${changedAt}"` }),
    ),
  );
  expect(both.map((it) => it.status).sort()).toEqual([200, 409]);
  const lost = both.find((it) => it.status === 409);
  expect(lost?.body).toMatchObject({ message: 'ROW_CHANGED', reason: expect.stringContaining('read it again') });
  const won = both.findIndex((it) => it.status === 200);
  expect(await seen(box)).toMatchObject({ serialNumber: ['VVB900031', 'VVB900032'][won] });
  expect(JSON.stringify([await seen('audit'), gateway.log])).not.toContain(SIGNING);
});

it('REG-4 adds a row once, whoever asks at the same time', async () => {
  const gateway = await testGateway(STORE);
  const both = await Promise.all([1, 2].map(() => admin(gateway, 'POST', 'partners', { username: 'shop' })));
  expect(both.map((it) => it.status).sort()).toEqual([201, 409]);
  const password = String(both.find((it) => it.status === 201)?.body.password);
  expect(typeof (await gateway.token('shop', password))).toBe('string');
});

it('REG-5 gives a box a new secret, or has it enrol, and the session of before ends', async () => {
  const gateway = await testGateway(STORE);
  const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
  const path = `boxes/${BOX1.terminalCode}/rotate`;
  const { secret } = (await admin(gateway, 'POST', path)).body;
  await eventually('its refusal', () => box.of('refused').some((it) => it.code === 'NOT_REGISTERED'));
  await expect(connectFakeBox({ gateway, identity: BOX1, transport: 'http' })).rejects.toThrow();
  const again = await connectFakeBox({ gateway, identity: { ...BOX1, secret: String(secret) }, transport: 'http' });
  expect(again.of('welcome')).toHaveLength(1);
  expect((await admin(gateway, 'POST', path, { enrol: true })).body).toEqual({ status: 'SUCCESS', message: '' });
  expect((await admin(gateway, 'GET', `boxes/${BOX1.terminalCode}`)).body).toMatchObject({
    enrols: true,
    hasSecret: false,
  });
});

it('REG-3 the demo of /_mock/about and the faults for one partner follow the registry', async () => {
  const partners = [{ username: 'demo', password: 'demo-secret', accounts: [ACCOUNT.bankAccount] }];
  const accounts = [ACCOUNT, OTHER_ACCOUNT];
  const gateway = await testGateway({ config: { registry: 'store', partners, accounts } });
  const about = () => gateway.mock('/about');
  expect(await about()).toMatchObject({
    partner: { username: 'demo', password: 'demo-secret' },
    account: ACCOUNT,
    box: { terminalCode: BOX1.terminalCode },
  });
  const magicOf = async () => {
    const { faults } = await gateway.mock<{ faults: { name: string; magic: string | null }[] }>('/faults');
    return faults.find(({ name }) => name === 'broker-killed')?.magic;
  };
  expect(await magicOf()).toBe('FAULT BROKER KILLED');
  await admin(gateway, 'POST', 'partners', { username: 'second' });
  await eventually('two partners', async () => (await magicOf()) === null);
  await admin(gateway, 'DELETE', 'partners/second');
  await eventually('one partner', async () => (await magicOf()) !== null);
  await admin(gateway, 'POST', 'partners/demo/rotate');
  for (const { terminalCode } of [BOX1, BOX2]) await admin(gateway, 'POST', `boxes/${terminalCode}/unlink`);
  expect(await about()).toMatchObject({
    partner: { username: 'demo', password: null },
    account: OTHER_ACCOUNT,
    box: { terminalCode: 'VVB000004' },
  });
});

it('REG-2 REG-4 changes no row that the file manages', async () => {
  const gateway = await testGateway();
  for (const path of [
    `boxes/${BOX1.terminalCode}/disable`,
    'partners/demo/rotate',
    `accounts/${ACCOUNT.bankAccount}/unlink`,
  ]) {
    const answer = await admin(gateway, 'POST', path, {});
    expect([path, answer.status, answer.body.message]).toEqual([path, 409, 'MANAGED_BY_FILE']);
  }
});
