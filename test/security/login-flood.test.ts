import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Logins } from '../../src/gateway/common/logins.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import { ACCOUNT, BOX1, BOX2, type TestGateway, testGateway } from '../gateway/harness.ts';
import { sepayBody, tellHook } from '../gateway/hooks.ts';
import { loginAs } from '../gateway/mqtt-login.ts';
import { askFrom, basicOf } from '../support/callers.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';

const GUESSES = 40;
const SESSION = { 'paybox-session': '0a3c1d52-8d6b-4b7e-8f0e-5d2f1c7b9a02' };
const NEIGHBOUR = '127.0.0.1';

/** Wrong logins, one after the other; the status of the last. */
async function guess(gateway: TestGateway, user: string, from = NEIGHBOUR): Promise<number | undefined> {
  let last: number | undefined;
  for (let n = 0; n < GUESSES; n += 1) {
    const headers = { authorization: basicOf(user, `guess-${n}`), ...SESSION };
    last = (await askFrom(from, `${gateway.origin}/box/v1/messages`, { headers })).status;
  }
  return last;
}

describe.each(['http', 'mqtt'] as const)('a box over %s at whose address somebody guesses', (transport) => {
  it('TOK-6 THR-35 BOX-HTTP-5 goes on, comes back when its line breaks, and so does one that was never there', async () => {
    const gateway = await testGateway();
    const box = await connectFakeBox({ gateway, identity: BOX1, transport });
    await gateway.generate();
    for (const user of ['nobody', BOX1.terminalCode, BOX2.terminalCode]) {
      expect([user, await guess(gateway, user)]).toEqual([user, 429]);
    }
    expect((await gateway.sendQr()).body).toMatchObject({ status: 'SUCCESS' });
    box.vanish();
    const again = await connectFakeBox({ gateway, identity: BOX1, transport });
    expect((await gateway.sendQr({ orderId: 'DH002' })).body).toMatchObject({ status: 'SUCCESS' });
    expect(again.of('show')).toHaveLength(1);
    await connectFakeBox({ gateway, identity: BOX2, transport });
    // Whoever has a wrong secret is still refused, without a word about it.
    expect(await guess(gateway, BOX1.terminalCode)).toBe(429);
  });
});

it('VQD-1 THR-35 boxes of the dialect with a word for a password stay connected while somebody guesses it', async () => {
  const login = { username: 'vietqr-boxes', password: 'a-word' };
  const gateway = await testGateway({
    config: { vietqrBoxes: { checkSumSalt: 'salt', boxIdSalt: 'salt', login } },
  });
  const enter = (password: string) =>
    loginAs(gateway, { terminalCode: login.username, secret: '' }, { password: Buffer.from(password) });
  const { client } = await enter(login.password);
  for (let n = 0; n < GUESSES; n += 1) await expect(enter(`guess-${n}`)).rejects.toThrow();
  await expect(enter('guess')).rejects.toMatchObject({ code: 3 });
  await client.publishAsync('vietqr/boxes/nothing', 'x').catch(() => undefined);
  expect(client.connected).toBe(true);
});

it('BOX-HTTP-5 a post in a session in use is not asked for its login again; one with another password is', async () => {
  const gateway = await testGateway();
  const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
  const check = vi.spyOn(Logins.prototype, 'check');
  onTestFinished(() => check.mockRestore());
  const post = async (password: string, sessionId = box.sessionId) => {
    const headers = { authorization: basicOf(BOX1.terminalCode, password), 'paybox-session': sessionId };
    const how = { headers: { ...headers, 'content-type': 'application/jose' }, body: 'no message' };
    return (await askFrom(NEIGHBOUR, `${gateway.origin}/box/v1/messages`, how)).status;
  };
  expect([await post(loginOf(BOX1.secret)), check.mock.calls.length]).toEqual([400, 0]);
  expect([await post('another'), check.mock.calls.length]).toEqual([401, 1]);
  expect([await post(loginOf(BOX1.secret), crypto.randomUUID()), check.mock.calls.length]).toEqual([409, 2]);
});

