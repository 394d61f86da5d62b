import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { byKey, SEPAY, sepayBody, tellHook } from '../gateway/hooks.ts';
import { type RealBox, startRealBox } from '../security/real-box.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { payosDouble } from '../support/payos-double.ts';
import { type GatewayAt, run, startConfigured } from '../support/processes.ts';
import { cliScript } from '../support/program-code.ts';
import { listServer, payosList } from '../support/provider-lists.ts';
import { bankTime, moved, PROVIDERS, type Provider } from '../support/providers.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { type Gateways, generate, PARTNER, type Row, startGateways, type TestGateway } from './gateways.ts';

const DIES_AT_CREDIT = join(import.meta.dirname, '../kill/dies-at-credit.ts');

const announced = (box: RealBox) =>
  box.log.filter((it) => it.event === 'payment-reported').map((it) => it.transactionId);
const payments = async (gateway: TestGateway) => (await gateway.admin('/_mock/payments')).body as Row[];
const credits = async (gateway: TestGateway) => (await gateway.admin('/_mock/credits')).body as Row[];

async function bearer({ origin }: TestGateway): Promise<string> {
  const basic = Buffer.from(`${PARTNER.username}:${PARTNER.password}`).toString('base64');
  const headers = { authorization: `Basic ${basic}` };
  const answer = await fetch(`${origin}/vqr/api/token_generate`, { method: 'POST', headers });
  return `Bearer ${((await answer.json()) as { access_token: string }).access_token}`;
}

/** A webhook of SePay of 5,000 dong to this account. */
const webhook = (n: number, accountNumber: string, change: Row = {}) =>
  sepayBody({ id: n, referenceCode: `FT${n}`, accountNumber, transferAmount: 5_000, content: `tien ${n}`, ...change });

