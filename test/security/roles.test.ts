import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { FastifyInstance, RouteOptions } from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';
import { admin } from '../gateway/admin.ts';
import { ACCOUNT, BOX1, BOX4, BOXES, OTHER_ACCOUNT, type TestGateway, testGateway } from '../gateway/harness.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';

const ROOT = 'A-long-admin-token-of-a-test';
const asRoot = { authorization: `Bearer ${ROOT}` };
const ROLES = ['admin', 'cashier', 'viewer', 'support'] as const;

interface Route {
  method: string;
  url: string;
}

/** A gateway, with every route that it has registered. */
async function withRoutes(config: Record<string, unknown>): Promise<{ gateway: TestGateway; routes: Route[] }> {
  const routes: Route[] = [];
  const onApp = (message: unknown) => {
    const { fastify } = message as { fastify: FastifyInstance };
    fastify.addHook('onRoute', ({ method, url }: RouteOptions) => {
      routes.push(...[method].flat().map((it) => ({ method: it, url })));
    });
  };
  subscribe('fastify.initialization', onApp);
  onTestFinished(() => void unsubscribe('fastify.initialization', onApp));
  const gateway = await testGateway({ config });
  return { gateway, routes };
}

async function tokenOf(gateway: TestGateway, body: object, headers: Record<string, string> = asRoot): Promise<string> {
  const made = await admin(gateway, 'POST', 'tokens', body, headers);
  expect([made.status, made.body]).toEqual([201, { status: 'SUCCESS', message: '', token: expect.any(String) }]);
  return String(made.body.token);
}
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** Status and code of the answer to one call; streams are left as soon as they begin. */
async function answerOf({ origin }: TestGateway, { method, url }: Route, headers: Record<string, string>) {
  const path = url.replace(':terminalCode', 'VVB000099').replaceAll(/:\w+/g, 'none').replace('*', 'x');
  const over = new AbortController();
  const answer = await fetch(`${origin}${path}`, {
    method,
    headers: { ...headers, ...(method === 'POST' || method === 'PATCH' ? { 'content-type': 'application/json' } : {}) },
    ...(method === 'POST' || method === 'PATCH' ? { body: '{}' } : {}),
    signal: over.signal,
  });
  const isJson = answer.headers.get('content-type')?.includes('json') === true;
  const { message } = isJson && answer.status >= 400 ? ((await answer.json()) as { message?: string }) : {};
  over.abort();
  return { status: answer.status, message };
}

/** The routes that need no token, and those that prove their callers themselves. */
const isOpen = ({ method, url }: Route, mode: string) =>
  /^\/(?:$|welcome$|registry$|docs|openapi\.json$|admin\/openapi\.json$|livez$|readyz$|healthz$|qr\/|[\w.-]+\.(?:css|js)$)/.test(
    url,
  ) ||
  /^\/(?:vqr|box|hooks)\//.test(url) ||
  (url === '/metrics' && method === 'GET' && mode === 'sandbox');
const SALES = ['GET /admin/v1/sales', 'GET /admin/v1/sales.csv', 'GET /admin/v1/sales/:name'];
const MAY_SELL = [...SALES, 'POST /admin/v1/sales', 'POST /admin/v1/sales/:name/cancel', 'GET /admin/v1/caller'];
const ADMINS_READ = ['/_mock/backup', '/admin/v1/tokens'];

function may(role: (typeof ROLES)[number], { method, url }: Route): boolean {
  if (role === 'admin') return true;
  if (role === 'cashier') return MAY_SELL.includes(`${method} ${url}`);
  return method === 'GET' && !ADMINS_READ.includes(url);
}

