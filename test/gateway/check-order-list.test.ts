import { describe, expect, it } from 'vitest';
import { SOURCE_KINDS } from '../../src/gateway/money/sources/registry.ts';
import type { AskSource, WaitingOrder } from '../../src/gateway/money/sources/source.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { allOf } from '../support/provider-lists.ts';
import { deliver, moved, type Post, PROVIDERS, type Provider } from '../support/providers.ts';
import { ACCOUNT, testGateway } from './harness.ts';

const API = { url: 'http://127.0.0.1:1/vqr', username: 'sample-shop', password: 'sample-password' };
const OPTIONS = { ...PROVIDERS.vietqr?.options, name: 'till' };
const ORDER: WaitingOrder = { bankAccount: ACCOUNT.bankAccount, orderId: 'DH001' };
const PAID_AT = 1_767_600_000;
const row = (change: object = {}) => ({
  ...{ referenceNumber: 'FT1', orderId: 'DH001', amount: 50_000, content: 'x DH001', transType: 'C', status: 1 },
  ...{ type: 0, timeCreated: 1, timePaid: PAID_AT, terminalCode: '', note: '', refundCount: 0, amountRefunded: 0 },
  ...change,
});
const credit = {
  ...{ sourceId: 'FT1', reference: 'FT1', bankAccount: ACCOUNT.bankAccount, virtualAccount: '' },
  ...{ amount: 50_000, text: 'x DH001', bankTimeMs: PAID_AT * 1000 },
};

/** The list of a vietqr source whose service answers check-order like this, and what the service was asked. */
async function listed(answer: { status: number; body: unknown }, orders: readonly WaitingOrder[] = [ORDER]) {
  const source = SOURCE_KINDS.get('vietqr')?.open(
    { ...OPTIONS, api: API },
    { clock: systemClock, random: systemRandom },
  );
  const asked: { url: string; authorization: string | undefined; body: unknown }[] = [];
  const ask: AskSource = async (url, { headers = {}, body = '' } = {}) => {
    asked.push({ url, authorization: headers.authorization, body: JSON.parse(body) });
    const isToken = url.endsWith('/api/token_generate');
    const said = isToken ? { status: 200, body: { access_token: 'sample-token' } } : answer;
    return { status: said.status, headers: {}, body: Buffer.from(JSON.stringify(said.body)) };
  };
  const result = await allOf(source?.list?.({ sinceMs: 0, untilMs: 1, orders }, ask));
  return { result, asked };
}

describe('the list of vietqr', () => {
  it('SRC-28 the list of vietqr asks for each order that has an orderId, with a token', async () => {
    const { result, asked } = await listed({ status: 200, body: [row()] }, [ORDER, { ...ORDER, orderId: '' }]);
    expect(result).toEqual({ credits: [credit], unread: [] });
    const basic = `Basic ${Buffer.from('sample-shop:sample-password').toString('base64')}`;
    const { bankAccount } = ACCOUNT;
    expect(asked).toEqual([
      { url: `${API.url}/api/token_generate`, authorization: basic, body: {} },
      {
        url: `${API.url}/api/transactions/check-order`,
        authorization: 'Bearer sample-token',
        body: { bankAccount, type: 0, value: 'DH001', checkSum: expect.stringMatching(/^[0-9a-f]{32}$/) },
      },
    ]);
    expect((await listed({ status: 200, body: [] }, [])).asked).toEqual([]);
  });

  const rows: [what: string, rows: object[], credits: object[], unread: number][] = [
    ['one that waits', [row({ status: 0, referenceNumber: '' })], [], 0],
    ['one that is cancelled', [row({ status: 2 })], [], 0],
    ['a debit', [row({ transType: 'D' })], [], 0],
    ['a refund', [row({ type: 6 })], [], 0],
    ['no number', [row({ referenceNumber: '' })], [], 0],
    ['no money', [row({ amount: 0 })], [], 0],
    ['money beside what cannot be read', [row({ amount: 'x' }), row()], [credit], 1],
    ['amounts and times as texts', [row({ amount: '50000', timePaid: String(PAID_AT) })], [credit], 0],
    ['milliseconds', [row({ timePaid: PAID_AT * 1000 })], [credit], 0],
    [
      'two transfers',
      [row(), row({ referenceNumber: 'FT2' })],
      [credit, { ...credit, sourceId: 'FT2', reference: 'FT2' }],
      0,
    ],
  ];
  it.each(rows)('SRC-28 the list of vietqr has of %s what is money', async (_what, body, credits, unread) => {
    const { result } = await listed({ status: 200, body });
    expect(result?.credits).toEqual(credits);
    expect(result?.unread).toHaveLength(unread);
  });

  it('SRC-28 the list of vietqr leaves out an order that the service does not know, and fails on every other refusal', async () => {
    for (const message of ['E96', 'E77']) {
      const { result } = await listed({ status: 400, body: { status: 'FAILED', message } });
      expect(result).toEqual({ credits: [], unread: [] });
    }
    for (const message of ['E39', 'E74', 'E05']) {
      await expect(listed({ status: 400, body: { status: 'FAILED', message } })).rejects.toThrow(
        `check-order was answered with HTTP 400: ${message}`,
      );
    }
    for (const answer of [
      { status: 401, body: {} },
      { status: 500, body: {} },
      { status: 200, body: {} },
    ])
      await expect(listed(answer)).rejects.toThrow(/check-order/);
  });

  it('SRC-28 the list of vietqr is that of the service itself: a shop finds there what its callback never told', async () => {
    const tenMinutesAgo = { ...systemClock, wallMs: () => Date.now() - 600_000 };
    const service = await testGateway({ clock: tenMinutesAgo, callback: { url: 'http://127.0.0.1:1/lost' } });
    const dataDir = await temporaryFolder();
    const api = { url: service.baseUrl, username: 'demo', password: 'demo-secret' };
    const config = { sources: [{ ...OPTIONS, api }] };
    const elevenMinutesAgo = { ...systemClock, wallMs: () => Date.now() - 660_000 };
    const before = await testGateway({ dataDir, config, clock: elevenMinutesAgo });
    await before.generate();
    await before.close();
    await service.generate();
    await service.testCallback();
    const shop = await testGateway({ dataDir, config });
    await eventually('the credit', async () => (await shop.mock('/sources'))[0]?.found === 1);
    expect(await shop.mock('/orders')).toMatchObject([{ orderId: 'DH001', status: 'paid' }]);
    expect(shop.logged('credit-received')).toMatchObject([{ source: 'till', late: true, matched: true }]);
    // The callback that comes after all is known by its reference.
    const reference = String((await shop.mock('/credits'))[0]?.reference);
    const post: Post = async ({ path, headers, body }) => {
      const answer = await fetch(`${shop.origin}/hooks/till${path}`, { method: 'POST', headers, body });
      return { status: answer.status, body: await answer.json() };
    };
    const money = moved({ bankAccount: ACCOUNT.bankAccount, reference, atMs: Date.now() - 600_000 });
    expect((await deliver(PROVIDERS.vietqr as Provider, money, post, Date.now)).status).toBe(200);
    expect(await shop.mock('/payments')).toHaveLength(1);
  });
});
