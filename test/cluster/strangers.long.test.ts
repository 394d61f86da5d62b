import { describe, expect, it, onTestFinished } from 'vitest';
import { startPartnerServer } from '../../src/bench/engine/clients/partner-server.ts';
import { eventually } from '../support/net.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import {
  accountIn,
  callAt,
  type Members,
  PARTNER,
  type Row,
  shardsOf,
  startMembers,
  type TestMember,
} from './members.ts';

const SHARDS = 4;

const credit = {
  sourceId: 'forged',
  reference: 'R1',
  virtualAccount: '',
  amount: 50_000,
  text: 'DH1',
  bankTimeMs: null,
};

describe.skipIf(missing)(`what strangers ask of a member${note}`, () => {
  const server = postgresServer();
  const open = async (
    partner: object = PARTNER,
  ): Promise<{ cluster: Members; members: TestMember[]; databaseUrl: string }> => {
    const databaseUrl = await server().database();
    const cluster = await startMembers({ databaseUrl, members: 2, shards: SHARDS, accounts: 12, partner });
    return { cluster, members: cluster.members, databaseUrl };
  };

  it('SHA-9 a member stores no credit that no member has sent, however its path is written', async () => {
    const { cluster, members } = await open();
    for (const member of members) {
      const bankAccount = accountIn(cluster, [0]);
      for (const path of ['/cluster/credits', '/cluster/%63redits', '/cluster/%%363redits', '//cluster/credits']) {
        for (const task of ['route', 'store']) {
          const answer = await fetch(`${member.origin}${path}`, {
            method: 'POST',
            headers: { 'content-type': 'application/json', 'x-paybox-own': 'guessed', 'x-paybox-shard': '0' },
            body: JSON.stringify({ task, told: { source: 'x', credit: { ...credit, bankAccount }, caughtUp: false } }),
          });
          expect([path, task, answer.status]).toEqual([path, task, 404]);
        }
      }
      expect((await member.admin('/_mock/credits')).body).toEqual([]);
      expect((await member.admin('/_mock/payments')).body).toEqual([]);
    }
  });

  it('SHA-5 every member reads the escapes of a path the same way', async () => {
    const { cluster, members } = await open();
    const [first, second] = members as [TestMember, TestMember];
    const bankAccount = accountIn(cluster, await shardsOf(first));
    const paid = { bankAccount, content: 'DH1', amount: 5_000, transType: 'C' };
    for (const member of [first, second]) {
      const twice = await callAt(member, '/bank/api/test/transaction-%%363allback', paid);
      expect([twice.status, twice.body.message]).toEqual([404, 'E46']);
      const once = await callAt(member, '/api/qr/%67enerate-customer', {
        ...paid,
        bankCode: 'MB',
        userBankName: 'SHOP',
      });
      expect(once.status).toBe(200);
    }
    expect((await second.admin('/_mock/payments')).body).toEqual([]);
    expect((await second.admin('/_mock/orders')).body).toHaveLength(2);
  });

  it('GEN-4 every member shows the picture of a QR, and asks one shard for a made-up one', async () => {
    const { cluster, members } = await open();
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
      const { body } = await callAt(members[n % 2] as TestMember, '/api/qr/generate-customer', order);
      const { pathname } = new URL(String(body.qrLink));
      for (const { origin } of members) expect((await fetch(`${origin}${pathname}`)).status).toBe(200);
    }
    for (const { origin } of members) {
      for (const ref of ['none', 'A'.repeat(22)]) {
        const answer = await fetch(`${origin}/qr/${ref}`);
        expect([answer.status, ((await answer.json()) as Row).message]).toEqual([404, 'E96']);
      }
    }
  });

  it('TOK-3 TOK-5 a member accepts a call for a token with a form, or with JSON of no named type, as a gateway alone does', async () => {
    const { members } = await open();
    const authorization = `Basic ${Buffer.from(`${PARTNER.username}:${PARTNER.password}`).toString('base64')}`;
    for (const { baseUrl } of members) {
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

  it('REG-5 a new link of a box ends the notices that wait in the shard of the account before', async () => {
    const partner = await startPartnerServer();
    onTestFinished(() => partner.close());
    const { cluster, members } = await open({ ...PARTNER, callback: { url: partner.url } });
    const [first] = members as [TestMember];
    const [before, after] = [accountIn(cluster, [0]), accountIn(cluster, [1])];
    const box = { terminalCode: 'VVB777777', serialNumber: 'VVB888888', account: before };
    expect((await first.admin('/admin/v1/boxes', 'POST', box)).status).toBe(201);
    const paid = { bankAccount: before, bankCode: 'MB', content: 'DH1', amount: 5_000, transType: 'C' };
    expect(await callAt(first, '/bank/api/test/transaction-callback', paid)).toMatchObject({ status: 200 });
    const waiting = async () => {
      const [payment] = (await first.admin('/_mock/payments')).body as { boxes: Row[] }[];
      return payment?.boxes.find((it) => it.terminalCode === box.terminalCode)?.reportedAt;
    };
    expect(await waiting()).toBe(null);
    const linked = await first.admin(`/admin/v1/boxes/${box.terminalCode}/link`, 'POST', { account: after });
    expect(linked.status).toBe(200);
    await eventually('the end of what waits', async () => (await waiting()) !== null);
  });

  it('SHA-5 a member answers what it forwards to another member before it stops', async () => {
    const { cluster, members, databaseUrl } = await open();
    const [first, second] = members as [TestMember, TestMember];
    const [held = 0] = await shardsOf(second);
    const bankAccount = accountIn(cluster, [held]);
    const order = {
      bankAccount,
      bankCode: 'MB',
      userBankName: 'SHOP',
      amount: 5_000,
      content: 'DH1',
      qrType: 0,
      transType: 'C',
    };
    // Holds the shard's answer up for a while.
    const locked = server().run(
      databaseUrl,
      `do $$ begin lock table shard_${held}.orders; perform pg_sleep(0.8); end $$`,
    );
    const call = callAt(first, '/api/qr/generate-customer', order);
    await server().run(databaseUrl, 'select pg_sleep(0.3)');
    const closed = first.close();
    expect((await call).status).toBe(200);
    await Promise.all([closed, locked]);
  });
});
