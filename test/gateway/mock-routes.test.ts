import { describe, expect, it, onTestFinished } from 'vitest';
import { Authorizer } from '../../src/gateway/access/authorizer.ts';
import { Logins } from '../../src/gateway/common/logins.ts';
import { guardRoutes } from '../../src/gateway/doors/admin.ts';
import { createApp } from '../../src/gateway/doors/app.ts';
import type { OpenGateway } from '../../src/gateway/stages/open-gateway.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { quietLog } from '../support/kept-log.ts';
import { eventually } from '../support/net.ts';
import { ACCOUNT, BOX1, BOX3, failed, kept, partnerServer, processed, status, testGateway } from './harness.ts';
import { only, storedOf, worldOf } from './stage-records.ts';

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const UUID = expect.stringMatching(/^[0-9a-f-]{36}$/);

/** A gateway with an order on the screen of box 1. */
async function shown(...replies: Parameters<typeof partnerServer>) {
  const partner = await partnerServer(...replies);
  const gateway = await testGateway({
    callback: { url: partner.url, auth: { kind: 'bearer', token: 'private-bearer' } },
  });
  const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
  const { body } = await gateway.generate();
  await gateway.sendQr({ qrCode: body.qrCode });
  const act = async (path: string) => {
    const answer = await fetch(`${gateway.origin}/_mock${path}`, { method: 'POST' });
    return [answer.status, await answer.json()];
  };
  return { partner, gateway, box, act };
}

describe('the lists of a gateway', () => {
  it('the lists of a gateway show each box with its link and its session', async () => {
    const { gateway, box } = await shown();
    const online = { online: true, transport: 'mqtt', sessionId: box.sessionId, since: TIME };
    const [first] = await gateway.mock('/boxes');
    expect(first).toEqual({
      terminalCode: BOX1.terminalCode,
      dialect: 'paybox',
      confirms: true,
      serialNumber: BOX1.serialNumber,
      account: ACCOUNT,
      hasSecret: true,
      ...online,
      agentVersion: 'fake',
      display: 'fake',
    });
    expect(await gateway.mock<object>(`/boxes/${BOX1.terminalCode}`)).toEqual(first);
    expect(await gateway.mock<object>(`/boxes/${BOX3.terminalCode}`)).toMatchObject({ account: null, online: false });
    expect((await fetch(`${gateway.origin}/_mock/boxes/VVB999999`)).status).toBe(404);
  });

  it('the lists of a gateway show orders with their pushes', async () => {
    const { gateway } = await shown();
    expect(await gateway.mock('/orders')).toEqual([
      expect.objectContaining({
        ...ACCOUNT,
        id: UUID,
        orderId: 'DH001',
        partner: 'demo',
        status: 'shown',
        failure: null,
        amount: 50_000,
        box: BOX1.terminalCode,
        shownOn: BOX1.terminalCode,
        createdAt: TIME,
        expiresAt: TIME,
        paidAt: null,
        pushes: [
          {
            id: UUID,
            terminalCode: BOX1.terminalCode,
            status: 'shown',
            code: null,
            createdAt: TIME,
            confirmedAt: TIME,
            endedAt: null,
          },
        ],
      }),
    ]);
  });

  it('the lists of a gateway show payments, what boxes said of them, and every attempt of a callback', async () => {
    const { gateway, box } = await shown();
    await gateway.testCallback();
    const { transactionId, orderId, amount } = await box.next('payment');
    await box.send({ type: 'paid', transactionId, orderId, amount, recorded: true }, transactionId);
    await box.next('ack');
    const [callback] = await eventually('a delivered callback', async () => {
      const callbacks = await gateway.mock('/callbacks');
      return callbacks[0]?.status === 'delivered' && callbacks;
    });
    expect(callback).toMatchObject({ id: UUID, transactionId, partner: 'demo', warning: null, nextAttemptAt: null });
    expect(callback?.attempts).toEqual([
      {
        id: UUID,
        byHand: false,
        startedAt: TIME,
        durationMs: expect.any(Number),
        request: expect.objectContaining({ method: 'POST', body: expect.stringContaining(transactionId) }),
        response: { status: 200, body: expect.stringContaining('reftransactionid') },
        error: null,
      },
    ]);
    expect(JSON.stringify(callback)).not.toContain('private-bearer');
    expect(await gateway.mock('/payments')).toMatchObject([
      {
        transactionId,
        orderId: 'DH001',
        boxes: [{ terminalCode: BOX1.terminalCode, reportedAt: TIME, recorded: true }],
        callback: { id: callback?.id, status: 'delivered' },
      },
    ]);
  });

  it.each(['orders', 'payments', 'callbacks'])('give as many %s as asked, newest first', async (list) => {
    const { gateway } = await shown();
    await gateway.generate({ orderId: 'DH002' });
    for (const amount of [1, 2]) await gateway.testCallback({ amount });
    expect(await gateway.mock(`/${list}`)).toHaveLength(2);
    const [newest] = await gateway.mock(`/${list}`);
    expect((await gateway.mock(`/${list}?limit=1`)).map((it) => it.id ?? it.transactionId)).toEqual([
      newest?.id ?? newest?.transactionId,
    ]);
    const older = await gateway.mock(`/${list}?before=${newest?.id ?? newest?.transactionId}`);
    expect(older).toEqual((await gateway.mock(`/${list}`)).slice(1));
    expect(await gateway.mock(`/${list}?before=${older[0]?.id ?? older[0]?.transactionId}`)).toEqual([]);
    expect(await gateway.mock(`/${list}?before=unknown`)).toEqual([]);
    for (const limit of ['0', '501', '-1', '1.5', 'x', '']) {
      const answer = await fetch(`${gateway.origin}/_mock/${list}?limit=${limit}`);
      expect([limit, answer.status, await answer.json()]).toEqual([limit, 400, failed('E46')]);
    }
  });

  it('the lists of a gateway tell a page where to begin, and no password but that of the demo', async () => {
    const demo = await testGateway();
    expect(await demo.mock<object>('/about')).toMatchObject({
      baseUrl: demo.baseUrl,
      partner: { username: 'demo', password: 'demo-secret' },
      account: ACCOUNT,
      box: { terminalCode: BOX1.terminalCode },
    });
    const accounts = [ACCOUNT.bankAccount];
    const own = await testGateway({ config: { partners: [{ username: 'me', password: 'my-own', accounts }] } });
    expect(await own.mock<object>('/about')).toMatchObject({ partner: { username: 'me', password: null } });
    const empty = await testGateway({ config: { partners: [], accounts: [], boxes: [] } });
    expect(await empty.mock<object>('/about')).toMatchObject({ partner: null, account: null, box: null });
  });
});

