import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { CASHIER_SALES_MAX } from '../../src/gateway/access/sale-pace.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { admin } from '../gateway/admin.ts';
import { BOX1, BOX2, BOXES, type TestGateway, type TestOptions, testGateway } from '../gateway/harness.ts';
import { SEPAY, sepayBody, tellHook } from '../gateway/hooks.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { ENGINES } from '../support/stores.ts';

const ROOT = 'A-long-admin-token-of-a-test';
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
type Headers = Record<string, string>;

/** A gateway with box 1, and the token of its till. */
async function till({ config, ...options }: TestOptions = {}) {
  const gateway = await testGateway({ ...options, config: { adminToken: ROOT, sources: [SEPAY], ...config } });
  await connectFakeBox({ gateway, identity: BOX1, transport: 'http', onShow: (it, show) => void it.shown(show) });
  const call = (headers: Headers) => (method: string, path: string, body?: object) =>
    admin(gateway, method, path, body, headers);
  const root = call(bearer(ROOT));
  const tokenOf = async (body: object) => String((await root('POST', 'tokens', body)).body.token);
  const as = async (body: object) => call(bearer(await tokenOf({ role: 'cashier', ...body })));
  const cashier = await as({ name: 'till-1', boxes: [BOX1.terminalCode] });
  return { gateway, root, as, cashier, tokenOf };
}
const SALE = { amount: 50_000, terminalCode: BOX1.terminalCode };
type Call = (method: string, path: string, body?: object) => ReturnType<typeof admin>;
const auditOf = async (root: Call) => (await root('GET', 'audit')).body as unknown as Record<string, unknown>[];
const orderIn = async (gateway: TestGateway, id: unknown) => {
  const answer = await fetch(`${gateway.origin}/_mock/orders`, { headers: bearer(ROOT) });
  return ((await answer.json()) as { id: string; status: string }[]).find((it) => it.id === id);
};

describe.each(ENGINES)('in $name', ({ missing, places }) => {
  const place = places();
  const counter = async () => {
    const { dataDir, ...rest } = await place();
    return till({ dataDir, config: { ...rest } });
  };

  it.skipIf(missing)(
    'SEL-3 ROL-5 THR-45 a sale is cancelled once, however often and by whatever name it is cancelled',
    async () => {
      const { gateway, root, cashier } = await counter();
      const { id, code } = (await cashier('POST', 'sales', SALE)).body;
      const before = await auditOf(root);
      const first = await cashier('POST', `sales/${code}/cancel`);
      expect([first.status, first.body]).toMatchObject([200, { id, status: 'cancelled' }]);
      const order = await orderIn(gateway, id);
      for (const name of [id, code, id, code]) {
        const again = await cashier('POST', `sales/${name}/cancel`);
        expect([again.status, again.body]).toEqual([200, first.body]);
      }
      const answer = await fetch(`${gateway.origin}/_mock/orders/${code}/cancel`, {
        method: 'POST',
        headers: bearer(ROOT),
      });
      expect(await answer.json()).toEqual({ status: 'SUCCESS', message: '' });
      expect(await orderIn(gateway, id)).toEqual(order);
      const [row, ...rest] = await auditOf(root);
      expect(row).toMatchObject({ who: 'till-1', what: 'cancelled', target: `sales/${id}` });
      expect(row?.detail).toEqual({ code, amount: 50_000, box: BOX1.terminalCode });
      expect(rest).toEqual(before);
      expect(gateway.logged('admin-called').filter((it) => String(it.path).endsWith('/cancel'))).toHaveLength(1);
    },
  );

  it.skipIf(missing)(
    'SEL-3 THR-45 what has ended stays as it ended, and money for a cancelled sale counts',
    async () => {
      const { gateway, root, cashier } = await counter();
      const paid = (await cashier('POST', 'sales', SALE)).body;
      await tellHook(gateway, sepayBody({ id: 1, referenceCode: 'FT1', content: paid.content }));
      const cancelled = (await cashier('POST', 'sales', SALE)).body;
      const before = await auditOf(root);
      const refused = await cashier('POST', `sales/${paid.code}/cancel`);
      expect([refused.status, refused.body.message]).toEqual([400, 'E46']);
      expect(await auditOf(root)).toEqual(before);
      // The customer pays while the cashier cancels.
      const [, told] = await Promise.all([
        cashier('POST', `sales/${cancelled.code}/cancel`),
        tellHook(gateway, sepayBody({ id: 2, referenceCode: 'FT2', content: cancelled.content })),
      ]);
      expect(told.status).toBe(200);
      for (const { id } of [paid, cancelled]) {
        expect((await cashier('GET', `sales/${id}`)).body).toMatchObject({ status: 'paid', paid: 50_000 });
      }
    },
  );
});