describe('roles', () => {
  it.each(['sandbox', 'live'] as const)(
    'ROL-1 ROL-2 THR-37 at a %s each role may call its routes, and no other route of all that there are',
    async (mode) => {
      const own = {
        accounts: [OTHER_ACCOUNT],
        boxes: [],
        partners: [{ username: 'shop', password: 'shops-own-pass' }],
      };
      const config = { adminToken: ROOT, cors: ['https://shop.example'], ...(mode === 'live' ? { ...own, mode } : {}) };
      const { gateway, routes } = await withRoutes(config);
      expect(routes.length).toBeGreaterThan(120);
      const tokens = new Map<string, string>();
      for (const role of ROLES) tokens.set(role, await tokenOf(gateway, { name: `a-${role}`, role }));
      const audit = async () => (await admin(gateway, 'GET', 'audit', undefined, asRoot)).body;
      const before = await audit();
      for (const route of routes) {
        const name = `${route.method} ${route.url}`;
        const without = await answerOf(gateway, route, {});
        if (isOpen(route, mode)) {
          // A token opens nothing here that is not open without one.
          const withToken = await answerOf(gateway, route, bearer(tokens.get('admin') ?? ''));
          expect([name, withToken]).toEqual([name, without]);
          continue;
        }
        expect([name, without]).toEqual([name, { status: 401, message: 'E74' }]);
        for (const role of ROLES.filter((it) => !may(it, route))) {
          const answer = await answerOf(gateway, route, bearer(tokens.get(role) ?? ''));
          expect([name, role, answer]).toEqual([name, role, { status: 403, message: 'NOT_ALLOWED' }]);
        }
      }
      expect(await audit()).toEqual(before);
      for (const route of routes.filter((it) => !isOpen(it, mode))) {
        for (const role of ROLES.filter((it) => may(it, route))) {
          const { status } = await answerOf(gateway, route, bearer(tokens.get(role) ?? ''));
          expect([`${route.method} ${route.url}`, role, [401, 403, 429].includes(status)]).toEqual([
            `${route.method} ${route.url}`,
            role,
            false,
          ]);
        }
      }
    },
    60_000,
  );

  it('REG-4 ROL-2 every route below /_mock and /admin/v1 is described with its roles, and nothing else is', async () => {
    const { gateway, routes } = await withRoutes({});
    const described: string[] = [];
    for (const path of ['/openapi.json', '/admin/openapi.json']) {
      const { paths } = (await (await fetch(`${gateway.origin}${path}`)).json()) as { paths: Record<string, object> };
      for (const [url, operations] of Object.entries(paths)) {
        for (const [method, operation] of Object.entries(operations)) {
          if (operation.description?.startsWith('For the roles ')) described.push(`${method.toUpperCase()} ${url}`);
        }
      }
    }
    const own = routes.filter(({ url }) => /^\/(?:_mock|admin\/v1)\//.test(url));
    const names = own.map(({ method, url }) => `${method} ${url.replaceAll(/:(\w+)/g, '{$1}')}`);
    expect(described.toSorted()).toEqual(names.toSorted());
  });

  it('ROL-1 ROL-5 SEL-5 THR-37 a cashier sells, cancels and lists at his boxes, and sees and does nothing else', async () => {
    const gateway = await testGateway({ config: { adminToken: ROOT } });
    for (const identity of [BOX1, BOX4]) {
      await connectFakeBox({ gateway, identity, transport: 'http', onShow: (it, show) => void it.shown(show) });
    }
    const token = await tokenOf(gateway, { name: 'till-1', role: 'cashier', boxes: [BOX1.terminalCode] });
    const cashier = (method: string, path: string, body?: unknown) => admin(gateway, method, path, body, bearer(token));
    const root = (method: string, path: string, body?: unknown) => admin(gateway, method, path, body, asRoot);
    const sale = { amount: 50_000, terminalCode: BOX1.terminalCode };
    const own = await cashier('POST', 'sales', sale);
    // Without a code it is his only box.
    const second = await cashier('POST', 'sales', { amount: 20_000 });
    const others = await root('POST', 'sales', { ...sale, amount: 70_000, terminalCode: BOX4.terminalCode });
    expect([own, second, others].map(({ status, body }) => [status, body.terminalCode, body.soldBy])).toEqual([
      [201, BOX1.terminalCode, 'till-1'],
      [201, BOX1.terminalCode, 'till-1'],
      [201, BOX4.terminalCode, 'config'],
    ]);
    const refused = await cashier('POST', 'sales', { ...sale, terminalCode: BOX4.terminalCode });
    expect([refused.status, refused.body]).toEqual([400, expect.objectContaining({ message: 'E35' })]);
    const unknown = await cashier('POST', 'sales', { ...sale, terminalCode: 'VVB000099' });
    expect(unknown.body).toEqual(refused.body);
    for (const [method, path] of [
      ['GET', `sales/${String(others.body.id)}`],
      ['GET', `sales/${String(others.body.code)}`],
      ['POST', `sales/${String(others.body.id)}/cancel`],
    ] as const) {
      const { status, body } = await cashier(method, path);
      expect([path, status, body]).toEqual([path, 404, expect.objectContaining({ message: 'E96' })]);
    }
    const day = await cashier('GET', 'sales');
    expect(day.body).toMatchObject({ sales: 2, rows: [{ id: second.body.id }, { id: own.body.id }] });
    const file = await fetch(`${gateway.origin}/admin/v1/sales.csv`, { headers: bearer(token) });
    expect((await file.text()).split('\r\n')).toHaveLength(5);
    expect((await root('GET', 'sales')).body).toMatchObject({ sales: 3 });
    const caller = await cashier('GET', 'caller');
    expect(caller.body).toEqual({
      ...{ name: 'till-1', role: 'cashier', rights: ['list-sales', 'sell'] },
      ...{ mode: 'sandbox', sandbox: true, tills: [BOX1.terminalCode] },
    });
    expect((await cashier('POST', `sales/${String(own.body.id)}/cancel`)).body).toMatchObject({ status: 'cancelled' });
    // An order of a partner is no sale: he can neither see nor cancel it.
    const order = await gateway.generate();
    expect((await cashier('POST', `sales/${String(order.body.transactionId)}/cancel`)).status).toBe(404);
    expect((await root('GET', `sales/${String(others.body.id)}`)).body).toMatchObject({ status: 'shown' });
    const rows = (await root('GET', 'audit?limit=2')).body as unknown as Record<string, unknown>[];
    expect(rows).toMatchObject([
      { who: 'till-1', address: '127.0.0.1', what: 'cancelled', target: `sales/${String(own.body.id)}` },
      { who: 'config', address: '127.0.0.1', what: 'added', target: 'tokens/till-1' },
    ]);
  });

  it('ROL-1 a viewer reads, and gets no secret by it', async () => {
    const secret = 'key-in-the-address-of-a-partner';
    const callback = { url: `http://127.0.0.1:9/sync?key=${secret}` };
    const gateway = await testGateway({ config: { adminToken: ROOT }, callback });
    const token = await tokenOf(gateway, { name: 'bookkeeper', role: 'viewer' });
    await gateway.generate();
    await gateway.testCallback();
    const read = async (path: string, of: string) =>
      (await fetch(`${gateway.origin}${path}`, { headers: bearer(of) })).text();
    const callbacks = JSON.parse(await read('/_mock/callbacks', ROOT)) as { id: string; url: string }[];
    expect(callbacks[0]?.url).toContain(secret);
    await eventually('an attempt', async () => (await read('/_mock/callbacks', ROOT)).includes('startedAt'));
    const shown = await Promise.all(
      ['about', 'boxes', 'orders', 'payments', 'callbacks', `callbacks/${callbacks[0]?.id}`, 'wire', 'sources', 'keys']
        .map((it) => `/_mock/${it}`)
        .concat(['partners', 'partners/demo', 'accounts', 'boxes', 'sources', 'audit'].map((it) => `/admin/v1/${it}`))
        .map((path) => read(path, token)),
    );
    for (const text of [secret, 'demo-secret', ROOT, token, ...BOXES.map((it) => it.secret)]) {
      expect(shown.filter((it) => it.includes(text))).toEqual([]);
    }
    expect(shown[0]).toContain(ACCOUNT.bankAccount);
    expect(await read('/_mock/about', ROOT)).toContain('demo-secret');
  });
});
