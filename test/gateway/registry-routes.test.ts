import { expect, it } from 'vitest';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { ACCOUNT, BOX1, BOX2, BOX3, OTHER_ACCOUNT, type TestGateway, testGateway } from './harness.ts';

async function admin({ origin }: TestGateway, method: string, path: string, body?: unknown) {
  const json = { 'content-type': 'application/json' };
  const how = body === undefined ? {} : { headers: json, body: JSON.stringify(body) };
  const answer = await fetch(`${origin}/admin/v1/${path}`, { method, ...how });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

const STORE = { config: { registry: 'store' } };

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
  expect(JSON.stringify([first, partners])).not.toMatch(/secret|password|callback/);
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
  await eventually('its refusal', () => again.of('refused').some((it) => it.code === 'NOT_REGISTERED'));
  expect((await gateway.sendQr({ bankAccount: ACCOUNT.bankAccount })).body.status).toBe('FAILED');
  await expect(connectFakeBox({ gateway, identity: BOX1, transport })).rejects.toThrow();
  await admin(gateway, 'POST', `boxes/${BOX1.terminalCode}/enable`, {});
  const enabled = await connectFakeBox({ gateway, identity: BOX1, transport });
  expect(enabled.of('welcome')).toHaveLength(1);
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
