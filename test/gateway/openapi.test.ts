import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { BOX_REFUSALS, CODES } from '../../src/protocol/codes.ts';
import { PATHS } from '../../src/protocol/http-api.ts';
import { connectFakeBox, type FakeBoxOptions } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import {
  BOX1,
  checkOrder,
  FOREIGN_ACCOUNT,
  order,
  partnerServer,
  processed,
  push,
  qrFor,
  type TestGateway,
  testCallback,
  testGateway,
} from './harness.ts';
import { resolveRef, schemaProblems } from './json-schema.ts';

const content = z.strictObject({ 'application/json': z.strictObject({ schema: z.record(z.string(), z.unknown()) }) });
const headers = z.strictObject({ 'x-paybox-reason': z.strictObject({ description: z.string(), schema: z.unknown() }) });
const response = z.strictObject({ description: z.string().min(1), headers: headers.optional(), content });
const operation = z.strictObject({
  summary: z.string().min(1),
  description: z.string().optional(),
  operationId: z.string().regex(/^\w+$/),
  security: z.array(z.partialRecord(z.enum(['basic', 'bearer']), z.array(z.never()))).optional(),
  requestBody: z.strictObject({ required: z.literal(true), content }).optional(),
  responses: z.record(z.string().regex(/^[1-5]\d\d$/), response),
});
const scheme = z.strictObject({ type: z.literal('http'), scheme: z.enum(['basic', 'bearer']) });

const own = z.looseObject({ summary: z.string().min(1), operationId: z.string().regex(/^\w+$/) });
const ownPath = z.strictObject({
  servers: z.tuple([z.strictObject({ url: z.literal('/') })]),
  get: own.optional(),
  post: own.optional(),
  delete: own.optional(),
});

/** The parts of OpenAPI 3.1 that the document uses, as its specification has them; anything else is a mistake. */
const document = z.strictObject({
  openapi: z.literal('3.1.0'),
  info: z.strictObject({ title: z.string().min(1), version: z.string().min(1), description: z.string() }),
  servers: z.array(z.strictObject({ url: z.string().min(1) })).min(1),
  paths: z.record(z.string().startsWith('/'), z.strictObject({ post: operation })),
  own: z.record(z.string(), ownPath),
  webhooks: z.record(z.string(), z.strictObject({ post: operation })),
  components: z.strictObject({
    securitySchemes: z.record(z.string(), scheme),
    schemas: z.record(z.string().regex(/^[\w.-]+$/), z.record(z.string(), z.unknown())),
  }),
});

/** The document, with the paths below `/_mock` apart. */
const read = async (gateway: TestGateway) => {
  const json = (await (await fetch(`${gateway.origin}/openapi.json`)).json()) as { paths: object };
  const paths = Object.groupBy(Object.entries(json.paths), ([path]) =>
    path.startsWith('/_mock/') ? 'own' : 'service',
  );
  const { own = [], service = [] } = paths;
  return document.parse({ ...json, paths: Object.fromEntries(service), own: Object.fromEntries(own) });
};
type Document = z.infer<typeof document>;

/** What the document says is wrong with an answer; every status must be in it. */
function problems(api: Document, path: string, { status, body }: { status: number; body: unknown }): string[] {
  const documented = api.paths[path]?.post.responses[String(status)];
  if (documented === undefined) return [`${path} does not document ${status}`];
  return schemaProblems(api, documented.content['application/json'].schema, body);
}

