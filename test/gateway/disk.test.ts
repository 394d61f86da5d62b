import { describe, expect, it } from 'vitest';
import { openStore } from '../../src/gateway/store/store.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { memoryDisk, withoutDisks } from '../support/disk.ts';
import { connectFakeBox, type FakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { type Answer, BOX1, kept, partnerServer, processed, type TestGateway, testGateway } from './harness.ts';

const { missing, note } = withoutDisks('memory');

const FAULT = { status: 500, body: { status: 'FAILED', message: 'E05' } };
const idOf = (answer: Answer) => String(answer.body.message);

async function reportPaid(box: FakeBox, transactionId: string): Promise<void> {
  await box.send({ type: 'paid', transactionId, orderId: '', amount: 50_000, recorded: true }, transactionId);
}

const delivered = (gateway: TestGateway, count: number) =>
  eventually(`${count} delivered callbacks`, async () => {
    const callbacks = await gateway.mock('/callbacks');
    return callbacks.length === count && callbacks.every((it) => it.status === 'delivered');
  });

describe('a gateway whose disk is full', () => {
  it.skipIf(missing)(
    `MSG-9 SND-4 a gateway whose disk is full withdraws a push although it cannot store that it failed${note}`,
    async () => {
      const disk = await memoryDisk();
      const gateway = await testGateway({ dataDir: disk.folder, config: { confirmTimeoutMs: 300 } });
      const onShow = (box: FakeBox, show: { pushId: string }) => {
        disk.fill();
        return box.shown(show);
      };
      const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt', onShow });
      expect(await gateway.sendQr()).toMatchObject(FAULT);
      const { pushId } = await box.next('show');
      expect(await box.next('withdraw')).toMatchObject({ pushId, why: 'timeout' });
    },
  );

  it.skipIf(missing)(
    `ERR-2 ERR-5 MSG-6 a gateway whose disk is full answers E05, tells nobody and acknowledges nothing, and works again when there is room${note}`,
    async () => {
      const disk = await memoryDisk();
      const partner = await partnerServer(processed);
      const gateway = await testGateway({ dataDir: disk.folder, callback: { url: partner.url } });
      const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
      const before = idOf(await gateway.testCallback());
      expect((await box.next('payment')).transactionId).toBe(before);
      await delivered(gateway, 1);

      disk.fill();
      const state = await kept(gateway);
      for (let n = 0; n < 3; n += 1) {
        expect(await gateway.sendQr({ orderId: `DH${n}` })).toMatchObject(FAULT);
        expect(await gateway.testCallback()).toMatchObject(FAULT);
      }
      await reportPaid(box, before);
      await eventually('a report that is not kept', () => gateway.log.some((it) => it.event === 'message-failed'));
      expect(await kept(gateway)).toEqual(state);
      expect([box.of('show').length, box.of('ack').length, partner.calls.length]).toEqual([0, 0, 1]);
      expect(new Set(box.of('payment').map((it) => it.transactionId))).toEqual(new Set([before]));
      expect(gateway.logged('request-failed')).toHaveLength(6);

      disk.makeRoom();
      await reportPaid(box, before);
      expect((await box.next('ack')).reportIds).toEqual([before]);
      expect((await gateway.sendQr()).body.status).toBe('SUCCESS');
      const after = idOf(await gateway.testCallback());
      await eventually('the payment', () => box.of('payment').some((it) => it.transactionId === after));
      await delivered(gateway, 2);
      const told = partner.calls.map((it) => JSON.parse(it.body).transactionid);
      expect(told).toEqual([before, after]);
      expect(box.of('show')).toHaveLength(1);
    },
  );

  it.skipIf(missing)(
    `a gateway whose disk is full says at its start what to do, and starts when there is room${note}`,
    async () => {
      const disk = await memoryDisk();
      const log = createLogger(process.stderr, systemClock, 'json');
      disk.fill();
      await expect(openStore({ dataDir: disk.folder }, log)).rejects.toMatchObject({
        code: 'CONFIG',
        message: expect.stringContaining('full'),
      });
      disk.makeRoom();
      await (await openStore({ dataDir: disk.folder }, log)).close();
    },
  );

  it.skipIf(missing)(
    `a gateway does not start on a store that it cannot write, and says what to do${note}`,
    async () => {
      const disk = await memoryDisk();
      const log = createLogger(process.stderr, systemClock, 'json');
      await (await openStore({ dataDir: disk.folder }, log)).close();
      disk.fill();
      const refused = {
        code: 'CONFIG',
        message: expect.stringContaining('full'),
        fix: expect.stringContaining('room'),
      };
      await expect(openStore({ dataDir: disk.folder }, log)).rejects.toMatchObject(refused);
      disk.makeRoom();
      await (await openStore({ dataDir: disk.folder }, log)).close();
    },
  );

  it.skipIf(missing)(`a gateway says at its start that it may not write${note}`, async () => {
    const disk = await memoryDisk();
    disk.remount('ro');
    const log = createLogger(process.stderr, systemClock, 'json');
    await expect(openStore({ dataDir: disk.folder }, log)).rejects.toMatchObject({
      code: 'CONFIG',
      fix: expect.stringContaining('can write'),
    });
  });
});
