import { expect, it } from 'vitest';
import { magicContent } from '../../src/protocol/faults.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { askFaults } from './faults.ts';
import {
  type Answer,
  BOX1,
  BOX2,
  kept,
  partnerServer,
  push,
  SEND_QR,
  type TestGateway,
  testGateway,
} from './harness.ts';

/** A gateway with two boxes, the first of them connected. */
async function opened(): Promise<TestGateway> {
  const partner = await partnerServer();
  const gateway = await testGateway({ callback: { url: partner.url } });
  await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
  return gateway;
}

const inject = async (gateway: TestGateway, fault: object) =>
  expect((await askFaults(gateway, '', 'POST', fault)).status).toBe(201);
const CALLS: Record<string, (gateway: TestGateway, content: string) => Promise<Answer>> = {
  generate: (gateway, content) => gateway.generate({ content }),
  'send-qr': (gateway, content) => gateway.sendQr({ content }),
  'the test callback': (gateway, content) => gateway.testCallback({ content }),
};

it.each(Object.entries(CALLS))('FLT-5 service-500: %s is answered 500 E05 and does nothing', async (_name, call) => {
  const gateway = await opened();
  const before = await kept(gateway);
  await inject(gateway, { fault: 'service-500' });
  expect(await call(gateway, 'DH001')).toMatchObject({ status: 500, body: { status: 'FAILED', message: 'E05' } });
  expect(await kept(gateway)).toEqual(before);
  expect((await call(gateway, 'DH001')).status).toBe(200);
  const magic = magicContent('service-500');
  for (let times = 0; times < 2; times += 1) expect((await call(gateway, magic)).status).toBe(500);
  expect(gateway.logged('fault-triggered')).toHaveLength(3);
});

it('FLT-5 service-500 happens to who may call only, so that a wrong token stays one', async () => {
  const gateway = await opened();
  await inject(gateway, { fault: 'service-500' });
  expect((await gateway.generate({}, { authorization: 'Bearer x' })).status).toBe(401);
  expect((await gateway.generate()).status).toBe(500);
});

it('FLT-5 service-slow: the answer comes late, and is the same', async () => {
  const gateway = await opened();
  await inject(gateway, { fault: 'service-slow', seconds: 0.5 });
  const begunMs = performance.now();
  expect((await gateway.sendQr()).status).toBe(200);
  const tookMs = performance.now() - begunMs;
  expect(tookMs).toBeGreaterThan(490);
  expect((await gateway.sendQr({ orderId: 'DH002' })).status).toBe(200);
});

it.each(['by order', 'by content'])(
  'FLT-5 token-expired %s: the send-qr after generate is answered E74',
  async (how) => {
    const gateway = await opened();
    const content = how === 'by content' ? magicContent('token-expired') : 'DH001';
    if (how === 'by order') await inject(gateway, { fault: 'token-expired' });
    const bearer = async () => ({ authorization: `Bearer ${await gateway.token()}` });
    const first = await bearer();
    const made = await gateway.generate({ content }, first);
    expect(made.status).toBe(200);
    const request = push({ content, qrCode: made.body.qrCode });
    expect(await gateway.post(SEND_QR, request, first)).toMatchObject({ status: 401, body: { message: 'E74' } });
    expect(await gateway.post(SEND_QR, request, await bearer())).toMatchObject({ status: 200 });
  },
);

it('FLT-3 a fault of one box, or of one content, happens to no other', async () => {
  const gateway = await opened();
  const second = { terminalCode: BOX2.terminalCode, serialNumber: BOX2.serialNumber };
  await inject(gateway, { fault: 'service-500', box: BOX2.terminalCode });
  await inject(gateway, { fault: 'service-500', content: 'DH009' });
  expect((await gateway.sendQr()).status).toBe(200);
  expect((await gateway.sendQr(second)).status).toBe(500);
  expect((await gateway.sendQr(second)).body.message).toBe('BOX_OFFLINE');
  expect((await gateway.sendQr({ content: 'DH009' })).status).toBe(500);
});
