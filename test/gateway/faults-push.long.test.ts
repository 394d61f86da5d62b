import { describe, expect, it } from 'vitest';
import { decodeVietQr } from '../../src/protocol/vietqr.ts';
import { eventually } from '../support/net.ts';
import { expectTold, openShop, type Shop } from './faults.ts';
import { ACCOUNT } from './harness.ts';

const QUICK = { confirmTimeoutMs: 2_000 };

const shownOrder = async ({ box }: Shop) => (await box.status()).order?.orderId;
const shownTimes = ({ box }: Shop) => box.logged('push-shown').length;
const refused = ({ box }: Shop) => box.logged('message-refused').map((it) => it.code);

describe.each(['mqtt', 'http'] as const)('faults of pushes over %s', (transport) => {
  it('FLT-6 push-lost: nothing reaches the box, and the partner hears BOX_TIMEOUT', async () => {
    const shop = await openShop(transport, { config: QUICK });
    await shop.inject({ fault: 'push-lost' });
    expect(await shop.sell('DH1')).toBe('BOX_TIMEOUT');
    expect(await shownOrder(shop)).toBeUndefined();
    await shop.expectNormal();
  });

  it('FLT-6 push-late: the push comes after its deadline and does not appear', async () => {
    const shop = await openShop(transport, { config: QUICK });
    await shop.inject({ fault: 'push-late', seconds: 0.1 });
    expect(await shop.sell('DH1')).toBe('BOX_TIMEOUT');
    await eventually('the push at the box', () => shop.box.log.some((it) => JSON.stringify(it).includes('WITHDRAWN')));
    expect(shownTimes(shop)).toBe(0);
    expect(await shownOrder(shop)).toBeUndefined();
    await shop.expectNormal();
  });

  it('FLT-6 push-twice: the box is told twice, and shows and confirms it once', async () => {
    const shop = await openShop(transport);
    await shop.inject({ fault: 'push-twice' });
    expect(await shop.sell('DH1')).toBe('');
    expect(await shownOrder(shop)).toBe('DH1');
    expect([refused(shop), shownTimes(shop)]).toEqual([[], 1]);
    await shop.expectNormal();
  });
});

it('FLT-6 box-offline: the push is answered BOX_OFFLINE, and nothing reaches the box', async () => {
  const shop = await openShop('mqtt');
  await shop.inject({ fault: 'box-offline' });
  expect(await shop.sell('DH1')).toBe('BOX_OFFLINE');
  expect(await shownOrder(shop)).toBeUndefined();
  expect((await shop.gateway.mock('/orders'))[0]).toMatchObject({ pushes: [] });
  await shop.expectNormal();
});

it('FLT-4 SND-9 an order on the screen that is pushed again with the content of a fault gets that fault', async () => {
  const shop = await openShop('mqtt', { config: QUICK });
  expect(await shop.sell('DH1')).toBe('');
  const { qrCode } = (await shop.box.status()).order ?? {};
  const again = async (content: string) =>
    (await shop.gateway.sendQr({ orderId: 'DH1', content, qrCode })).body.message;
  expect(await again('DH1')).toBe('');
  expect(await again('FAULT BOX OFFLINE')).toBe('BOX_OFFLINE');
  expect(await Promise.all([again('FAULT PUSH LOST'), again('FAULT BOX OFFLINE')])).toEqual([
    'BOX_TIMEOUT',
    'BOX_OFFLINE',
  ]);
  expect([shop.happened('box-offline'), shop.happened('push-lost')]).toEqual([2, 1]);
  expect(await shownOrder(shop)).toBe('DH1');
  await expectTold(shop, await shop.pay('DH1'));
});

it('FLT-6 paid-before: the order is paid however late its push then is', async () => {
  const shop = await openShop('mqtt', { config: QUICK });
  await shop.inject({ fault: 'paid-before' });
  await shop.inject({ fault: 'push-late', seconds: 0.1 });
  expect(await shop.sell('DH1')).not.toBe('');
  await eventually('the payment at the box', async () => (await shop.box.status()).lastPayment?.orderId === 'DH1');
});

it('FLT-6 box-slow: the push comes late, and within its deadline', async () => {
  const shop = await openShop('mqtt');
  await shop.inject({ fault: 'box-slow', seconds: 0.3 });
  const begunMs = performance.now();
  expect(await shop.sell('DH1')).toBe('');
  expect(performance.now() - begunMs).toBeGreaterThan(290);
  expect(await shownOrder(shop)).toBe('DH1');
  await shop.expectNormal();
});

it.each(['qr-amount', 'qr-account'] as const)('FLT-6 %s: the box refuses the QR, and shows none', async (fault) => {
  const shop = await openShop('mqtt');
  await shop.inject({ fault });
  expect(await shop.sell('DH1')).toBe('QR_MISMATCH');
  expect((await shop.box.status()).order).toBeNull();
  await shop.expectNormal();
});

it('FLT-6 push-swapped: the push comes after the next one, and both are answered', async () => {
  const shop = await openShop('mqtt');
  await shop.inject({ fault: 'push-swapped', content: 'DH1' });
  const first = shop.sell('DH1');
  await eventually('the first push', () => shop.happened('push-swapped') === 1);
  const second = shop.sell('DH2');
  // The box shows the one that came last; whether the other was on its screen before depends on how soon it came.
  expect(await first).toBe('');
  expect(['', 'REPLACED']).toContain(await second);
  expect(await shownOrder(shop)).toBe('DH1');
  await shop.expectNormal();
});

it('FLT-6 push-swapped: a push that only its withdrawal follows comes after it, and does not appear', async () => {
  const shop = await openShop('mqtt', { config: QUICK });
  await shop.inject({ fault: 'push-swapped' });
  expect(await shop.sell('DH1')).toBe('BOX_TIMEOUT');
  await shop.expectNormal();
  expect(shownTimes(shop)).toBe(1);
});

it('FLT-6 qr-content: the QR on the screen says another content, and nothing else', async () => {
  const shop = await openShop('mqtt');
  await shop.inject({ fault: 'qr-content' });
  expect(await shop.sell('DH1')).toBe('');
  const decoded = decodeVietQr((await shop.box.status()).order?.qrCode ?? '');
  const { bankAccount: account } = ACCOUNT;
  expect(decoded).toMatchObject({ ok: true, value: { account, amount: 50_000, purpose: 'ANOTHER CONTENT' } });
  await shop.expectNormal();
});
