import { describe, expect, it } from 'vitest';
import { type WireEntry, type WireEntryOf, type WirePage, wirePage } from '../../src/protocol/wire.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import {
  BOX1,
  failed,
  GENERATE,
  order,
  partnerServer,
  processed,
  push,
  SEND_QR,
  status,
  TEST_CALLBACK,
  type TestGateway,
  testGateway,
} from './harness.ts';

async function told(gateway: TestGateway, query = ''): Promise<WirePage> {
  return wirePage.parse(await gateway.mock<object>(`/wire${query}`));
}

const ofKind = <K extends WireEntry['kind']>({ entries }: WirePage, kind: K) =>
  entries.filter((it): it is WireEntryOf<K> => it.kind === kind);

/** An order that is shown on box 1 and paid, and the callback of which is taken at the second attempt. */
async function session(transport: 'mqtt' | 'http') {
  const partner = await partnerServer(status(500), processed);
  const gateway = await testGateway({
    callback: { url: partner.url, auth: { kind: 'bearer', token: 'private-bearer' } },
    config: { callbackRetryWaitsMs: [10] },
  });
  const box = await connectFakeBox({ gateway, identity: BOX1, transport });
  const { body } = await gateway.generate();
  await gateway.sendQr({ qrCode: body.qrCode });
  await gateway.testCallback();
  await eventually('the callback to be taken', async () => partner.calls.length === 2);
  await eventually('the attempts to be heard', async () => ofKind(await told(gateway), 'callback').length === 2);
  const pushed = ofKind(await told(gateway), 'call').find(({ path }) => path === SEND_QR);
  expect(pushed?.tookMs).toBeGreaterThan(0);
  return { gateway, box };
}

describe('GET /_mock/wire', () => {
  it.each(['mqtt', 'http'] as const)(
    'tells calls, messages, boxes and callbacks of a session over %s',
    async (transport) => {
      const { gateway, box } = await session(transport);
      const page = await told(gateway);
      const calls = ofKind(page, 'call');
      expect(calls.map(({ by, method, path, status }) => [by, method, path, status])).toEqual([
        ['demo', 'POST', '/api/token_generate', 200],
        ['demo', 'POST', GENERATE, 200],
        ['demo', 'POST', SEND_QR, 200],
        ['demo', 'POST', TEST_CALLBACK, 200],
      ]);
      expect(calls[0]).toMatchObject({ body: null, answer: { access_token: '***', expires_in: 300 } });
      expect(calls[1]).toMatchObject({ body: order(), answer: { orderId: 'DH001', content: 'DH001' } });
      expect(calls[2]).toMatchObject({ body: { terminalCode: BOX1.terminalCode, checkSum: '***' } });
      const messages = ofKind(page, 'message').map(({ box: code, to, body: { type } }) => `${code} ${to} ${type}`);
      expect(messages.slice(0, 3)).toEqual(['gateway hello', 'box welcome', 'box show'].map((it) => `VVB000001 ${it}`));
      expect(messages).toContain('VVB000001 gateway shown');
      expect(messages).toContain('VVB000001 box payment');
      expect(ofKind(page, 'box')).toMatchObject([{ box: BOX1.terminalCode, online: true, why: transport }]);
      const [failed, delivered] = ofKind(page, 'callback');
      expect(failed).toMatchObject({ result: 'pending', status: 500, error: null, byHand: false, partner: 'demo' });
      expect(delivered).toMatchObject({ result: 'delivered', status: 200, body: { orderId: 'DH001', amount: 50_000 } });
      expect(delivered?.id).toBe(failed?.id);
      expect(page.entries.map(({ n }) => n)).toEqual(page.entries.map((_, index) => index + 1));
      await box.close();
      await eventually('the box to be lost', async () => ofKind(await told(gateway), 'box').length === 2);
      expect(ofKind(await told(gateway), 'box')[1]).toMatchObject({ online: false });
    },
  );

  it('GET /_mock/wire shows no password, token, checkSum or seal', async () => {
    const { gateway } = await session('mqtt');
    await gateway.post(SEND_QR, '{"checkSum":"feed","amount":');
    const text = JSON.stringify(await told(gateway));
    const token = await gateway.token();
    for (const secret of [token, 'demo-secret', 'private-bearer', BOX1.secret, 'feed', push().checkSum]) {
      expect(text).not.toContain(secret);
    }
    // As every sealed message begins.
    expect(text).not.toMatch(/eyJ/);
  });

  it('GET /_mock/wire shows refusals, calls of strangers as of nobody, and what admins have changed', async () => {
    const gateway = await testGateway();
    await gateway.generate();
    await gateway.sendQr();
    await gateway.post(SEND_QR, 'no JSON');
    await gateway.sendQr({}, { authorization: 'Bearer wrong' });
    await gateway.token('demo', 'guessed');
    await gateway.mock('/orders/DH001/cancel', 'POST');
    await gateway.mock('/orders/DH404/cancel', 'POST');
    await gateway.mock('/orders');
    const calls = ofKind(await told(gateway), 'call').map(({ by, path, status, body, answer }) => [
      by,
      path,
      status,
      typeof body,
      answer,
    ]);
    expect(calls.slice(2)).toEqual([
      ['demo', SEND_QR, 400, 'object', failed('BOX_OFFLINE')],
      ['demo', SEND_QR, 400, 'string', failed('E46')],
      [null, SEND_QR, 401, 'object', failed('E74')],
      [null, '/api/token_generate', 401, 'object', failed('E74')],
      [null, '/_mock/orders/DH001/cancel', 200, 'object', { status: 'SUCCESS', message: '' }],
      [null, '/_mock/orders/DH404/cancel', 404, 'object', failed('E96')],
    ]);
  });

  it('GET /_mock/wire shows a part, and refuses another question', async () => {
    const { gateway } = await session('http');
    const all = await told(gateway);
    const part = await told(gateway, `?since=${Number(all.next) - 2}&limit=1`);
    expect(part.entries).toEqual([all.entries.at(-2)]);
    expect(part).toMatchObject({ next: Number(all.next) - 1, lost: 0, run: all.run });
    for (const query of ['?since=-1', '?since=x', '?limit=0', '?limit=2001']) {
      expect((await fetch(`${gateway.origin}/_mock/wire${query}`)).status).toBe(400);
    }
  });

  it('GET /_mock/wire is for admins only', async () => {
    const gateway = await testGateway({ config: { adminToken: 'An-admin-token-of-a-test' } });
    expect((await fetch(`${gateway.origin}/_mock/wire`)).status).toBe(401);
    // What strangers try is not heard of: they could displace what admins did.
    expect((await fetch(`${gateway.origin}/_mock/orders/A/cancel`, { method: 'POST' })).status).toBe(401);
    const asked = await fetch(`${gateway.origin}/_mock/wire`, {
      headers: { authorization: 'Bearer An-admin-token-of-a-test' },
    });
    expect(wirePage.parse(await asked.json()).entries).toEqual([]);
  });
});
