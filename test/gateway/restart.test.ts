import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { ENGINES, missing, note, postgresServer } from '../support/stores.ts';
import {
  BOX1,
  GENERATE,
  order,
  partnerServer,
  processed,
  push,
  SEND_QR,
  status,
  TEST_CALLBACK,
  type TestOptions,
  testCallback,
  testGateway,
} from './harness.ts';

describe.each(ENGINES)('a gateway on the data of an earlier run, in $name', ({ missing, places }) => {
  const place = places();
  const onStore = async (options: TestOptions = {}): Promise<TestOptions> => {
    const { dataDir, databaseUrl } = await place();
    return { ...options, dataDir, config: { ...options.config, databaseUrl } };
  };

  describe.skipIf(missing)('takes it up', () => {
    it('MSG-7 a gateway after a restart sends a payment until it is reported', async () => {
      const options = await onStore({ callback: { url: (await partnerServer(processed)).url } });
      const first = await testGateway(options);
      const transactionId = String((await first.testCallback()).body.message);
      await first.close();
      for (const reports of [false, true]) {
        const gateway = await testGateway(options);
        const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
        expect((await box.next('payment')).transactionId).toBe(transactionId);
        if (reports) {
          const paid = { type: 'paid', transactionId, orderId: '', amount: 50_000, recorded: true } as const;
          await box.send(paid, transactionId);
          await box.next('ack');
        }
        await gateway.close();
      }
      const last = await testGateway(options);
      const box = await connectFakeBox({ gateway: last, identity: BOX1, transport: 'mqtt' });
      const fresh = String((await last.testCallback()).body.message);
      expect((await box.next('payment')).transactionId).toBe(fresh);
    });

    it('SYN-4 a gateway after a restart continues a callback at its place in the retry schedule', async () => {
      const clock = new VirtualClock();
      const partner = await partnerServer(status(500), status(500), processed);
      const options = await onStore({ clock, callback: { url: partner.url }, config: { mqtt: null } });
      const first = await testGateway(options);
      await first.testCallback();
      await clock.advance(0);
      await eventually('the first wait', () => clock.sleeping()[0] === 1000);
      await clock.advance(1000);
      await eventually('the second wait', () => partner.calls.length === 2 && clock.sleeping()[0] === 2000);
      await clock.advance(500);
      await first.close();
      expect(clock.sleeping()).toEqual([]);

      const second = await testGateway(options);
      await eventually('the rest of the wait', () => clock.sleeping()[0] === 1500);
      await clock.advance(1499);
      expect(partner.calls).toHaveLength(2);
      await clock.advance(1);
      await eventually('delivered', async () => (await second.mock('/callbacks'))[0]?.status === 'delivered');
      expect(new Set(partner.calls.map((it) => it.body)).size).toBe(1);
    });

    it('SYN-4 SYN-5 a gateway after a restart makes an attempt anew that the end of the earlier run cut off', async () => {
      const clock = new VirtualClock();
      const partner = await partnerServer(() => undefined, processed);
      const options = await onStore({ clock, callback: { url: partner.url }, config: { mqtt: null } });
      const first = await testGateway(options);
      await first.testCallback();
      await clock.advance(0);
      await eventually('the call', () => partner.calls.length === 1);
      await first.close();
      const second = await testGateway(options);
      await clock.advance(0);
      const [callback] = await eventually('delivered', async () => {
        const rows = await second.mock('/callbacks');
        return rows[0]?.status === 'delivered' && rows;
      });
      expect(callback?.attempts).toHaveLength(1);
    });

    it('SYN-1 SYN-4 SYN-5 a gateway after a restart sends callbacks to the URL that the partner has now, else to the one it had', async () => {
      const clock = new VirtualClock();
      const [wrong, right] = [await partnerServer(status(500)), await partnerServer(status(500), processed)];
      const given = await onStore({ clock, config: { mqtt: null } });
      const first = await testGateway({ ...given, callback: { url: wrong.url } });
      await first.testCallback();
      await eventually('the first wait', () => wrong.calls.length === 1 && clock.sleeping()[0] === 1000);
      await first.close();

      const second = await testGateway({ ...given, callback: { url: right.url } });
      await eventually('the rest of the wait', () => clock.sleeping()[0] === 1000);
      await clock.advance(1000);
      await eventually('the second wait', () => right.calls.length === 1 && clock.sleeping()[0] === 2000);
      const [pending] = await second.mock('/callbacks');
      expect(pending).toMatchObject({ status: 'pending', url: right.url });
      await second.close();

      const third = await testGateway(given);
      const sent = await third.mock<Record<string, unknown>>(`/callbacks/${pending?.id}/resend`, 'POST');
      expect(sent).toMatchObject({ status: 'delivered', url: right.url });
      expect([wrong.calls.length, right.calls.length]).toEqual([1, 2]);
      expect(new Set([...wrong.calls, ...right.calls].map((it) => it.body)).size).toBe(1);
    });

    it('SND-4 SND-5 a gateway after a restart ends a push that nobody answered, and withdraws it at the next welcome', async () => {
      const options = await onStore();
      const first = await testGateway(options);
      const silent = await connectFakeBox({
        gateway: first,
        identity: BOX1,
        transport: 'http',
        onShow: () => undefined,
      });
      const answered = first.sendQr();
      const { pushId } = await silent.next('show');
      await first.close();
      expect((await answered).body.message).toBe('BOX_OFFLINE');
      const second = await testGateway(options);
      expect((await second.mock('/orders'))[0]).toMatchObject({ status: 'failed', failure: 'BOX_OFFLINE' });
      const box = await connectFakeBox({ gateway: second, identity: BOX1, transport: 'http' });
      expect((await box.next('withdraw')).pushId).toBe(pushId);
    });

    it('MSG-7 SYN-4 a gateway after a restart tells box and partner the rest of a payment that an earlier run began to report', async () => {
      const clock = new VirtualClock();
      const partner = await partnerServer(status(500), processed);
      const options = await onStore({ clock, callback: { url: partner.url }, config: { mqtt: null } });
      const first = await testGateway(options);
      const before = await connectFakeBox({ gateway: first, identity: BOX1, transport: 'http' });
      expect((await first.sendQr()).body.status).toBe('SUCCESS');
      const { pushId } = await before.next('show');
      const transactionId = String((await first.testCallback()).body.message);
      await before.next('payment');
      await eventually('the first wait', () => clock.sleeping()[0] === 1000);
      await clock.advance(400);
      await first.close();

      const second = await testGateway(options);
      const after = await connectFakeBox({ gateway: second, identity: BOX1, transport: 'http' });
      expect(await after.next('payment')).toMatchObject({ transactionId, pushId, orderId: 'DH001', amount: 50_000 });
      await eventually('the rest of the wait', () => clock.sleeping()[0] === 600);
      await clock.advance(599);
      expect(partner.calls).toHaveLength(1);
      await clock.advance(1);
      await eventually('delivered', async () => (await second.mock('/callbacks'))[0]?.status === 'delivered');
      expect(partner.calls.map((it) => JSON.parse(it.body).transactionid)).toEqual([transactionId, transactionId]);
      await after.send(
        { type: 'paid', transactionId, orderId: 'DH001', amount: 50_000, recorded: true },
        transactionId,
      );
      await after.next('ack');
      expect((await second.mock('/orders'))[0]).toMatchObject({ status: 'paid' });
    });
  });
});

