import { expect, it } from 'vitest';
import { z } from 'zod';
import { CODES } from '../../src/protocol/codes.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { admin } from './admin.ts';
import { BOX1, BOX3, OTHER_ACCOUNT, type TestGateway, testGateway } from './harness.ts';
import { schemaProblems } from './json-schema.ts';

const content = z.record(z.string(), z.strictObject({ schema: z.record(z.string(), z.unknown()) }));
const operation = z.strictObject({
  summary: z.string().min(1),
  description: z.string().regex(/^For the roles admin.*\.$/),
  operationId: z.string().regex(/^\w+$/),
  security: z.array(z.record(z.string(), z.array(z.never()))),
  parameters: z
    .array(
      z.strictObject({ name: z.string(), in: z.enum(['path', 'query']), required: z.boolean(), schema: z.unknown() }),
    )
    .default([]),
  requestBody: z.strictObject({ content }).optional(),
  responses: z.record(
    z.string(),
    z.strictObject({ description: z.string().min(1), headers: z.object({}).optional(), content }),
  ),
});
const document = z.strictObject({
  openapi: z.literal('3.1.0'),
  info: z.strictObject({ title: z.string(), version: z.string(), description: z.string() }),
  servers: z.array(z.strictObject({ url: z.string() })),
  paths: z.record(
    z.string().startsWith('/admin/v1/'),
    z.partialRecord(z.enum(['get', 'post', 'patch', 'delete']), operation),
  ),
  components: z.strictObject({ securitySchemes: z.unknown(), schemas: z.record(z.string(), z.unknown()) }),
});
const STORE = { config: { registry: 'store' } };

const read = async ({ origin }: TestGateway) => {
  const json: unknown = await (await fetch(`${origin}/admin/openapi.json`)).json();
  return { json, api: document.parse(json) };
};

it('REG-4 /admin/openapi.json has every route below /admin/v1, and no other', async () => {
  const gateway = await testGateway(STORE);
  const { api } = await read(gateway);
  for (const [path, operations] of Object.entries(api.paths)) {
    const wrong = await fetch(`${gateway.origin}${path.replace(/\{\w+\}/, 'x')}`, { method: 'PUT' });
    const allowed = (wrong.headers.get('allow') ?? '').split(', ').map((it) => it.toLowerCase());
    // `/sales.csv` is also a sale by the pattern of its path.
    const documented = path === '/admin/v1/sales.csv' ? ['get'] : Object.keys(operations);
    expect([path, wrong.status, allowed.toSorted()]).toEqual([path, 405, documented.toSorted()]);
  }
  const all = Object.values(api.paths).flatMap((it) => Object.values(it));
  expect(new Set(all.map((it) => it?.operationId)).size).toBe(all.length);
  expect(all.length).toBeGreaterThan(35);
});

