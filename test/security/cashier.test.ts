import { describe, expect, it } from 'vitest';
import { CASHIER_SALES_MAX } from '../../src/gateway/access/sale-pace.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { admin } from '../gateway/admin.ts';
import { BOX1, BOX2, type TestGateway, type TestOptions, testGateway } from '../gateway/harness.ts';
import { SEPAY, sepayBody, tellHook } from '../gateway/hooks.ts';
import { connectFakeBox } from '../support/fake-box.ts';
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
  return { gateway, root, as, cashier };
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