const REFUSED: [string, unknown, Record<string, string>][] = [
  [PATHS.generate, order({ amount: 0 }), {}],
  [PATHS.generate, order({ transType: 'X' }), {}],
  [PATHS.generate, order({ bankAccount: '-' }), {}],
  [PATHS.generate, order({ bankCode: '-' }), {}],
  [PATHS.generate, order({ content: 'x'.repeat(26) }), {}],
  [PATHS.generate, order({ content: 'é' }), {}],
  [PATHS.generate, order({ terminalCode: '-' }), {}],
  [PATHS.sendQr, push({ amount: '0' }), {}],
  [PATHS.sendQr, push({ checkSum: '-' }), {}],
  [PATHS.sendQr, push({ bankAccount: '-' }), {}],
  [PATHS.sendQr, push({ bankAccount: '5550001' }), {}],
  [PATHS.sendQr, push({ bankCode: '-' }), {}],
  [PATHS.sendQr, push({ bankCode: 'VCB' }), {}],
  [PATHS.sendQr, push({ terminalCode: '-' }), {}],
  [PATHS.sendQr, push({ qrCode: '-' }), {}],
  [PATHS.sendQr, push({ amount: '1' }), {}],
  [PATHS.sendQr, push(), {}],
  [PATHS.testCallback, testCallback({ bankAccount: '-' }), {}],
  [PATHS.testCallback, testCallback({ content: '-' }), {}],
  [PATHS.testCallback, testCallback({ amount: 0 }), {}],
  [PATHS.testCallback, testCallback({ transType: 'X' }), {}],
  [PATHS.testCallback, testCallback({ bankAccount: '5550001' }), {}],
  [PATHS.testCallback, testCallback({ bankCode: 'VCB' }), {}],
  [PATHS.testCallback, testCallback(), {}],
  [PATHS.sendQr, push({ qrCode: qrFor({ amount: undefined }) }), {}],
  [PATHS.generate, order({ content: 'FAULT NOTHING' }), {}],
  [PATHS.checkOrder, checkOrder({ checkSum: '-' }), {}],
  [PATHS.checkOrder, checkOrder({ bankAccount: FOREIGN_ACCOUNT.bankAccount }), {}],
  [PATHS.checkOrder, checkOrder({ type: 2 }), {}],
  [PATHS.checkOrder, checkOrder(), {}],
  [PATHS.cancelQr, { transactionReceiveId: 'x' }, {}],
  ...Object.values(PATHS)
    .filter((path) => path !== PATHS.token)
    .flatMap((path): [string, unknown, Record<string, string>][] => [
      [path, '[]', {}],
      [path, '{}', { authorization: 'Bearer x' }],
      [path, '{}', { 'content-type': 'text/plain' }],
      [path, 'x'.repeat(70_000), {}],
    ]),
];