it('REG-4 ERR-1 real calls, answers and refusals fit /admin/openapi.json', async () => {
  const gateway = await testGateway(STORE);
  await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
  const { json, api } = await read(gateway);
  const seen = new Set<string>();
  const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const answer = await admin(gateway, method, path, body, headers);
    const bare = `/admin/v1/${path.split('?')[0]}`;
    const documented = Object.keys(api.paths)
      .toSorted((a, b) => Number(a.includes('{')) - Number(b.includes('{')))
      .find((it) => new RegExp(`^${it.replace(/\{\w+\}/, '[^/]+')}$`).test(bare));
    const described = api.paths[documented ?? '']?.[method.toLowerCase() as 'get'];
    const response = described?.responses[String(answer.status)]?.content['application/json']?.schema;
    expect([method, path, answer.status, response && schemaProblems(json, response, answer.body)]).toEqual([
      ...[method, path, answer.status],
      [],
    ]);
    const taken = described?.requestBody?.content['application/json']?.schema;
    if (answer.status < 300 && taken !== undefined)
      expect([path, schemaProblems(json, taken, body ?? {})]).toEqual([path, []]);
    seen.add(`${method} ${documented} ${answer.status}`);
    return answer;
  };
  const options = { kind: 'sepay', auth: { kind: 'apikey', key: 'key' }, api: { token: 'token' } };
  const callback = { url: 'https://shop.example/x', auth: { kind: 'bearer', token: 'x' }, payload: 'camel' };
  await call('POST', 'partners', { username: 'shop', callback });
  await call('POST', 'accounts', {
    bankAccount: '77',
    bankCode: 'MB',
    userBankName: 'A',
    partner: 'shop',
    contentPrefix: 'code',
  });
  await call('POST', 'boxes', { terminalCode: 'VVB000077', serialNumber: 'VVB900077', account: '77' });
  await call('POST', 'sources', { name: 'till', ...options });
  await call('PATCH', 'partners/shop', { callback: null });
  await call('PATCH', 'accounts/77', { userBankName: 'B', contentPrefix: null });
  await call('PATCH', 'boxes/VVB000077', { serialNumber: 'VVB900078' });
  await call('PATCH', 'sources/till', { auth: { kind: 'hmac', secret: 'another' }, api: null });
  for (const table of ['partners/shop', 'boxes/VVB000077', 'sources/till']) await call('POST', `${table}/rotate`, {});
  await call('POST', `boxes/${BOX3.terminalCode}/rotate`, { enrol: false });
  for (const row of ['partners/shop', 'accounts/77', 'boxes/VVB000077', 'sources/till']) {
    await call('POST', `${row}/disable`);
    await call('GET', row);
    await call('POST', `${row}/enable`);
    await call('GET', row.replace(/\/.*/, '?limit=100'));
    await call('GET', row.replace(/\/.*/, '?limit=0'));
    await call('PATCH', row, { nothing: 1 });
    await call('POST', `${row}/disable`, {}, { 'if-match': '"2026-01-01T00:00:00.000Z"' });
  }
  await call('POST', 'boxes/VVB000077/unlink', {});
  await call('POST', 'boxes/VVB000077/link', { account: OTHER_ACCOUNT.bankAccount });
  await call('POST', 'accounts/77/unlink', {});
  await call('POST', 'accounts/77/link', { partner: 'shop' });
  await call('DELETE', 'partners/shop');
  for (const row of ['boxes/VVB000077', 'sources/till', 'accounts/77', 'partners/shop']) await call('DELETE', row);
  for (const table of ['partners', 'accounts', 'boxes', 'sources']) await call('GET', `${table}/none`);
  await call('GET', 'audit?limit=500');
  await call('GET', 'caller');
  for (const _again of [1, 2])
    await call('POST', 'tokens', { name: 'till', role: 'cashier', boxes: [BOX1.terminalCode] });
  await call('GET', 'tokens?revoked=false');
  for (const _again of [1, 2]) await call('DELETE', 'tokens/till');
  await call('GET', 'tokens?revoked=true');
  const sold = await call('POST', 'sales', { amount: 50_000, terminalCode: BOX1.terminalCode });
  await call('GET', 'sales');
  await call('GET', `sales/${sold.body.id}`);
  await call('POST', `sales/${sold.body.id}/cancel`);
  await call('GET', 'sales/none');
  const operations = Object.entries(api.paths).flatMap(([path, of]) =>
    Object.keys(of).map((it) => `${it.toUpperCase()} ${path}`),
  );
  const untried = operations.filter((it) => ![...seen].some((tried) => tried.startsWith(`${it} 2`)));
  expect(untried).toEqual(['GET /admin/v1/sales.csv']);
});

it.each([
  ['PUT', 'boxes', 'application/json', [405, 'wrong method: expected GET or POST']],
  ['POST', 'boxes', 'text/plain', [415, expect.stringContaining('text/plain')]],
  ['GET', 'nothing', 'application/json', [404, 'unknown path']],
])('REG-4 ERR-2 %s /admin/v1/%s of type %s says what is wrong with it', async (method, path, type, expected) => {
  const gateway = await testGateway(STORE);
  const body = method === 'GET' ? {} : { body: '{}' };
  const answer = await fetch(`${gateway.origin}/admin/v1/${path}`, {
    method,
    headers: { 'content-type': type },
    ...body,
  });
  const { reason, message } = (await answer.json()) as Record<string, unknown>;
  expect([answer.status, reason, message]).toEqual([...expected, 'E46']);
});

it('ERR-1 /admin/openapi.json documents no code that the table of codes lacks', async () => {
  const { json } = await read(await testGateway());
  const codes = [...JSON.stringify(json).matchAll(/"enum":(\["E46".*?\])/g)].flatMap(
    ([, list = '[]']) => JSON.parse(list) as string[],
  );
  expect(codes.filter((code) => !Object.hasOwn(CODES, code))).toEqual([]);
});
