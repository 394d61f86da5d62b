import { expect, it } from 'vitest';
import { eventually } from '../support/net.ts';
import { expectTold, isAnnounced, openShop, type PaymentView, type Shop } from './faults.ts';
import { ACCOUNT, OTHER_ACCOUNT, partnerServer } from './harness.ts';

const payments = (shop: Shop) => shop.gateway.mock<PaymentView[]>('/payments');
const orderOf = async (shop: Shop, orderId: string) =>
  (await shop.gateway.mock<{ orderId: string; status: string }[]>('/orders')).find((it) => it.orderId === orderId);
const synced = ({ partner }: Shop) => partner.calls.map((it) => JSON.parse(it.body) as Record<string, unknown>);
const shownOrder = async ({ box }: Shop) => (await box.status()).order?.orderId;

it.each([
  ['wrong-amount', { amount: 49_000, content: 'DH1' }],
  ['wrong-content', { amount: 50_000, content: 'ANOTHER CONTENT' }],
] as const)('FLT-7 %s: what is paid is told as it is, once, and the order stays open', async (fault, money) => {
  const shop = await openShop('mqtt');
  await shop.inject({ fault });
  await shop.sell('DH1');
  const transactionId = await shop.pay('DH1');
  await expectTold(shop, transactionId);
  expect(await payments(shop)).toMatchObject([{ transactionId, orderId: '', ...money }]);
  expect(synced(shop)).toMatchObject([{ transactionid: transactionId, orderId: '', ...money }]);
  expect((await shop.box.status()).lastPayment).toMatchObject({ transactionId, ...money });
  expect(await orderOf(shop, 'DH1')).toMatchObject({ status: 'shown' });
  await eventually('the QR after the notice', async () => (await shownOrder(shop)) === 'DH1');
  expect(shop.happened(fault)).toBe(1);
  await shop.expectNormal();
});

it('FLT-7 wrong-account: another account of the partner is paid, and the box of the order hears nothing', async () => {
  const shop = await openShop('mqtt');
  await shop.inject({ fault: 'wrong-account' });
  await shop.sell('DH1');
  const transactionId = await shop.pay('DH1');
  const { bankAccount, bankCode } = OTHER_ACCOUNT;
  expect(await payments(shop)).toMatchObject([{ transactionId, orderId: '', bankAccount, bankCode, amount: 50_000 }]);
  await eventually('the callback', () => synced(shop).length === 1);
  expect(synced(shop)).toMatchObject([{ bankaccount: bankAccount, orderId: '' }]);
  await shop.expectNormal();
  expect(await isAnnounced(shop, transactionId)).toBe(false);
});

it('FLT-7 wrong-account: a partner with one account is paid for none of its orders', async () => {
  const partner = await partnerServer();
  const own = { username: 'demo', password: 'demo-secret', accounts: [ACCOUNT.bankAccount] };
  const shop = await openShop('mqtt', { config: { partners: [{ ...own, callback: { url: partner.url } }] } });
  await shop.inject({ fault: 'wrong-account' });
  await shop.sell('DH1');
  const transactionId = await shop.pay('DH1');
  await expectTold(shop, transactionId);
  expect(await payments(shop)).toMatchObject([{ orderId: '', bankAccount: ACCOUNT.bankAccount, amount: 50_000 }]);
  expect(await orderOf(shop, 'DH1')).toMatchObject({ status: 'shown' });
  await shop.expectNormal();
});

it('FLT-7 paid-twice: both payments of the order are told, each once', async () => {
  const shop = await openShop('mqtt');
  await shop.inject({ fault: 'paid-twice' });
  await shop.sell('DH1');
  await shop.pay('DH1');
  const all = await payments(shop);
  expect(all).toMatchObject([{ orderId: 'DH1' }, { orderId: 'DH1' }]);
  for (const { transactionId } of all) await expectTold(shop, transactionId);
  expect(new Set(synced(shop).map((it) => it.transactionid))).toEqual(new Set(all.map((it) => it.transactionId)));
  expect(synced(shop)).toHaveLength(2);
  await shop.expectNormal();
});

it('FLT-7 paid-late: the payment is kept at once, and told late and once', async () => {
  const shop = await openShop('mqtt');
  await shop.inject({ fault: 'paid-late', seconds: 1 });
  await shop.sell('DH1');
  await shop.sell('DH2');
  const begunMs = performance.now();
  const transactionId = await shop.pay('DH1');
  expect(await payments(shop)).toMatchObject([{ transactionId, orderId: 'DH1' }]);
  // The dispatcher looks because of this one, and leaves the other.
  await expectTold(shop, await shop.pay('DH2'));
  if (performance.now() - begunMs < 1_000) {
    expect(await isAnnounced(shop, transactionId)).toBe(false);
    expect(synced(shop).map((it) => it.transactionid)).not.toContain(transactionId);
  }
  await expectTold(shop, transactionId);
  expect(performance.now() - begunMs).toBeGreaterThan(990);
  expect(synced(shop)).toHaveLength(2);
  await shop.expectNormal();
});

it('FLT-7 paid-before: the order is paid, its push is withdrawn and never shown, and the payment is told once', async () => {
  const shop = await openShop('mqtt');
  await shop.inject({ fault: 'paid-before' });
  expect(await shop.sell('DH1')).toBe('WITHDRAWN');
  const [payment] = await payments(shop);
  expect(payment).toMatchObject({ orderId: 'DH1', amount: 50_000 });
  await expectTold(shop, payment?.transactionId ?? '');
  expect(await orderOf(shop, 'DH1')).toMatchObject({ status: 'paid' });
  expect(await shownOrder(shop)).toBeUndefined();
  await shop.expectNormal();
  expect(await payments(shop)).toHaveLength(2);
});

it('FLT-7 FLT-8 FLT-9 many at once: what is stored, told and announced is the same money', async () => {
  const shop = await openShop('mqtt');
  const terminalCode = 'VVB000001';
  await shop.sell('DH1');
  await shop.inject({ fault: 'paid-twice', times: 2, chance: 0.5, seed: 3 });
  await shop.inject({ fault: 'wrong-amount', content: 'DH2' });
  await shop.inject({ fault: 'paid-late', seconds: 0.5, times: 2 });
  await shop.inject({ fault: 'sync-twice', times: 3 });
  await shop.inject({ fault: 'partner-500', times: 4 });
  await shop.inject({ fault: 'link-twice', box: terminalCode, times: 2 });
  for (const name of ['DH1', 'DH2', 'DH3', 'DH4']) await shop.pay(name);
  await shop.inject({ fault: 'link-cut', box: terminalCode });
  await eventually(
    'both payments that come twice',
    () => shop.happened('paid-twice') === 2 || shop.pay('DH5').then(() => false),
  );
  const all = await payments(shop);
  for (const { transactionId } of all) await expectTold(shop, transactionId);
  expect(new Set(synced(shop).map((it) => it.transactionid))).toEqual(new Set(all.map((it) => it.transactionId)));
  for (const it of synced(shop)) {
    expect(all.find(({ transactionId }) => transactionId === it.transactionid)).toMatchObject({ amount: it.amount });
  }
  expect(await orderOf(shop, 'DH1')).toMatchObject({ status: 'paid' });
  await shop.expectNormal();
});
