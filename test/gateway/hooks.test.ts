import { expect, it } from 'vitest';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { BOX1, partnerServer, processed } from './harness.ts';
import { hookedGateway, tellHook } from './hooks.ts';

it('SRC-1 CRE-1 a webhook pays the order on the box, is announced once, and the partner is told', async () => {
  const partner = await partnerServer(processed);
  const gateway = await hookedGateway({ callback: { url: partner.url } });
  const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
  expect((await gateway.sendQr()).body.status).toBe('SUCCESS');
  const { pushId } = await box.next('show');
  const answer = await tellHook(gateway);
  expect([answer.status, answer.body]).toEqual([200, { success: true }]);
  const payment = await box.next('payment');
  expect(payment).toMatchObject({ pushId, orderId: 'DH001', amount: 50_000, late: false, due: null, repeated: false });
  await eventually('the callback', () => partner.calls.length === 1);
  expect(JSON.parse(partner.calls[0]?.body ?? '')).toMatchObject({
    transactionid: payment.transactionId,
    referencenumber: 'FT26001000001',
    orderId: 'DH001',
    amount: 50_000,
  });
  for (let i = 0; i < 3; i += 1) expect((await tellHook(gateway)).status).toBe(200);
  expect(await gateway.mock('/payments')).toHaveLength(1);
  expect(box.of('payment')).toHaveLength(1);
  expect((await gateway.mock('/orders'))[0]).toMatchObject({ status: 'paid' });
});
