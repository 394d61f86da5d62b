import { expect, it } from 'vitest';
import type { Post } from '../../src/gateway/money/callbacks/attempt.ts';
import { attemptCallback } from '../../src/gateway/money/callbacks/attempt.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { eventually } from '../support/net.ts';
import { askFaults, expectTold, faultsOnly, isAnnounced, openShop, type Shop } from './faults.ts';
import { partnerServer, testGateway } from './harness.ts';

interface CallbackView {
  transactionId: string;
  status: string;
  warning: string | null;
  attempts: { byHand: boolean; response: { status: number; body: string } | null; error: string | null }[];
}

const callbacks = (shop: Pick<Shop, 'gateway'>) => shop.gateway.mock<CallbackView[]>('/callbacks');
const delivered = (shop: Shop, attempts: number) =>
  eventually(`${attempts} attempts`, async () => {
    const [callback] = await callbacks(shop);
    return callback?.status === 'delivered' && callback.attempts.length === attempts && callback;
  });
const ids = ({ partner }: Pick<Shop, 'partner'>) => partner.calls.map((it) => JSON.parse(it.body).transactionid);

it('FLT-8 partner-500: the partner has the callback, and is brought the same again', async () => {
  const shop = await openShop('mqtt');
  await shop.inject({ fault: 'partner-500', times: 2 });
  await shop.sell('DH1');
  const transactionId = await shop.pay('DH1');
  const { attempts } = await delivered(shop, 3);
  expect(attempts.map((it) => it.response?.status)).toEqual([500, 500, 200]);
  expect(ids(shop)).toEqual([transactionId, transactionId, transactionId]);
  expect(new Set(shop.partner.calls.map((it) => it.body)).size).toBe(1);
  await expectTold(shop, transactionId);
  expect(shop.happened('partner-500')).toBe(2);
  await shop.expectNormal();
});

it.each([
  ['partner-201', 201, 'HTTP 201: the documented reply is 200'],
  ['partner-shape', 200, expect.stringMatching(/^the body is not the documented reply: error: expected true or false/)],
] as const)('FLT-8 %s: the callback is delivered with a warning, once', async (fault, status, warning) => {
  const shop = await openShop('mqtt');
  await shop.inject({ fault });
  await shop.sell('DH1');
  const transactionId = await shop.pay('DH1');
  expect(await delivered(shop, 1)).toMatchObject({ warning, attempts: [{ response: { status } }] });
  expect(ids(shop)).toEqual([transactionId]);
  await shop.expectNormal();
});

it('FLT-8 partner-never: the answer is not heard for as long as an attempt lasts; then it is brought again', async () => {
  const clock = new VirtualClock();
  const partner = await partnerServer();
  const gateway = await testGateway({ clock, callback: { url: partner.url }, config: { mqtt: null } });
  expect((await askFaults(gateway, '', 'POST', { fault: 'partner-never' })).status).toBe(201);
  const { body } = await gateway.testCallback();
  await eventually('the first attempt', () => partner.calls.length === 1);
  // Its answer has come, and was not heard.
  for (let turns = 0; turns < 20; turns += 1) await clock.advance(0);
  expect(await callbacks({ gateway })).toMatchObject([{ status: 'pending', attempts: [] }]);
  const retried = await eventually('the second attempt', async () => {
    await clock.advance(1_000);
    const [callback] = await callbacks({ gateway });
    return callback?.status === 'delivered' && callback;
  });
  expect(retried.attempts.map((it) => it.error ?? it.response?.status)).toEqual(['no answer within 10000 ms', 200]);
  expect(ids({ partner })).toEqual([body.message, body.message]);
});

it('FLT-8 sync-twice: a callback that was taken is brought once more', async () => {
  const shop = await openShop('mqtt');
  await shop.inject({ fault: 'sync-twice' });
  await shop.sell('DH1');
  const transactionId = await shop.pay('DH1');
  await delivered(shop, 2);
  expect(ids(shop)).toEqual([transactionId, transactionId]);
  await expectTold(shop, transactionId);
  await shop.expectNormal();
  expect(ids(shop)).toHaveLength(3);
});

it('FLT-8 sync-late: the callback comes late; the box hears at once', async () => {
  const shop = await openShop('mqtt');
  await shop.inject({ fault: 'sync-late', seconds: 1 });
  await shop.sell('DH1');
  const begunMs = performance.now();
  const transactionId = await shop.pay('DH1');
  await eventually('the payment at the box', () => isAnnounced(shop, transactionId));
  if (performance.now() - begunMs < 1_000) expect(ids(shop)).toEqual([]);
  await delivered(shop, 1);
  expect(performance.now() - begunMs).toBeGreaterThan(990);
  expect(ids(shop)).toEqual([transactionId]);
  await shop.expectNormal();
});

it('FLT-8 sync-swapped: the callback comes after the next one', async () => {
  const shop = await openShop('mqtt');
  await shop.inject({ fault: 'sync-swapped' });
  await shop.sell('DH1');
  await shop.sell('DH2');
  const first = await shop.pay('DH1');
  const second = await shop.pay('DH2');
  await expectTold(shop, first);
  await expectTold(shop, second);
  expect(ids(shop)).toEqual([second, first]);
  await shop.expectNormal();
});

it('FLT-8 partner-never: an attempt that is stopped as its answer comes ends all the same', async () => {
  const { clock, faults, withFaults } = faultsOnly();
  expect((await faults.order({ fault: 'partner-never' })).ok).toBe(true);
  const stop = new AbortController();
  const post: Post = async () => {
    stop.abort(new Error('the gateway is stopping'));
    return { status: 200, body: '', cut: false };
  };
  const attempt = withFaults(attemptCallback);
  const auth = { kind: 'none' } as const;
  const to = {
    id: 'c',
    url: 'http://127.0.0.1/',
    auth,
    signingSecret: undefined,
    success: 'any2xx' as const,
    body: '{}',
    tries: 0,
    byHand: false,
  };
  const made = await attempt(to, { clock, post }, stop.signal);
  expect(made).toMatchObject({ result: 'retry', status: null, error: 'the gateway is stopping' });
});