describe.each(ENGINES)('boxes of tokens in $name', ({ missing, places }) => {
  const place = places();
  const [one, two] = [BOX1.terminalCode, BOX2.terminalCode];

  it.skipIf(missing)(
    'ROL-6 THR-38 a box that is removed is in no token, and a token without a box is revoked',
    async () => {
      const { dataDir, ...rest } = await place();
      const { root, as, cashier } = await till({ dataDir, config: { ...rest, registry: 'store' } });
      const both = await as({ name: 'both', boxes: [one, two] });
      const all = await as({ name: 'all' });
      const second = await as({ name: 'second', boxes: [two] });
      expect((await root('DELETE', `boxes/${one}`)).status).toBe(200);
      // Another shop gets the code.
      const account = (await root('GET', `boxes/${two}`)).body.account;
      expect((await root('POST', 'boxes', { terminalCode: one, serialNumber: 'VVB900099', account })).status).toBe(201);
      expect((await cashier('GET', 'sales')).status).toBe(401);
      expect((await both('POST', 'sales', { ...SALE, terminalCode: one })).body).toMatchObject({ message: 'E35' });
      expect((await both('GET', 'caller')).body.tills).toEqual([two]);
      expect((await second('GET', 'caller')).body.tills).toEqual([two]);
      expect((await all('GET', 'caller')).body.tills).toContain(one);
      const told = (await auditOf(root)).filter((it) => /^(revoked|changed|removed)$/.test(String(it.what)));
      expect(told.map((it) => [it.who, it.what, it.target, it.detail])).toEqual(
        expect.arrayContaining([
          ['config', 'removed', `boxes/${one}`, {}],
          ['config', 'revoked', 'tokens/till-1', { removed: one }],
          ['config', 'changed', 'tokens/both', { removed: one, boxes: [two] }],
        ]),
      );
      expect(told).toHaveLength(3);
    },
  );

  it.skipIf(missing)('ROL-6 THR-38 a box removed from the file is refused to its cashier too', async () => {
    const { dataDir, ...rest } = await place();
    const token = { name: 'both', role: 'cashier', boxes: [one, two] };
    const first = await testGateway({ dataDir, config: { ...rest, adminToken: ROOT } });
    const made = String((await admin(first, 'POST', 'tokens', token, bearer(ROOT))).body.token);
    const only = { name: 'only', role: 'cashier', boxes: [one] };
    const gone = String((await admin(first, 'POST', 'tokens', only, bearer(ROOT))).body.token);
    const tills = async (gateway: TestGateway) =>
      (await admin(gateway, 'GET', 'caller', undefined, bearer(made))).body.tills;
    expect(await tills(first)).toEqual([one, two]);
    await first.close();
    const boxes = BOXES.filter((it) => it.terminalCode !== one);
    const without = await testGateway({ dataDir, config: { ...rest, adminToken: ROOT, boxes } });
    expect((await admin(without, 'GET', 'caller', undefined, bearer(gone))).status).toBe(401);
    await without.close();
    const again = await testGateway({ dataDir, config: { ...rest, adminToken: ROOT } });
    expect(await tills(again)).toEqual([two]);
    await again.close();
    // A restart changes nothing, nor a box that the file changes; the store takes the others over.
    const changed = BOXES.map((it) => ({ ...it, serialNumber: it.serialNumber.replace('VVB9', 'VVB8') }));
    const config = { ...rest, adminToken: ROOT, boxes: changed };
    const other = await testGateway({ dataDir, config });
    expect(await tills(other)).toEqual([two]);
    await other.close();
    const adopted = await testGateway({ dataDir, config: { ...config, registry: 'store' } });
    expect(await tills(adopted)).toEqual([two]);
    await adopted.close();
    const file = await testGateway({ dataDir, config });
    await file.close();
    const fewer = changed.filter((it) => it.terminalCode !== two);
    const lost = await testGateway({ dataDir, config: { ...config, boxes: fewer, registry: 'store' } });
    expect((await admin(lost, 'GET', 'caller', undefined, bearer(made))).status).toBe(401);
  });
});