describe('/openapi.json', () => {
  it('is an OpenAPI 3.1 document of every endpoint, without a loose end', async () => {
    const gateway = await testGateway();
    const api = await read(gateway);
    expect(Object.keys(api.paths).toSorted()).toEqual(Object.values(PATHS).toSorted());
    expect(api.servers).toEqual([{ url: '/vqr' }]);
    const refs = [...JSON.stringify(api).matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1] ?? '');
    for (const ref of refs) resolveRef(api, ref);
    const used = new Set(refs.map((ref) => ref.replace('#/components/schemas/', '')));
    expect([...used].toSorted()).toEqual(Object.keys(api.components.schemas).toSorted());
    const operations = [...Object.values(api.paths), ...Object.values(api.webhooks)].map((it) => it.post);
    const ids = operations.map((it) => it.operationId);
    for (const { get, post, delete: remove } of Object.values(api.own)) {
      for (const it of [get, post, remove]) if (it !== undefined) ids.push(it.operationId);
    }
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.length).toBeGreaterThan(35);
    for (const { security } of Object.values(api.paths).map((it) => it.post)) {
      expect(Object.keys(api.components.securitySchemes)).toEqual(
        expect.arrayContaining(Object.keys(security?.[0] ?? {})),
      );
    }
  });

  it('ERR-1 documents every refusal that the service gives', async () => {
    const gateway = await testGateway();
    const api = await read(gateway);
    const seen = new Set<unknown>();
    for (const [path, body, headers] of REFUSED) {
      const answer = await gateway.post(path, body, headers);
      expect([path, answer.body.status, problems(api, path, answer)]).toEqual([path, 'FAILED', []]);
      seen.add(`${path} ${answer.status} ${answer.body.message}`);
    }
    expect(seen.size).toBe(REFUSED.length);
    const refused = await fetch(`${gateway.baseUrl}${PATHS.token}`, { method: 'POST' });
    expect(problems(api, PATHS.token, { status: refused.status, body: await refused.json() })).toEqual([]);
  });

  it('SND-6 documents every refusal of a box', async () => {
    const gateway = await testGateway();
    const api = await read(gateway);
    for (const code of BOX_REFUSALS) {
      const refuse = { type: 'rejected', code, reason: 'as the test says' } as const;
      const onShow: FakeBoxOptions['onShow'] = (box, { pushId }) => box.send({ ...refuse, pushId });
      const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http', onShow });
      const answer = await gateway.post(PATHS.sendQr, push());
      expect([answer.body.message, problems(api, PATHS.sendQr, answer)]).toEqual([code, []]);
      await box.close();
    }
  });

  it('documents no code twice and none that the table of codes lacks', async () => {
    const api = await read(await testGateway());
    for (const { post } of Object.values(api.paths)) {
      for (const { content } of Object.values(post.responses)) {
        const { properties } = content['application/json'].schema as { properties?: { message?: { enum?: string[] } } };
        const codes = properties?.message?.enum ?? [];
        expect(codes.filter((code) => !Object.hasOwn(CODES, code))).toEqual([]);
        expect(codes).toHaveLength(new Set(codes).size);
      }
    }
  });

  it('CBK-4 GEN-4 TOK-1 documents the answers, the requests and the callback of the whole way', async () => {
    const partner = await partnerServer(processed);
    const gateway = await testGateway({ callback: { url: partner.url } });
    await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
    const api = await read(gateway);
    const requestOf = (path: string) => api.paths[path]?.post.requestBody?.content['application/json'].schema;
    const authorization = `Basic ${Buffer.from('demo:demo-secret').toString('base64')}`;
    const steps: [string, object | string, Record<string, string>][] = [
      [PATHS.token, '', { authorization }],
      [PATHS.generate, order({ additionalData: [{ a: { b: [1] } }] }), {}],
      [PATHS.sendQr, push(), {}],
      [PATHS.testCallback, testCallback(), {}],
    ];
    for (const [path, body, headers] of steps) {
      const answer = await gateway.post(path, body, headers);
      expect([path, answer.status, problems(api, path, answer)]).toEqual([path, 200, []]);
      if (path !== PATHS.token) expect([path, schemaProblems(api, requestOf(path), body)]).toEqual([path, []]);
    }
    const call = await eventually('the callback', () => partner.calls[0]);
    const webhook = api.webhooks.transactionSync?.post.requestBody?.content['application/json'].schema;
    expect(schemaProblems(api, webhook, JSON.parse(call.body))).toEqual([]);
    const reply = { error: false, errorReason: '000', toastMessage: '', object: { reftransactionid: 'r' } };
    expect(schemaProblems(api, { $ref: '#/components/schemas/TransactionSyncReply' }, reply)).toEqual([]);
  });

  it('is read by a checker that finds what is wrong', async () => {
    const api = await read(await testGateway());
    const right = { access_token: 'x', token_type: 'Bearer', expires_in: 300 };
    const check = (change: object) =>
      schemaProblems(api, { $ref: '#/components/schemas/TokenResponse' }, { ...right, ...change });
    expect(check({})).toEqual([]);
    expect(check({ expires_in: '300' })).toEqual(['body.expires_in is no integer']);
    expect(check({ token_type: 'bearer' })).toEqual(['body.token_type is not Bearer']);
    expect(check({ extra: 1 })).toEqual(['body has extra']);
    expect(schemaProblems(api, { $ref: '#/components/schemas/TokenResponse' }, {})).toHaveLength(3);
    expect(() => schemaProblems(api, { not: {} }, {})).toThrow('unknown keyword not');
  });
});
