import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { expect, it } from 'vitest';
import { BOX1, type TestGateway, testGateway } from '../gateway/harness.ts';
import { routesDuring } from '../gateway/strange-requests.ts';
import { connectFakeBox } from '../support/fake-box.ts';

const TOKEN = 'A-long-admin-token-of-a-test';

/** A request with any headers, also a Host that `fetch` would not send. */
async function ask(
  { origin }: TestGateway,
  { method, path, headers = {} }: { method: string; path: string; headers?: Record<string, string> },
): Promise<IncomingMessage> {
  const asked = request(`${origin}${path}`, { method, headers: { 'content-type': 'application/json', ...headers } });
  asked.end(['GET', 'DELETE'].includes(method) ? undefined : '{}');
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  answer.on('error', () => undefined);
  if (answer.headers['content-type']?.startsWith('text/event-stream') === true) {
    asked.destroy();
    return answer;
  }
  answer.resume();
  await once(answer, 'end');
  return answer;
}

/** Every route below `/admin/v1`, for a row that exists. */
async function routesOf({ origin }: TestGateway): Promise<{ method: string; path: string }[]> {
  const { paths } = (await (await fetch(`${origin}/admin/openapi.json`)).json()) as { paths: Record<string, object> };
  return Object.entries(paths).flatMap(([path, of]) =>
    Object.keys(of).map((method) => ({
      method: method.toUpperCase(),
      path: path.replace('{name}', path.includes('/boxes/') ? BOX1.terminalCode : 'demo'),
    })),
  );
}

const STRANGERS: [who: string, headers: Record<string, string>][] = [
  ['a name made to point here', { host: 'rebound.example:8800', origin: 'http://rebound.example:8800' }],
  ['a name that is not loopback', { host: 'gateway.example' }],
  ['a page of another origin', { origin: 'https://evil.example' }],
  ['a page of another port of this machine', { origin: 'http://127.0.0.1:1', 'sec-fetch-site': 'same-site' }],
  ['a form of another page', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' }],
  ['a proxy', { 'x-forwarded-for': '192.0.2.7' }],
];

it.each(STRANGERS)('THR-5 THR-29 no route of admins answers %s, and nothing changes', async (_who, headers) => {
  const gateway = await testGateway({ config: { registry: 'store' } });
  const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
  for (const route of await routesOf(gateway)) {
    const answer = await ask(gateway, { ...route, headers });
    expect([route, answer.statusCode]).toEqual([route, 401]);
    expect(answer.headers['access-control-allow-origin']).toBeUndefined();
  }
  const audit = await fetch(`${gateway.origin}/admin/v1/audit`);
  expect(((await audit.json()) as { who: string }[]).filter(({ who }) => who !== 'file')).toEqual([]);
  expect(box.of('refused')).toEqual([]);
});

it('THR-2 with an adminToken no route answers anybody without it, also on this machine', async () => {
  const gateway = await testGateway({ config: { registry: 'store', adminToken: TOKEN } });
  const routes = await routesOf(gateway);
  expect(routes.length).toBeGreaterThan(35);
  for (const route of routes) expect([route, (await ask(gateway, route)).statusCode]).toEqual([route, 401]);
  const headers = { authorization: `Bearer ${TOKEN}` };
  const audit = await fetch(`${gateway.origin}/admin/v1/audit`, { headers });
  expect(((await audit.json()) as { who: string }[]).filter(({ who }) => who !== 'file')).toEqual([]);
  // By any name, through any proxy: the token is the proof.
  for (const [, more] of STRANGERS) {
    const answer = await ask(gateway, { method: 'GET', path: '/admin/v1/boxes', headers: { ...headers, ...more } });
    expect([more, answer.statusCode]).toEqual([more, 200]);
  }
});

const LINKS: [how: string, headers: Record<string, string>][] = [
  ['a link', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }],
  [
    'a link of another port',
    { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
  ],
  ['a link in a browser of before', { referer: 'https://evil.example/page' }],
];

it.each(LINKS)('THR-5 BAK-1 %s on another page has no file saved, and takes nothing away', async (_how, headers) => {
  const { started: gateway, routes } = await routesDuring(() => testGateway({ config: { registry: 'store' } }));
  const ofAdmins = routes.filter(({ method, url }) => method === 'GET' && /^\/(?:_mock|admin\/v1)\//.test(url));
  const refused: string[] = [];
  for (const { url } of ofAdmins) {
    const path = url.replaceAll(/:\w+/g, url.includes('/boxes/') ? BOX1.terminalCode : 'demo');
    const answer = await ask(gateway, { method: 'GET', path, headers });
    if (answer.statusCode === 401) refused.push(url);
    // What a browser shows, nobody else can read.
    else expect([url, answer.headers['content-type']]).toEqual([url, 'application/json; charset=utf-8']);
  }
  expect(refused.sort()).toEqual(['/_mock/backup', '/_mock/events', '/admin/v1/sales.csv']);
  expect(await gateway.mock<object>('/about')).toMatchObject({ lastBackupAt: null });
});

it.each([
  ['a program', {}],
  [
    'whoever types the address',
    { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
  ],
  ['the console', { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }],
])('BAK-1 %s gets the store', async (_who, headers) => {
  const gateway = await testGateway();
  const referer = 'sec-fetch-site' in headers ? { referer: `${gateway.origin}/` } : {};
  const answer = await ask(gateway, { method: 'GET', path: '/_mock/backup', headers: { ...headers, ...referer } });
  expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, 'application/vnd.sqlite3']);
});