it('ROL-6 THR-38 a body that was held back until its box was removed sells nothing there', async () => {
  const [one, two] = [BOX1.terminalCode, BOX2.terminalCode];
  const { gateway, root, tokenOf } = await till({ config: { registry: 'store' } });
  const token = await tokenOf({ name: 'both', role: 'cashier', boxes: [one, two] });
  const body = JSON.stringify(SALE);
  const request = httpRequest(`${gateway.origin}/admin/v1/sales`, {
    method: 'POST',
    headers: { ...bearer(token), 'content-type': 'application/json', 'content-length': body.length },
  });
  const answered = once(request, 'response');
  request.write(body.slice(0, 1));
  const used = async () => {
    const tokens = (await root('GET', 'tokens')).body as unknown as { name: string; lastUsedAt: string | null }[];
    return tokens.some((it) => it.name === 'both' && it.lastUsedAt !== null);
  };
  await eventually('its head is read', used);
  expect((await root('DELETE', `boxes/${one}`)).status).toBe(200);
  request.end(body.slice(1));
  const [response] = (await answered) as [IncomingMessage];
  expect([response.statusCode, await json(response)]).toMatchObject([
    400,
    { message: 'E35', reason: `terminalCode: expected a box of this token: ${two}` },
  ]);
});

it('LIM-10 SEL-5 THR-45 each token of a cashier sells so often in a minute; an admin and other tills go on', async () => {
  const clock = new VirtualClock();
  const { gateway, root, as, cashier } = await till({ clock });
  const other = await as({ name: 'till-2', boxes: [BOX2.terminalCode] });
  const sale = { ...SALE, terminalCode: BOX2.terminalCode };
  // Box 2 is not connected: an attempt counts, too.
  for (let sold = 0; sold < CASHIER_SALES_MAX; sold += 1) {
    expect([sold, (await other('POST', 'sales', sale)).body.message]).toEqual([sold, 'BOX_OFFLINE']);
  }
  const refused = await other('POST', 'sales', sale);
  expect([refused.status, refused.body.message, refused.headers.get('retry-after')]).toEqual([
    429,
    'TOO_MANY_SALES',
    '2',
  ]);
  expect(refused.body.reason).toContain('till-2');
  for (let more = 0; more < 9; more += 1) await other('POST', 'sales', sale);
  expect(gateway.logged('request-refused').filter((it) => it.code === 'TOO_MANY_SALES')).toHaveLength(10);
  expect((await other('GET', 'sales')).status).toBe(200);
  expect((await cashier('POST', 'sales', SALE)).status).toBe(201);
  expect((await root('POST', 'sales', SALE)).status).toBe(201);
  await clock.advance(2_000);
  expect((await other('POST', 'sales', sale)).body.message).toBe('BOX_OFFLINE');
  expect((await other('POST', 'sales', sale)).body.message).toBe('TOO_MANY_SALES');
});