describe('what a person can do', () => {
  it('a person cancels an order and removes it from the box', async () => {
    const { gateway, box, act } = await shown();
    expect(await act('/orders/DH001/cancel')).toEqual([200, { status: 'SUCCESS', message: '' }]);
    const { pushId } = await box.next('show');
    expect(await box.next('withdraw')).toMatchObject({ pushId, why: 'cancelled' });
    expect(await gateway.mock('/orders')).toMatchObject([{ status: 'cancelled' }]);
  });

  it('a person pays an order, by its orderId or its id, and then cannot cancel it', async () => {
    const { gateway, box, act, partner } = await shown();
    const [{ id } = { id: '' }] = await gateway.mock('/orders');
    expect(await act(`/orders/${id}/pay`)).toEqual([200, { status: 'SUCCESS', message: UUID }]);
    const { pushId } = await box.next('show');
    expect(await box.next('payment')).toMatchObject({ orderId: 'DH001', pushId });
    await eventually('the callback', () => partner.calls.length === 1);
    const before = await kept(gateway);
    expect(await act('/orders/DH001/cancel')).toEqual([400, failed('E46')]);
    expect(await kept(gateway)).toEqual(before);
    expect(box.of('withdraw')).toEqual([]);
  });

  it('a person sends a callback again', async () => {
    const { gateway, act, partner } = await shown(status(400, 'no'), processed);
    await gateway.testCallback();
    const [failed] = await eventually('a failed callback', async () => {
      const callbacks = await gateway.mock('/callbacks');
      return callbacks[0]?.status === 'failed' && callbacks;
    });
    const [code, again] = await act(`/callbacks/${failed?.id}/resend`);
    expect([code, again]).toEqual([200, expect.objectContaining({ id: failed?.id, status: 'delivered' })]);
    expect(await gateway.mock('/callbacks')).toMatchObject([{ attempts: [{ byHand: false }, { byHand: true }] }]);
    expect(partner.calls.map((it) => it.body)).toEqual([partner.calls[0]?.body, partner.calls[0]?.body]);
  });

  it('a person gets the name of what is not there', async () => {
    const { gateway, act } = await shown();
    const before = await kept(gateway);
    for (const path of ['/orders/none/cancel', '/orders/none/pay', '/callbacks/none/resend']) {
      expect([path, ...(await act(path)), gateway.refusals()]).toEqual([path, 404, failed('E96'), ['E96']]);
    }
    expect(await kept(gateway)).toEqual(before);
  });

  it('CBK-1 a person pays nothing outside a sandbox', async () => {
    const gateway = await testGateway({ config: { sandbox: false } });
    await gateway.generate();
    expect(await gateway.mock<object>('/orders/DH001/pay', 'POST')).toEqual(failed('E75'));
    expect(await gateway.mock('/payments')).toEqual([]);
  });
});

