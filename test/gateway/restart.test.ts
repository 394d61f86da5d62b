import { describe, expect, it } from 'vitest';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import {
  BOX1,
  partnerServer,
  processed,
  push,
  SEND_QR,
  status,
  TEST_CALLBACK,
  testCallback,
  testGateway,
} from './harness.ts';

describe('a gateway on the data of an earlier run', () => {
  it('MSG-7 tells a payment until it is reported', async () => {
    const dataDir = await temporaryFolder();
    const callback = { url: (await partnerServer(processed)).url };
    const first = await testGateway({ dataDir, callback });
    const transactionId = String((await first.post(TEST_CALLBACK, testCallback())).body.message);
    await first.close();
    for (const reports of [false, true]) {
      const gateway = await testGateway({ dataDir, callback });
      const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
      expect((await box.next('payment')).transactionId).toBe(transactionId);
      if (reports) {
        const paid = { type: 'paid', transactionId, orderId: '', amount: 50_000, recorded: true } as const;
        await box.send(paid, transactionId);
        await box.next('ack');
      }
      await gateway.close();
    }
    const last = await testGateway({ dataDir, callback });
    const box = await connectFakeBox({ gateway: last, identity: BOX1, transport: 'mqtt' });
    const fresh = String((await last.post(TEST_CALLBACK, testCallback())).body.message);
    expect((await box.next('payment')).transactionId).toBe(fresh);
  });

  it('SYN-4 goes on with a callback where its ladder stood', async () => {
    const [dataDir, clock] = [await temporaryFolder(), new VirtualClock()];
    const partner = await partnerServer(status(500), status(500), processed);
    const options = { dataDir, clock, callback: { url: partner.url }, config: { mqtt: null } };
    const first = await testGateway(options);
    await first.post(TEST_CALLBACK, testCallback());
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

  it('SYN-4 SYN-5 makes an attempt anew that the end of the earlier run cut off', async () => {
    const [dataDir, clock] = [await temporaryFolder(), new VirtualClock()];
    const partner = await partnerServer(() => undefined, processed);
    const options = { dataDir, clock, callback: { url: partner.url }, config: { mqtt: null } };
    const first = await testGateway(options);
    await first.post(TEST_CALLBACK, testCallback());
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

  it('SND-4 SND-5 ends a push that nobody answered, and withdraws it at the next welcome', async () => {
    const dataDir = await temporaryFolder();
    const first = await testGateway({ dataDir });
    const silent = await connectFakeBox({ gateway: first, identity: BOX1, transport: 'http', onShow: () => undefined });
    const answered = first.post(SEND_QR, push());
    const { pushId } = await silent.next('show');
    await first.close();
    expect((await answered).body.message).toBe('BOX_OFFLINE');
    const second = await testGateway({ dataDir });
    expect((await second.mock('/orders'))[0]).toMatchObject({ status: 'failed', failure: 'BOX_OFFLINE' });
    const box = await connectFakeBox({ gateway: second, identity: BOX1, transport: 'http' });
    expect((await box.next('withdraw')).pushId).toBe(pushId);
  });
});