describe.skipIf(missing)(`sources of money of gateways of one database${note}`, () => {
  const server = postgresServer();
  const open = async (config: Row = { sources: [SEPAY] }, gateways = 2): Promise<Gateways> =>
    startGateways({ databaseUrl: await server().database(), gateways, accounts: 12, config });

  it('SHA-9 a hook at any gateway stores each credit before it is answered, and another gateway has it then', async () => {
    const cluster = await open();
    const [first, second] = cluster.gateways as [TestGateway, TestGateway];
    const box = await startRealBox(cluster.boxes[0] as never, { transport: 'http', url: second.origin });
    for (const [n, { bankAccount }] of cluster.accounts.entries()) {
      const gateway = n % 2 === 0 ? first : second;
      expect((await tellHook(gateway, webhook(n + 1, bankAccount))).status).toBe(200);
      const other = gateway === first ? second : first;
      expect((await credits(other)).map((it) => it.bankAccount)).toContain(bankAccount);
    }
    expect(await payments(first)).toHaveLength(cluster.accounts.length);
    await eventually('the announcement', () => announced(box).length === 1);
    // Told again, at the other gateway, by the same source and by its list's spelling.
    for (const [n, { bankAccount }] of cluster.accounts.entries()) {
      const gateway = n % 2 === 1 ? first : second;
      expect((await tellHook(gateway, webhook(n + 1, bankAccount, { referenceCode: `ft-${n + 1}` }))).status).toBe(200);
    }
    expect(await payments(second)).toHaveLength(cluster.accounts.length);
    expect(announced(box)).toHaveLength(1);
    // It is kept without an account, too; a wrong proof changes nothing.
    expect((await tellHook(second, webhook(900, '999000999'))).status).toBe(200);
    expect((await credits(first)).map((it) => it.bankAccount)).toContain('999000999');
    const wrong = await tellHook(second, webhook(901, '999000999'), { headers: { authorization: 'Apikey wrong' } });
    expect(wrong.status).toBe(401);
    expect(await payments(second)).toHaveLength(cluster.accounts.length);
  });

  it('SHA-9 ERR-9 a compressed body is read at any gateway', async () => {
    const cluster = await open({ sources: [SEPAY] }, 2);
    for (const [n, { bankAccount }] of cluster.accounts.slice(0, 6).entries()) {
      for (const [m, gateway] of cluster.gateways.entries()) {
        const body = gzipSync(JSON.stringify(webhook(10 * n + m + 1, bankAccount)));
        const headers = { ...byKey, 'content-encoding': 'gzip' };
        expect((await tellHook(gateway, body, { headers })).status).toBe(200);
        const call = gzipSync(JSON.stringify({ bankAccount, amount: 1 }));
        const asked = await fetch(`${gateway.origin}/vqr/api/qr/generate-customer`, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            'content-encoding': 'gzip',
            authorization: await bearer(gateway),
          },
          body: call,
        });
        // The fields are read: the first that is missing is named.
        expect([asked.status, asked.headers.get('x-paybox-reason')]).toEqual([
          400,
          expect.stringMatching(/^bankCode: /),
        ]);
      }
    }
    expect(await payments(cluster.gateways[0] as TestGateway)).toHaveLength(12);
  });

  it('SHA-9 the same money told at once at all gateways, by two sources, is one payment', async () => {
    const CASSO = PROVIDERS['casso V1'] as Provider;
    const cluster = await open({ sources: [SEPAY, { ...CASSO.options, name: 'casso' }] });
    const atMs = Date.now();
    const tellings = cluster.accounts.flatMap(({ bankAccount }, n) => {
      const money = moved({
        id: 5_000 + n,
        reference: `FT7${n}`,
        bankAccount,
        amount: 7_000 + (n % 2),
        atMs,
        text: `DH ${n}`,
      });
      const call = CASSO.call(CASSO.body(money), { nowMs: atMs });
      const sepay = webhook(n + 1, bankAccount, {
        transferAmount: money.amount,
        referenceCode: money.reference,
        transactionDate: bankTime(atMs),
      });
      return cluster.gateways.flatMap((gateway) => [
        () => tellHook(gateway, sepay),
        () => tellHook(gateway, call.body, { name: `casso${call.path}`, headers: call.headers }),
      ]);
    });
    const told = await Promise.all(tellings.map((tell) => tell()));
    expect(new Set(told.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await payments(cluster.gateways[0] as TestGateway)).toHaveLength(cluster.accounts.length);
  });

  it('SHA-9 money that one source has at a virtual account, and another at the main one, is one payment at whichever gateway', async () => {
    const CASSO = PROVIDERS['casso V1'] as Provider;
    const cluster = await open({ sources: [SEPAY, { ...CASSO.options, name: 'casso' }] });
    const [first, second] = cluster.gateways as [TestGateway, TestGateway];
    const [virtual = '', main = ''] = cluster.accounts.map((it) => it.bankAccount);
    const atMs = Date.now();
    for (const [n, isVirtualFirst] of [true, false].entries()) {
      const money = { id: 70 + n, reference: `FT8${n}`, bankAccount: main, amount: 9_000 + n, atMs, text: `DH ${n}` };
      const call = CASSO.call(CASSO.body(moved(money)), { nowMs: atMs });
      const sepay = webhook(70 + n, main, {
        ...{ subAccount: virtual, transferAmount: money.amount, referenceCode: money.reference },
        transactionDate: bankTime(atMs),
      });
      const tellings = [
        () => tellHook(first, sepay),
        () => tellHook(second, call.body, { name: `casso${call.path}`, headers: call.headers }),
      ];
      for (const tell of isVirtualFirst ? tellings : tellings.toReversed()) expect((await tell()).status).toBe(200);
      expect(await payments(first)).toHaveLength(n + 1);
    }
  });

  it('SHA-9 a credit for an account that another gateway has just registered is paid out', async () => {
    const cluster = await open({ registry: 'store', sources: [] });
    const [first, second] = cluster.gateways as [TestGateway, TestGateway];
    const made = await second.admin('/admin/v1/sources', 'POST', SEPAY);
    expect([made.status, made.body]).toEqual([201, expect.anything()]);
    const added = { bankAccount: '2000000000', bankCode: 'MB', userBankName: 'NEW', partner: PARTNER.username };
    const told = await eventually('the source at the other gateway', async () => {
      const answer = await tellHook(first, webhook(1, added.bankAccount));
      return answer.status === 200 && answer;
    });
    expect(told.status).toBe(200);
    expect(await payments(first)).toEqual([]);
    expect((await second.admin('/admin/v1/accounts', 'POST', added)).status).toBe(201);
    // Its news need not have come: the account is read in the transaction.
    expect((await tellHook(first, webhook(2, added.bankAccount))).status).toBe(200);
    expect(await payments(first)).toMatchObject([{ bankAccount: added.bankAccount }]);
  });

  it('SHA-9 while a gateway ends a hook at another goes on, and what was answered is paid once', async () => {
    const cluster = await open();
    const [first, second] = cluster.gateways as [TestGateway, TestGateway];
    const to = cluster.accounts[0]?.bankAccount ?? '';
    let n = 1_000;
    const answered: number[] = [];
    let isOver = false;
    const telling = (async () => {
      while (!isOver) {
        n += 1;
        const answer = await tellHook(first, webhook(n, to)).catch(() => undefined);
        if (answer?.status === 200) answered.push(n);
        else if (answer !== undefined) expect([502, 503]).toContain(answer.status);
      }
    })();
    await eventually('some', () => answered.length > 5);
    await second.close();
    await cluster.whole([first]);
    const { length } = answered;
    await eventually('more', () => answered.length > length + 5);
    isOver = true;
    await telling;
    const told = (await first.admin('/_mock/payments?limit=500')).body as Row[];
    const contents = told.map((it) => it.content);
    expect(new Set(contents).size).toBe(contents.length);
    for (const it of answered) expect(contents).toContain(`tien ${it}`);
  });

  it('SHA-9 payOS makes the QRs at any gateway, and its webhook pays the order by its number', async () => {
    const payos = await payosDouble();
    const cluster = await open({ registry: 'store', sources: [] });
    const [first, second] = cluster.gateways as [TestGateway, TestGateway];
    const account = cluster.accounts[0]?.bankAccount ?? '';
    const source = payos.source() as { name: string; kind: string; qr: { accounts: string[] } };
    const options = { ...source, qr: { ...source.qr, accounts: [account] } };
    const added = await first.admin('/admin/v1/sources', 'POST', options);
    expect([added.status, added.body]).toEqual([201, expect.anything()]);
    const identity = cluster.boxes.find((it) => it.account === account);
    const box = await startRealBox(identity as never, { transport: 'http', url: first.origin });
    const sale = { amount: 50_000, terminalCode: identity?.terminalCode };
    const sold = await eventually('the sale', async () => {
      const answer = await second.admin('/admin/v1/sales', 'POST', sale);
      return answer.status === 201 && (answer.body as Row).status === 'shown' ? (answer.body as Row) : undefined;
    });
    const link = payos.newest();
    expect(sold.qrCode).toBe(link.qrCode);
    expect((await payos.tell(second, payos.pay(link))).status).toBe(200);
    await eventually('the announcement', () => announced(box).length === 1);
    expect(await payments(first)).toMatchObject([{ orderId: expect.anything(), amount: 50_000 }]);
  });

  it('SHA-9 one gateway alone asks the lists, for the orders of all, also after it has ended', async () => {
    const list = payosList();
    const cluster = await open({ sources: [{ name: 'till', ...list.options(await listServer(list)) }] });
    const [first, second] = cluster.gateways as [TestGateway, TestGateway];
    for (const [n, { bankAccount }] of cluster.accounts.entries()) {
      expect(await generate(second, bankAccount, String(40_000 + n))).toBe(200);
      const money = { id: n + 1, reference: `FT9${n}`, bankAccount, orderCode: 40_000 + n, text: `DH ${n}` };
      list.moved.push(moved({ ...money, atMs: Date.now() - 20 * 60_000 }));
    }
    list.asked.length = 0;
    const third = await cluster.start();
    await first.close();
    await second.close();
    await eventually(
      'all payments',
      async () =>
        (await third.admin('/_mock/payments')).status === 200 &&
        (await payments(third)).length === cluster.accounts.length,
    );
    const codes = list.asked.map(({ path }) => path);
    expect(new Set(codes).size).toBe(cluster.accounts.length);
    // One that ends may have asked before; all asking would ask three times as often.
    expect(codes.length).toBeLessThanOrEqual(2 * cluster.accounts.length);
    expect((await third.admin('/_mock/sources')).body).toMatchObject([{ name: 'till' }]);
  }, 90_000);

  it('SHA-9 a gateway that is killed between storing a credit and answering loses none, and none is paid twice', async () => {
    const cluster = await open({ sources: [SEPAY] }, 1);
    const [first] = cluster.gateways as [TestGateway];
    const folder = await temporaryFolder();
    const launch = (...args: string[]) => run(process.execPath, ['--import', DIES_AT_CREDIT, cliScript(), ...args]);
    const second = await startConfigured<GatewayAt>('gateway', await cluster.fileOf(), folder, launch);
    const { account = '' } = cluster.boxes[0] ?? {};
    const identity = cluster.boxes[0];
    const box = await startRealBox(identity as never, { transport: 'http', url: first.origin });
    // The ready file is the last argument.
    await writeFile(join(folder, 'gateway.json.die'), '');
    const { origin } = new URL(second.at.consoleUrl);
    await expect(tellHook({ origin }, webhook(1, account))).rejects.toThrow();
    expect(await second.running.ended).toBe('SIGKILL');
    await eventually(
      'the source to have told it',
      async () => (await tellHook(first, webhook(1, account))).status === 200,
    );
    await eventually('the announcement', () => announced(box).length === 1);
    expect((await tellHook(first, webhook(1, account))).status).toBe(200);
    await cluster.whole([first]);
    expect(await payments(first)).toHaveLength(1);
    expect(announced(box)).toHaveLength(1);
  }, 90_000);
});