it('the event stream tells watchers what changed, and ends when the gateway closes', async () => {
  const gateway = await testGateway();
  const stream = await fetch(`${gateway.origin}/_mock/events`);
  expect(stream.headers.get('content-type')).toContain('text/event-stream');
  let told = '';
  const ended = (async () => {
    for await (const chunk of stream.body ?? []) told += Buffer.from(chunk).toString();
  })();
  await gateway.generate();
  await eventually('orders', () => told.includes('data: orders\n\n'));
  await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
  await eventually('boxes', () => told.includes('data: boxes\n\n'));
  await gateway.mock('/orders/DH001/pay', 'POST');
  await eventually('payments', () => told.includes('data: payments\n\n'));
  await gateway.close();
  await ended.catch(() => undefined);
});

describe('who may see and do it', () => {
  it.each([
    ['by a name that is not loopback', { host: 'gateway.example' }],
    ['by a name that only begins like one', { host: '127.0.0.1.evil.example' }],
    ['from a page of another origin', { origin: 'http://evil.example' }],
    ['from a page of another port', { origin: 'http://127.0.0.1:1' }],
    ['from a sandboxed page', { origin: 'null' }],
    ['by a name made to point here', { host: 'rebound.example:8800', origin: 'http://rebound.example:8800' }],
    ['by an address of another network', { host: '192.168.1.2:8800' }],
    ['as an image of another page', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }],
    [
      'as a frame of another page',
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    ],
    ['from a page of another port of this machine', { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' }],
  ])('THR-5 nobody who asks %s may use /_mock', async (_name, headers) => {
    const app = await guarded(undefined);
    const answer = await app.inject({ url: '/_mock/about', headers: { host: '127.0.0.1:8800', ...headers } });
    expect([answer.statusCode, answer.json()]).toEqual([401, failed('E74')]);
    expect(answer.headers['www-authenticate']).toBe('Bearer realm="paybox"');
  });

  it('THR-29 nobody whom a proxy of this machine names may use /_mock, unless with the admin token', async () => {
    const open = await testGateway({ config: { mqtt: null } });
    const guarded = await testGateway({ config: { mqtt: null, adminToken: 'A-long-admin-token-of-a-test' } });
    for (const [name, value] of [
      ['forwarded', 'for=192.0.2.7;proto=https'],
      ['x-forwarded-for', '192.0.2.7'],
      ['X-Forwarded-Host', 'gateway.example'],
      ['x-forwarded-proto', 'https'],
      ['x-real-ip', '127.0.0.1'],
      ['x_forwarded_for', '192.0.2.7'],
      ['cf-connecting-ip', '192.0.2.7'],
      ['via', '1.1 proxy'],
      ['x-original-host', 'gateway.example'],
      ['x-envoy-external-address', '192.0.2.7'],
      ['x-azure-clientip', '192.0.2.7'],
      ['x-appengine-user-ip', '192.0.2.7'],
      ['x-proxyuser-ip', '192.0.2.7'],
    ] as const) {
      const refused = await fetch(`${open.origin}/_mock/boxes`, { headers: { [name]: value } });
      const what = 'expected a token as bearer: an admin makes one with paybox admin tokens add';
      const reason = `through a proxy, which sent ${name.toLowerCase()}: ${what}`;
      const told = [refused.status, await refused.json(), refused.headers.get('x-paybox-reason')];
      expect(told).toEqual([401, failed('E74'), reason]);
      expect(open.logged('request-refused').at(-1)).toMatchObject({ reason });
      expect((await fetch(`${open.origin}/healthz`, { headers: { [name]: value } })).status).toBe(200);
      const headers = { [name]: value, authorization: 'Bearer A-long-admin-token-of-a-test' };
      expect((await fetch(`${guarded.origin}/_mock/boxes`, { headers })).status).toBe(200);
    }
  });

  it('THR-5 no page that posts a form may use /_mock, but anybody who follows a link', async () => {
    const app = await guarded(undefined);
    const ask = async (method: 'GET' | 'POST', site: string) => {
      const headers = {
        host: 'localhost:8800',
        'sec-fetch-site': site,
        'sec-fetch-mode': 'navigate',
        'sec-fetch-dest': 'document',
      };
      const url = method === 'GET' ? '/_mock/about' : '/_mock/orders/x/pay';
      return (await app.inject({ method, url, headers })).statusCode;
    };
    expect(await ask('GET', 'cross-site')).toBe(200);
    expect(await ask('POST', 'cross-site')).toBe(401);
    for (const site of ['same-origin', 'none']) expect(await ask('POST', site)).toBe(200);
  });

  it.each<[string, number]>([
    ['127.0.0.1', 200],
    ['127.8.9.10', 200],
    ['::1', 200],
    ['::ffff:127.0.0.1', 200],
    ['192.0.2.7', 401],
    ['::ffff:192.0.2.7', 401],
    ['2001:db8::1', 401],
    ['::127.0.0.1', 401],
  ])('is this machine only, without an admin token: %s gets %d', async (remoteAddress, expected) => {
    const app = await guarded(undefined);
    const answer = await app.inject({ url: '/_mock/about', remoteAddress, headers: { host: 'localhost:8800' } });
    expect(answer.statusCode).toBe(expected);
  });

  it('ROL-2 a gateway does not start with a route that does not say who may call it', async () => {
    const app = await guarded(undefined);
    for (const [method, url] of [
      ['GET', '/_mock/new'],
      ['PUT', '/_mock/about'],
      ['GET', '/admin/v1/partners/:name/secrets'],
    ] as const) {
      const register = () => app.route({ method, url, handler: () => ({}) });
      expect(register).toThrow(`${method} ${url}: expected config.access to say who may call it`);
    }
  });

  it('whoever has the admin token may use /_mock, from anywhere', async () => {
    const app = await guarded('A-long-admin-token-of-a-test');
    const ask = async (authorization: string) => {
      const host = 'gateway.example';
      return (await app.inject({ url: '/_mock/about', remoteAddress: '192.0.2.7', headers: { host, authorization } }))
        .statusCode;
    };
    expect(await ask('Bearer A-long-admin-token-of-a-test')).toBe(200);
    expect(await ask('bearer A-long-admin-token-of-a-test')).toBe(200);
    for (const wrong of [
      '',
      'Bearer',
      'Bearer A-long-admin-token-of-a-tes',
      'Bearer A-long-admin-token-of-a-testx',
      'Basic YTpi',
    ]) {
      expect([wrong, await ask(wrong)]).toEqual([wrong, 401]);
    }
  });

  it('nobody of this machine may use /_mock without the admin token where there is one', async () => {
    const gateway = await testGateway({ config: { adminToken: 'A-long-admin-token-of-a-test' } });
    for (const path of ['/about', '/boxes', '/orders', '/payments', '/callbacks', '/events']) {
      const without = await fetch(`${gateway.origin}/_mock${path}`);
      expect([path, without.status]).toEqual([path, 401]);
    }
    const cancel = await fetch(`${gateway.origin}/_mock/orders/DH001/cancel`, { method: 'POST' });
    expect(cancel.status).toBe(401);
    const headers = { authorization: 'Bearer A-long-admin-token-of-a-test' };
    expect((await fetch(`${gateway.origin}/_mock/boxes`, { headers })).status).toBe(200);
    expect(JSON.stringify(gateway.log)).not.toContain('A-long-admin-token-of-a-test');
  });
});

/** Two routes behind the guard alone, so that a test can choose whence a request comes. */
async function guarded(adminToken: string | undefined) {
  const clock = new VirtualClock();
  const log = quietLog(clock);
  const app = createApp(log, clock);
  onTestFinished(() => app.close());
  const root = adminToken === undefined ? undefined : ({ name: 'config', value: adminToken } as const);
  const onLoopback = root === undefined ? 'admin' : 'none';
  const tokens = { find: async () => undefined, used: async () => undefined };
  const authorizer = new Authorizer({ root, onLoopback, tokens, logins: new Logins(clock), clock, log });
  guardRoutes(app, only<OpenGateway>({ world: worldOf({ clock, log }), stored: storedOf({}), access: { authorizer } }));
  app.get('/_mock/about', { config: { access: 'look' } }, () => ({}));
  app.post('/_mock/orders/:orderId/pay', { config: { access: 'administer' } }, () => ({}));
  return app;
}
