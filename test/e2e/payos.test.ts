import { expect, it } from 'vitest';
import { BOX1, partnerServer, processed, testGateway } from '../gateway/harness.ts';
import { eventually } from '../support/net.ts';
import { payosDouble } from '../support/payos-double.ts';
import { decodeQrTwice } from '../support/qr-decoders.ts';
import { isReady, startBox } from './box.ts';
import { getJson } from './walk.ts';

it('PQR-1 PQR-3 PQR-5 payOS makes the QR: a box shows it, a webhook pays it, it is said once, and a cancelled one ends at payOS', async () => {
  const payos = await payosDouble();
  const { url: callbackUrl, calls } = await partnerServer(processed);
  const gateway = await testGateway({ callback: { url: callbackUrl }, config: { sources: [payos.source()] } });
  const box = await startBox({ transport: 'mqtt', url: gateway.mqttUrl });
  await eventually('the box', () => isReady(box));
  const announced = async () => {
    const metrics = await (await fetch(`${box.url}/metrics`)).text();
    return Number(/^paybox_box_announcements_total (\d+)$/m.exec(metrics)?.[1]);
  };

  const { body: order } = await gateway.generate();
  const pushed = await gateway.sendQr({ qrCode: order.qrCode, content: order.content });
  expect(pushed.body).toEqual({ status: 'SUCCESS', message: '' });
  const picture = new Uint8Array(await (await fetch(`${box.url}/screen.png`)).arrayBuffer());
  const { qrCode } = payos.newest();
  expect(decodeQrTwice(picture)).toEqual([qrCode, qrCode]);
  const screen = await (await fetch(`${box.url}/screen.txt`)).text();
  expect(screen).toMatch(/MB • VQRQ\d{10}/);

  const money = payos.pay(payos.newest());
  for (let i = 0; i < 3; i += 1) expect((await payos.tell(gateway, money)).status).toBe(200);
  const paid = await eventually('paid on the box', async () => {
    // The screen of the payment may be over already.
    const now = await getJson(`${box.url}/status`);
    return now.lastPayment === null ? undefined : now;
  });
  await eventually('its screen', () => box.logged('payment-shown').length === 1);
  expect(paid).toMatchObject({ order: null, lastPayment: { orderId: 'DH001', amount: 50_000 } });
  await eventually('the callback', () => calls.length > 0);
  await eventually('the report', async () =>
    JSON.stringify(await gateway.mock('/payments')).includes('"recorded":true'),
  );
  expect([await announced(), calls.length]).toEqual([1, 1]);
  expect(JSON.parse(calls[0]?.body ?? '')).toMatchObject({ orderId: 'DH001', amount: 50_000, content: money.text });

  const sold = await fetch(`${gateway.origin}/admin/v1/sales`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ amount: 20_000, terminalCode: BOX1.terminalCode }),
  });
  const sale = (await sold.json()) as { id: string };
  expect(payos.newest()).toMatchObject({ amount: 20_000, status: 'PENDING' });
  await fetch(`${gateway.origin}/admin/v1/sales/${sale.id}/cancel`, { method: 'POST' });
  await eventually('its end at payOS', () => payos.newest().status === 'CANCELLED');
  await eventually('the QR is gone', async () => (await box.status()).order === null);
});
