import { describe, expect, it } from 'vitest';
import { eventually, temporaryFolder } from '../support/net.ts';
import { payosDouble } from '../support/payos-double.ts';
import { failed, type TestGateway } from './harness.ts';
import { CANCEL, LOOK, MAKE, shop, shopWith } from './payos-qr-fixture.ts';

describe('the end of an order', () => {
  const closed = (gateway: TestGateway) => () => gateway.logged('payment-request-closed').length > 0;

  it('PQR-5 stays open while payOS keeps it, although it was cancelled', async () => {
    const { payos, gateway, show } = await shop();
    const { transactionId } = await show();
    payos.firstOthers.push({ status: 200, body: { code: '231', desc: 'not now' } });
    await gateway.mock(`/orders/${transactionId}/cancel`, 'POST');
    await eventually('a round', () => payos.asked.includes(LOOK));
    await gateway.generate({ orderId: 'DH002' });
    await eventually('its end at payOS', closed(gateway));
    const [first] = payos.links.values();
    expect([payos.asked, first?.status]).toEqual([[MAKE, CANCEL, LOOK, MAKE, CANCEL, LOOK], 'CANCELLED']);
  });

  it('PQR-5 stays open while payOS may still take money, and while a webhook may still tell of some', async () => {
    const { payos, gateway, show } = await shop();
    const { transactionId } = await show();
    const link = payos.newest();
    const money = payos.pay(link);
    link.status = 'PENDING';
    payos.firstOthers.push({ status: 200, body: { code: '231', desc: 'not now' } });
    await gateway.mock(`/orders/${transactionId}/cancel`, 'POST');
    await eventually('two rounds', async () => {
      // Any change of an order wakes the next round.
      await gateway.generate({ orderId: `DH${payos.asked.length}`, content: '' });
      return payos.asked.filter((it) => it === LOOK).length >= 2;
    });
    expect([closed(gateway)(), await gateway.mock('/payments')]).toEqual([false, []]);
    await payos.tell(gateway, money);
    expect(await gateway.mock('/payments')).toMatchObject([{ orderId: 'DH001', amount: 50_000 }]);
  });

  it('PQR-5 is tried again while payOS is out of order, also by the next run of the gateway', async () => {
    const payos = await payosDouble();
    const dataDir = await temporaryFolder();
    const first = await shopWith(payos, { dataDir });
    const { transactionId, qrCode } = await first.show();
    payos.firstOthers.push(...Array.from({ length: 50 }, () => ({ status: 502 })));
    await first.gateway.mock(`/orders/${transactionId}/cancel`, 'POST');
    await eventually('a failure', () => first.gateway.logged('payment-requests-not-ended').length > 0);
    await first.box.close();
    await first.gateway.close();
    payos.firstOthers.length = 0;
    const next = await shopWith(payos, { dataDir });
    await eventually('its end at payOS', closed(next.gateway));
    expect(payos.newest().status).toBe('CANCELLED');
    expect((await next.gateway.sendQr({ qrCode })).body).toEqual(failed('QR_ENDED'));
  });
});