describe('the secret of a source that somebody guesses', () => {
  const SOURCE = { kind: 'sepay', name: 'sepay', auth: { kind: 'apikey', key: '4821' } };
  const byKey = (key: string) => ({ headers: { authorization: `Apikey ${key}` } });
  const forged = sepayBody({ transferAmount: 9_000_000 });

  it('SRC-5 THR-36 is not found, because beyond the limit nothing is compared, and the log says who tries', async () => {
    const clock = new VirtualClock(Date.now());
    const gateway = await testGateway({ clock, config: { sources: [SOURCE] } });
    const statuses: number[] = [];
    for (let key = 4_750; key <= 4_850; key += 1) {
      statuses.push((await tellHook(gateway, forged, byKey(String(key)))).status);
    }
    expect(statuses).toEqual([...Array(30).fill(401), ...Array(71).fill(429)]);
    expect(await gateway.mock('/payments')).toEqual([]);
    const refused = gateway.logged('request-refused');
    expect(refused).toHaveLength(101);
    expect(refused.at(-1)).toMatchObject({ status: 429, code: 'E74', path: '/hooks/sepay', address: NEIGHBOUR });
    expect(JSON.stringify(refused)).not.toContain('4821');
    // The source tells again later.
    await clock.advance(2_000);
    expect((await tellHook(gateway, sepayBody(), byKey('4821'))).status).toBe(200);
    expect(await gateway.mock('/payments')).toMatchObject([{ amount: 50_000 }]);
  });

  it('SRC-5 THR-36 guesses from many addresses do not shut out a source that has logged in before', async () => {
    const gateway = await testGateway({ clock: new VirtualClock(Date.now()), config: { sources: [SOURCE] } });
    const tell = (from: string, key: string, body: object = forged) => {
      const headers = { 'content-type': 'application/json', ...byKey(key).headers };
      return askFrom(from, `${gateway.origin}/hooks/sepay`, { headers, body: JSON.stringify(body) });
    };
    expect((await tell('127.0.1.1', '4821', sepayBody())).status).toBe(200);
    for (let n = 0; n < 120; n += 1) expect((await tell(`127.0.0.${10 + (n % 8)}`, `${n}`)).status).toBe(401);
    expect((await tell('127.0.0.99', '4821')).status).toBe(429);
    expect((await tell('127.0.1.1', '4821', sepayBody({ id: 2, referenceCode: 'FT2' }))).status).toBe(200);
    expect((await gateway.mock('/payments')).map(({ amount }) => amount)).toEqual([50_000, 50_000]);
  });

  it('SRC-5 SRC-24 THR-36 guesses shut out new logins of the public service, while its bearer is still accepted', async () => {
    const login = { username: 'shop', password: 'word' };
    const gateway = await testGateway({ config: { sources: [{ kind: 'vietqr', name: 'vietqr', ...login }] } });
    const ask = (path: string, authorization: string, body?: object) => {
      const headers = { 'content-type': 'application/json', authorization };
      const how = { headers, ...(body && { body: JSON.stringify(body) }) };
      return askFrom(NEIGHBOUR, `${gateway.origin}/hooks/vietqr${path}`, how);
    };
    const token = await ask('/api/token_generate', basicOf('shop', 'word'));
    const { access_token: bearer } = JSON.parse(token.body) as { access_token: string };
    for (let n = 0; n < GUESSES; n += 1) await ask('/api/token_generate', basicOf('shop', `guess-${n}`));
    const limited = await ask('/api/token_generate', basicOf('shop', 'word'));
    expect([limited.status, JSON.parse(limited.body)]).toMatchObject([429, { error: true, errorReason: 'E74' }]);
    const money = { bankaccount: ACCOUNT.bankAccount, amount: 50_000, transType: 'C', content: 'DH001' };
    const told = { ...money, transactionid: 'T1', transactiontime: Date.now(), referencenumber: 'FT1' };
    expect((await ask('/bank/api/transaction-sync', `Bearer ${bearer}`, told)).status).toBe(200);
  });

  it('SRC-5 THR-36 is heard whatever others do, where it has 128 bits', async () => {
    const key = 'Key-Of-The-Source-0123';
    const gateway = await testGateway({ config: { sources: [{ ...SOURCE, auth: { kind: 'apikey', key } }] } });
    for (let n = 0; n < GUESSES; n += 1) await tellHook(gateway, forged, byKey(`guess-${n}`));
    expect((await tellHook(gateway, forged, byKey('guess'))).status).toBe(429);
    expect((await tellHook(gateway, sepayBody(), byKey(key))).status).toBe(200);
    await eventually('the payment', async () => (await gateway.mock('/payments')).length === 1);
  });
});
