import { describe, expect, it } from 'vitest';
import { missing, note, postgresServer } from '../support/stores.ts';
import { callAt, type Gateways, PARTNER, type Row, startGateways, type TestGateway } from './gateways.ts';

const credit = {
  sourceId: 'forged',
  reference: 'R1',
  virtualAccount: '',
  amount: 50_000,
  text: 'DH1',
  bankTimeMs: null,
};

describe.skipIf(missing)(`what strangers ask of one of several gateways${note}`, () => {
  const server = postgresServer();
  const open = async (): Promise<{ cluster: Gateways; gateways: TestGateway[]; databaseUrl: string }> => {
    const databaseUrl = await server().database();
    const cluster = await startGateways({ databaseUrl, gateways: 2 });
    return { cluster, gateways: cluster.gateways, databaseUrl };
  };

  it('SHA-9 a gateway stores no credit at the address where gateways of earlier versions carried them', async () => {
    const { cluster, gateways } = await open();
    for (const gateway of gateways) {
      const bankAccount = cluster.accounts[0]?.bankAccount;
      for (const path of ['/cluster/credits', '/cluster/%63redits', '/cluster/%%363redits', '//cluster/credits']) {
        for (const task of ['route', 'store']) {
          const answer = await fetch(`${gateway.origin}${path}`, {
            method: 'POST',
            headers: { 'content-type': 'application/json', 'x-paybox-own': 'guessed', 'x-paybox-shard': '0' },
            body: JSON.stringify({ task, told: { source: 'x', credit: { ...credit, bankAccount }, caughtUp: false } }),
          });
          expect([path, task, answer.status]).toEqual([path, task, 404]);
        }
      }
      expect((await gateway.admin('/_mock/credits')).body).toEqual([]);
      expect((await gateway.admin('/_mock/payments')).body).toEqual([]);
    }
  });

  it('SHA-5 every gateway reads the escapes of a path the same way', async () => {
    const { cluster, gateways } = await open();
    const [first, second] = gateways as [TestGateway, TestGateway];
    const bankAccount = cluster.accounts[0]?.bankAccount;
    const paid = { bankAccount, content: 'DH1', amount: 5_000, transType: 'C' };
    for (const gateway of [first, second]) {
      const twice = await callAt(gateway, '/bank/api/test/transaction-%%363allback', paid);
      expect([twice.status, twice.body.message]).toEqual([404, 'E46']);
      const once = await callAt(gateway, '/api/qr/%67enerate-customer', {
        ...paid,
        bankCode: 'MB',
        userBankName: 'SHOP',
      });
      expect(once.status).toBe(200);
    }
    expect((await second.admin('/_mock/payments')).body).toEqual([]);
    expect((await second.admin('/_mock/orders')).body).toHaveLength(2);
  });

  it('GEN-4 every gateway shows the picture of a QR, and none of a made-up one', async () => {
    const { cluster, gateways } = await open();
    for (const [n, { bankAccount }] of cluster.accounts.entries()) {
      const order = {
        bankAccount,
        bankCode: 'MB',
        userBankName: 'SHOP',
        amount: 5_000,
        content: `DH${n}`,
        qrType: 0,
        transType: 'C',
      };
      const { body } = await callAt(gateways[n % 2] as TestGateway, '/api/qr/generate-customer', order);
      const { pathname } = new URL(String(body.qrLink));
      for (const { origin } of gateways) expect((await fetch(`${origin}${pathname}`)).status).toBe(200);
    }
    for (const { origin } of gateways) {
      for (const ref of ['none', 'A'.repeat(22)]) {
        const answer = await fetch(`${origin}/qr/${ref}`);
        expect([answer.status, ((await answer.json()) as Row).message]).toEqual([404, 'E96']);
      }
    }
  });

  it('TOK-3 TOK-5 every gateway accepts a call for a token with a form, or with JSON of no named type, as a gateway alone does', async () => {
    const { gateways } = await open();
    const authorization = `Basic ${Buffer.from(`${PARTNER.username}:${PARTNER.password}`).toString('base64')}`;
    for (const { baseUrl } of gateways) {
      for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'application/json']) {
        const headers = { authorization, 'content-type': type };
        const answer = await fetch(`${baseUrl}/api/token_generate`, { method: 'POST', headers, body: '{}' });
        expect([type, answer.status]).toEqual([type, 200]);
      }
      const text = await fetch(`${baseUrl}/api/tid/send-qr`, {
        method: 'POST',
        headers: { 'content-type': 'text/plain' },
        body: 'x',
      });
      expect(text.status).toBe(401);
    }
  });

  it('SHA-5 a gateway answers what it has taken before it stops', async () => {
    const { cluster, gateways, databaseUrl } = await open();
    const [first] = gateways as [TestGateway];
    const order = {
      bankAccount: cluster.accounts[0]?.bankAccount,
      bankCode: 'MB',
      userBankName: 'SHOP',
      amount: 5_000,
      content: 'DH1',
      qrType: 0,
      transType: 'C',
    };
    // Holds the answer up for a while.
    const locked = server().run(databaseUrl, 'do $$ begin lock table orders; perform pg_sleep(0.8); end $$');
    const call = callAt(first, '/api/qr/generate-customer', order);
    await server().run(databaseUrl, 'select pg_sleep(0.3)');
    const closed = first.close();
    expect((await call).status).toBe(200);
    await Promise.all([closed, locked]);
  });
});
