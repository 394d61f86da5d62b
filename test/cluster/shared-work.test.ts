import { describe, expect, it, vi } from 'vitest';
import { PushReader } from '../../src/gateway/store/repositories/pushes.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { ENROLMENT_LIFETIME_MS } from '../../src/protocol/enrolment.ts';
import { newSecret } from '../../src/protocol/secret.ts';
import { openStream } from '../gateway/admin.ts';
import {
  BOX1,
  BOX2,
  partnerServer,
  processed,
  qrFor,
  status,
  type TestGateway,
  type TestOptions,
  testGateway,
} from '../gateway/harness.ts';
import { SEPAY, sepayBody, tellHook } from '../gateway/hooks.ts';
import { AskingBox, loginStatus } from '../support/asking-box.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { ClusterRows } from './rows.ts';

const TOKEN = newSecret(systemRandom);
const ADMIN = { authorization: `Bearer ${TOKEN}` };
const BOX = { terminalCode: 'VVB000001', serialNumber: 'VVB900001' };

describe.skipIf(missing)(`gateways that share a database${note}`, () => {
  const server = postgresServer();

  /** Gateways of one database, without a broker, which see each other. */
  async function gatewaysOf(names: readonly string[], { config, ...options }: TestOptions = {}, url?: string) {
    const databaseUrl = url ?? (await server().database());
    const all: TestGateway[] = [];
    for (const name of names) {
      const shared = { mqtt: null, adminToken: TOKEN, databaseUrl, cluster: { name } };
      all.push(await testGateway({ ...options, config: { ...shared, ...config } }));
    }
    return all as [TestGateway, TestGateway];
  }

  async function admin<T>(gateway: TestGateway, path: string, body?: object) {
    const method = body === undefined ? 'GET' : 'POST';
    const headers = { ...ADMIN, ...(body && { 'content-type': 'application/json' }) };
    const sent = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const answer = await fetch(`${gateway.origin}${path}`, sent);
    return { status: answer.status, body: (await answer.json()) as T };
  }
  const acceptCode = async (gateway: TestGateway, code: string) => {
    const path = `/_mock/enrolments/${BOX.terminalCode}/accept`;
    const { status, body } = await admin<{ message: string }>(gateway, path, { code });
    return [status, body.message];
  };

  it('ENR-3 ENR-4 ENR-5 a box asks one gateway, an admin accepts at another, and it logs in at any', async () => {
    const [a, b] = await gatewaysOf(['a', 'b'], { config: { boxes: [BOX] } });
    const box = new AskingBox(a.origin, BOX);
    expect((await box.ask()).status).toBe(201);
    const elsewhere = new AskingBox(b.origin, BOX);
    elsewhere.id = box.id;
    expect(await elsewhere.state()).toEqual({ state: 'pending' });
    const { body: listed } = await admin(b, '/_mock/enrolments');
    expect(listed).toMatchObject([{ terminalCode: BOX.terminalCode, requests: 1 }]);
    expect(await acceptCode(b, box.code)).toEqual([200, '']);
    expect(await elsewhere.state()).toMatchObject({ state: 'accepted', how: 'code' });
    const secret = (await box.agree()) ?? '';
    for (const it of [a, b]) expect(await loginStatus(it.origin, BOX.terminalCode, secret)).toBe(200);
  });

  it('ENR-3 ENR-7 wrong codes and shared codes count at all gateways together', async () => {
    const [a, b] = await gatewaysOf(['a', 'b'], { config: { boxes: [BOX] } });
    const box = new AskingBox(a.origin, BOX);
    await box.ask();
    const wrong = new AskingBox(b.origin, BOX).code;
    for (let i = 0; i < 9; i += 1) expect((await acceptCode(i % 2 === 0 ? a : b, wrong))[1]).toBe('WRONG_CODE');
    expect(await box.state()).toEqual({ state: 'pending' });
    expect((await acceptCode(b, wrong))[1]).toBe('WRONG_CODE');
    expect(await box.state()).toEqual({ state: 'rejected' });
    const next = new AskingBox(a.origin, BOX);
    await next.ask();
    const thief = new AskingBox(b.origin, BOX, '127.0.0.2', next.code);
    expect((await thief.ask()).status).toBe(201);
    expect(await acceptCode(a, next.code)).toEqual([400, 'CODE_SHARED']);
    expect([await next.state(), await thief.state()]).toEqual([{ state: 'rejected' }, { state: 'rejected' }]);
  });

  it('ENR-7 a request ends with the gateway that took it, and its code stays known', async () => {
    const [a, b] = await gatewaysOf(['a', 'b'], { config: { boxes: [BOX] } });
    const box = new AskingBox(a.origin, BOX);
    await box.ask();
    await a.close();
    const elsewhere = new AskingBox(b.origin, BOX, '127.0.0.1', box.code);
    elsewhere.id = box.id;
    await eventually('the end of the request', async () => (await elsewhere.state()) === undefined);
    expect((await elsewhere.ask()).status).toBe(201);
    expect(await acceptCode(b, box.code)).toEqual([400, 'CODE_SHARED']);
  });

  it('ENR-7 SHA-10 a request lives as long at each gateway, by the clock of the database alone', async () => {
    const url = await server().database();
    let aheadMs = 0;
    const clock: Clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs };
    const [a] = await gatewaysOf(['a'], { config: { boxes: [BOX] } }, url);
    const [b] = await gatewaysOf(['b'], { config: { boxes: [BOX] }, clock }, url);
    const box = new AskingBox(a.origin, BOX);
    await box.ask();
    const elsewhere = new AskingBox(b.origin, BOX);
    elsewhere.id = box.id;
    await eventually('both gateways', async () => (await elsewhere.state())?.state === 'pending');
    // A process that was frozen, or a machine that has slept, finds its clocks elsewhere.
    aheadMs = 2 * ENROLMENT_LIFETIME_MS;
    await eventually('the clock of the database', async () => (await elsewhere.state())?.state === 'pending');
    expect(await acceptCode(b, box.code)).toEqual([200, '']);
  });

  it('ENR-8 an open gateway enrols a box that asks another one', async () => {
    const [a, b] = await gatewaysOf(['a', 'b'], { config: { boxes: [BOX], enrolment: 'open' } });
    const box = new AskingBox(a.origin, BOX);
    await box.ask();
    const elsewhere = new AskingBox(b.origin, BOX);
    elsewhere.id = box.id;
    expect(await elsewhere.state()).toMatchObject({ state: 'accepted', how: 'open' });
    const secret = (await box.agree('')) ?? '';
    for (const it of [a, b]) expect(await loginStatus(it.origin, BOX.terminalCode, secret)).toBe(200);
  });

  it('SYN-1 SYN-4 a partner gets the callback of each payment once, and another gateway goes on when one ends', async () => {
    const replies = new Map<string, number>();
    let isAway = false;
    const partner = await partnerServer((call, response, request) => {
      const { transactionid: id } = JSON.parse(call.body) as { transactionid: string };
      const count = (replies.get(id) ?? 0) + 1;
      replies.set(id, count);
      if (isAway) status(500)(call, response, request);
      else processed(call, response, request);
    });
    const [a, b] = await gatewaysOf(['a', 'b'], { callback: { url: partner.url } });
    const paid = async (gateway: TestGateway) => String((await gateway.testCallback()).body.message);
    const ids = [await paid(a), await paid(b), ...(await Promise.all([paid(a), paid(b), paid(a), paid(b)]))];
    const delivered = async (gateway: TestGateway) => {
      const { body } = await admin<{ status: string }[]>(gateway, '/_mock/callbacks');
      return body.filter((it) => it.status === 'delivered').length;
    };
    await eventually('all', async () => (await delivered(b)) === ids.length);
    expect([...replies.keys()].toSorted()).toEqual(ids.toSorted());
    expect([...replies.values()]).toEqual(ids.map(() => 1));
    isAway = true;
    const left = await paid(b);
    await eventually('a failed attempt', () => replies.get(left) === 1);
    await a.close();
    isAway = false;
    await eventually('what was left', async () => (await delivered(b)) === ids.length + 1);
    expect(replies.get(left)).toBeGreaterThan(1);
  });

  it('SND-9 a push that a partner repeats at another gateway is one push while it is awaited and on the screen', async () => {
    const [a, b] = await gatewaysOf(['a', 'b']);
    const box = await connectFakeBox({ gateway: a, identity: BOX1, transport: 'http', onShow: async () => undefined });
    const asked = [b.sendQr()];
    const show = await box.next('show');
    const read = vi.spyOn(PushReader.prototype, 'pushOnBox').mockClear();
    asked.push(a.sendQr());
    await eventually('the second call to find the push of the first', () => read.mock.settledResults.length > 1);
    await box.shown(show);
    expect((await Promise.all(asked)).map((it) => it.body.status)).toEqual(['SUCCESS', 'SUCCESS']);
    expect((await b.sendQr()).body.status).toBe('SUCCESS');
    expect(box.of('show')).toHaveLength(1);
    const { body: orders } = await admin<{ pushes: unknown[] }[]>(b, '/_mock/orders');
    expect(orders.map((it) => it.pushes.length)).toEqual([1]);
  });

  it('SND-9 a push that a partner sends to several gateways in one moment is one push of one order', async () => {
    const [a, b] = await gatewaysOf(['a', 'b']);
    const box = await connectFakeBox({ gateway: b, identity: BOX1, transport: 'http' });
    await eventually('the box at both', async () => (await a.sendQr()).body.status === 'SUCCESS');
    const codes = Array.from({ length: 10 }, (_, n) => `DH1${n}`);
    for (const orderId of codes) {
      const isGenerated = orderId.endsWith('2') || orderId.endsWith('7');
      const made = isGenerated ? (await a.generate({ orderId, content: orderId })).body : undefined;
      const named = { orderId, content: orderId, qrCode: made?.qrCode ?? qrFor({ purpose: orderId }) };
      const answers = await Promise.all([a, b, a, b].map((it) => it.sendQr(named)));
      expect(answers.map((it) => it.body.status)).toEqual(answers.map(() => 'SUCCESS'));
    }
    const { body: orders } = await admin<{ orderId: string; pushes: unknown[] }[]>(b, '/_mock/orders');
    const pushes = orders.map((it) => [it.orderId, it.pushes.length]);
    expect(pushes.toReversed().slice(1)).toEqual(codes.map((code) => [code, 1]));
    expect(box.of('show')).toHaveLength(codes.length + 1);
  });

  it('SND-9 an order that is pushed to two boxes in one moment is shown by both', async () => {
    const [a, b] = await gatewaysOf(['a', 'b']);
    const boxes = [
      await connectFakeBox({ gateway: a, identity: BOX1, transport: 'http' }),
      await connectFakeBox({ gateway: b, identity: BOX2, transport: 'http' }),
    ];
    for (const [n, second] of [a, b, a, b, b, a].entries()) {
      const orderId = `DH3${n}`;
      await a.generate({ orderId, content: orderId });
      const named = { orderId, content: orderId, qrCode: qrFor({ purpose: orderId }) };
      const calls = [
        a.sendQr(named),
        second.sendQr({ ...named, terminalCode: BOX2.terminalCode, serialNumber: BOX2.serialNumber }),
      ];
      expect((await Promise.all(calls)).map((it) => it.body.status)).toEqual(['SUCCESS', 'SUCCESS']);
      for (const box of boxes) expect(box.of('show').at(-1)?.orderId).toBe(orderId);
    }
  });

  it('SND-9 a refusal answers the calls at every gateway', async () => {
    const [a, b] = await gatewaysOf(['a', 'b']);
    const box = await connectFakeBox({ gateway: a, identity: BOX1, transport: 'http', onShow: async () => undefined });
    const asked = [b.sendQr()];
    const { pushId } = await box.next('show');
    const read = vi.spyOn(PushReader.prototype, 'pushOnBox').mockClear();
    asked.push(a.sendQr());
    await eventually('the second call to find the push of the first', () => read.mock.settledResults.length > 1);
    box.send({ type: 'rejected', pushId, code: 'DISPLAY_FAULT', reason: 'unplugged' });
    expect((await Promise.all(asked)).map((it) => it.body.message)).toEqual(['DISPLAY_FAULT', 'DISPLAY_FAULT']);
    expect(box.of('show')).toHaveLength(1);
  });

  it('SND-9 a cancelled or paid order, and one that a newer push replaced, is not pushed again by a call that waited', async () => {
    const [a, b] = await gatewaysOf(['a', 'b']);
    const box = await connectFakeBox({ gateway: b, identity: BOX1, transport: 'http', onShow: async () => undefined });
    const shown = (orderId: string) =>
      eventually(`the box to hear of ${orderId}`, () => box.of('show').find((it) => it.orderId === orderId));
    const ends: ((orderId: string) => Promise<unknown>)[] = [
      (orderId) => admin(a, `/_mock/orders/${orderId}/cancel`, {}),
      (orderId) => admin(b, `/_mock/orders/${orderId}/pay`, {}),
      () => a.sendQr({ orderId: 'DH9', content: 'DH9', qrCode: qrFor({ purpose: 'DH9' }) }),
    ];
    for (const [n, end] of ends.entries()) {
      const orderId = `DH2${n}`;
      const named = { orderId, content: orderId, qrCode: qrFor({ purpose: orderId }) };
      const read = vi.spyOn(PushReader.prototype, 'pushOnBox').mockClear();
      const calls = [a, b, a].map((it) => it.sendQr(named));
      await shown(orderId);
      await eventually('the calls at the other gateway to wait for this push', () =>
        read.mock.settledResults.some(({ value }) => typeof value === 'object'),
      );
      const ended = end(orderId);
      if (n === 2) await box.shown(await shown('DH9'));
      await ended;
      await Promise.all(calls);
      const { body: orders } = await admin<{ orderId: string; pushes: unknown[] }[]>(b, '/_mock/orders');
      expect(orders.find((it) => it.orderId === orderId)?.pushes).toHaveLength(1);
    }
    // A push that the box does not answer is sent again.
    expect(new Set(box.of('show').map((it) => it.pushId)).size).toBe(4);
  });

  it('SRC-1 CRE-2 a source may call any gateway, and a credit that all of them get at once is one payment', async () => {
    const [a, b] = await gatewaysOf(['a', 'b'], { config: { sources: [SEPAY], sandbox: true } });
    for (let n = 0; n < 5; n += 1) {
      const body = sepayBody({ id: 1_000 + n, referenceCode: `FT2600100010${n}` });
      const answers = await Promise.all([a, b, a, b].map((it) => tellHook(it, body)));
      expect(answers.map((it) => it.status)).toEqual([200, 200, 200, 200]);
      const repeated = answers.filter((it) => it.headers.get('x-paybox-warning')?.includes('duplicate'));
      expect(repeated).toHaveLength(3);
    }
    const { body: payments } = await admin<unknown[]>(b, '/_mock/payments');
    expect(payments).toHaveLength(5);
  });

  it('SRC-30 any gateway shows when a source last called any of them', async () => {
    const [a, b] = await gatewaysOf(['a', 'b'], { config: { sources: [SEPAY] } });
    await tellHook(b);
    const toldAt = async (gateway: TestGateway) =>
      (await admin<{ toldAt: string | null }[]>(gateway, '/_mock/sources')).body[0]?.toldAt;
    await eventually('the webhook', async () => (await toldAt(a)) !== null);
    expect(await toldAt(a)).toBe(await toldAt(b));
  });

  it('REG-8 a source that an admin adds at one gateway is open at the others within a second', async () => {
    const [a, b] = await gatewaysOf(['a', 'b']);
    const begunMs = Date.now();
    expect((await admin(a, '/admin/v1/sources', SEPAY)).status).toBe(201);
    await eventually('the source', async () => (await tellHook(b)).status === 200);
    expect(Date.now() - begunMs).toBeLessThan(1_500);
  });

  it('REG-6 a change of which no news came, as its gateway ended before, is seen by the others within seconds', async () => {
    const databaseUrl = await server().database();
    const [a] = await gatewaysOf(['a', 'b'], {}, databaseUrl);
    expect(await a.token()).not.toBe('undefined');
    await new ClusterRows(
      databaseUrl,
    ).query(`with changed as (update partners set disabled = 1 where username = 'demo' returning 1)
      insert into audit (seq, at_ms, who, what, target, detail)
      select nextval('audit_seq'), 1, 'till', 'disabled', 'partners/demo', '{}' from changed`);
    await eventually('the change', async () => (await a.token()) === 'undefined');
  });

  it('ROL-5 a token that is revoked at one gateway ends its streams at the others, and is refused there', async () => {
    const [a, b] = await gatewaysOf(['a', 'b']);
    const made = await admin<{ token: string }>(a, '/admin/v1/tokens', { name: 'till', role: 'viewer' });
    expect(made.status).toBe(201);
    const stream = await openStream(`${b.origin}/_mock/events`, made.body.token);
    expect(stream.status).toBe(200);
    const revoked = await fetch(`${a.origin}/admin/v1/tokens/till`, { method: 'DELETE', headers: ADMIN });
    expect(revoked.status).toBe(200);
    await eventually('the end of the stream', () => stream.isOver);
    expect((await openStream(`${b.origin}/_mock/events`, made.body.token)).status).toBe(401);
  });

  it('TOK-1 any gateway takes the token of a partner, although the clock of another one is an hour off', async () => {
    const databaseUrl = await server().database();
    const gatewayOf = (name: string, aheadMs: number) =>
      testGateway({
        config: { mqtt: null, adminToken: TOKEN, databaseUrl, cluster: { name } },
        clock: { ...systemClock, wallMs: () => systemClock.wallMs() + aheadMs },
      });
    const [a, b, c] = [await gatewayOf('a', 0), await gatewayOf('b', 3_600_000), await gatewayOf('c', -3_600_000)];
    for (const issuer of [a, b, c]) {
      const authorization = `Bearer ${await issuer.token()}`;
      for (const taker of [a, b, c]) {
        expect((await taker.generate({}, { authorization })).status).toBe(200);
      }
    }
    const { body: orders } = await admin<{ createdAt: string }[]>(a, '/_mock/orders');
    const times = orders.map((it) => Date.parse(it.createdAt));
    expect(Math.max(...times) - Math.min(...times)).toBeLessThan(600_000);
  });
});