describe.skipIf(missing)(`a gateway whose database goes away${note}`, () => {
  const server = postgresServer();

  it('ERR-2 MSG-6 a gateway whose database goes away answers E05 and acknowledges nothing, and goes on when it is back', async () => {
    const partner = await partnerServer(processed);
    const config = { databaseUrl: await server().database() };
    const gateway = await testGateway({ config, callback: { url: partner.url } });
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    const transactionId = String((await gateway.testCallback()).body.message);
    const paid = { type: 'paid', transactionId, orderId: '', amount: 50_000, recorded: true } as const;
    await box.next('payment');
    await eventually('delivered', async () => (await gateway.mock('/callbacks'))[0]?.status === 'delivered');

    await server().stop();
    for (const [path, body] of [
      [GENERATE, order()],
      [SEND_QR, push()],
      [TEST_CALLBACK, testCallback()],
    ] as const) {
      const { status: code, body: answer } = await gateway.post(path, body);
      expect([code, answer]).toEqual([500, { status: 'FAILED', message: 'E05' }]);
    }
    await box.send(paid, transactionId);
    await eventually('the report to fail', () => gateway.log.some((it) => it.event === 'message-failed'));
    expect(box.of('ack')).toEqual([]);

    const health = async () => (await fetch(`${gateway.origin}/healthz`)).status;
    expect(await health()).toBe(503);

    await server().start();
    await eventually('health', async () => (await health()) === 200);
    await box.send(paid, transactionId);
    expect((await box.next('ack')).reportIds).toEqual([transactionId]);
    expect((await gateway.sendQr()).body.status).toBe('SUCCESS');
    expect((await gateway.testCallback()).body.status).toBe('SUCCESS');
    await eventually('both delivered', () => partner.calls.length === 2, 30_000);
    expect(await gateway.mock('/payments')).toHaveLength(2);
    expect(JSON.stringify(gateway.log)).not.toContain(server().password);
  });
});
