import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import type { FastifyInstance } from 'fastify';
import { onTestFinished } from 'vitest';
import { ACCOUNT, BOX1, checkOrder, order, push, testCallback } from './harness.ts';

/** One route of a gateway, as its server has it: `/admin/v1/boxes/:name`. */
export interface Route {
  method: string;
  url: string;
}

/** Every route that servers register while `start` runs. */
export async function routesDuring<T>(start: () => Promise<T>): Promise<{ started: T; routes: Route[] }> {
  const routes: Route[] = [];
  const listen = (message: unknown) => {
    const { fastify } = message as { fastify: FastifyInstance };
    fastify.addHook('onRoute', ({ method, url }) => {
      for (const it of [method].flat()) if (it !== 'HEAD') routes.push({ method: it, url });
    });
  };
  subscribe('fastify.initialization', listen);
  try {
    return { started: await start(), routes };
  } finally {
    unsubscribe('fastify.initialization', listen);
  }
}

/** Texts that PostgreSQL cannot hold, that come out otherwise, that nobody sees, or that are too long. */
const TEXTS = ['a\0b', '\ud800', 'a\u001b[31mb', 'x'.repeat(3_000)];
/** As JSON: numbers beyond bigint, int4 and double, and what is none. */
const NUMBERS = ['1e400', '-1', '0.5', '2147483648', '9007199254740993', '9223372036854775808', '[]'];
/** Parts of an address: bytes that are no UTF-8, half a character, days and numbers that are none. */
const ESCAPED = [
  ...['%00', 'a%00b', '%ff', '%ED%A0%80', '%1b[31m', '%5cu0000', 'a%5cu001bb', '%E2%80%AE', '%'],
  ...['9223372036854775808', '1e400', 'NaN', 'x'.repeat(3_000)],
];
const IN_QUERIES = ['%00', '%ff', '9223372036854775808', '2026-02-30'];
const QUERIES = [
  ...['limit', 'before', 'after', 'q', 'serial', 'account', 'partner', 'target', 'status', 'since', 'day', 'shard'],
];

const SOURCE = { kind: 'sepay', name: 'added', auth: { kind: 'apikey', key: 'a-key-of-a-test-that-nobody-guesses' } };
const CALLBACK = {
  url: 'https://partner.example/sync',
  auth: { kind: 'token', url: 'https://partner.example/token', username: 'u', password: 'p' },
};
const BYTES32 = 'A'.repeat(43);

/** A right body for each route that takes one, so that one field of it can be made wrong. */
const BODIES: Record<string, readonly object[]> = {
  'POST /vqr/api/token_generate': [],
  'POST /vqr/api/qr/generate-customer': [
    order({ serviceCode: 's', subTerminalCode: 't', sign: 'x', urlLink: 'y', note: 'n', terminalCode: 'VVB000001' }),
    order({ qrType: 1, terminalCode: 'VVB000001' }),
    order({ additionalData: [{ a: 'b' }] }),
  ],
  'POST /vqr/api/tid/send-qr': [push(), push({ terminalCode: '' }), push({ serialNumber: '' })],
  'POST /vqr/bank/api/test/transaction-callback': [testCallback({ bankCode: 'MB' })],
  'POST /vqr/api/transactions/check-order': [checkOrder(), checkOrder({ type: 1 })],
  'POST /vqr/api/ecommerce-transactions/check-order': [checkOrder()],
  'POST /vqr/api/tid/cancel-qr': [{ transactionReceiveId: 'x' }],
  'POST /box/v1/messages': [{ v: 1 }],
  'POST /box/v1/enrolments': [
    { terminalCode: 'VVB000005', serialNumber: 'VVB900005', publicKey: BYTES32, proof: BYTES32 },
  ],
  'POST /_mock/enrolments/:terminalCode/accept': [{ code: 'AAAA-AAAA-AAAA' }],
  'POST /_mock/enrolments/:terminalCode/reject': [],
  'POST /_mock/boxes/:terminalCode/forget': [],
  'POST /_mock/orders/:orderId/cancel': [],
  'POST /_mock/orders/:orderId/pay': [],
  'POST /_mock/keys/rotate': [],
  'POST /_mock/callbacks/resend': [{ partner: 'demo', from: '2026-01-01T00:00:00Z', to: '2026-01-01T00:00:00Z' }],
  'POST /_mock/callbacks/:id/resend': [],
  'POST /_mock/faults': [
    { fault: 'push-twice', box: 'VVB000001', content: 'x', times: 1, seconds: 1, chance: 0.5, seed: 1 },
  ],
  'POST /hooks/:name': [{ id: 1 }],
  'POST /hooks/:name/*': [{ id: 1 }],
  'POST /admin/v1/partners': [{ username: 'new', password: 'a-password-of-a-test', callback: CALLBACK }],
  'POST /admin/v1/accounts': [{ bankAccount: '777', bankCode: 'MB', userBankName: 'A', partner: 'demo' }],
  'POST /admin/v1/boxes': [
    { terminalCode: 'VVB000006', serialNumber: 'VVB900006', account: ACCOUNT.bankAccount, secret: BYTES32 },
  ],
  'POST /admin/v1/sources': [SOURCE],
  'PATCH /admin/v1/partners/:name': [{ callback: CALLBACK }],
  'PATCH /admin/v1/accounts/:name': [{ bankCode: 'MB', userBankName: 'A', contentPrefix: 'none', partner: 'demo' }],
  'PATCH /admin/v1/boxes/:name': [{ serialNumber: 'VVB900002', account: ACCOUNT.bankAccount }],
  'PATCH /admin/v1/sources/:name': [{ auth: SOURCE.auth }],
  'POST /admin/v1/accounts/:name/link': [{ partner: 'demo' }],
  'POST /admin/v1/boxes/:name/link': [{ account: ACCOUNT.bankAccount }],
  'POST /admin/v1/partners/:name/rotate': [{ password: 'a-password-of-a-test' }],
  'POST /admin/v1/boxes/:name/rotate': [{ enrol: true }],
  'POST /admin/v1/sources/:name/rotate': [{ key: 'another-key-of-a-test-that-nobody-guesses' }],
  'POST /admin/v1/tokens': [{ name: 'new-token', role: 'viewer' }],
  'POST /admin/v1/sales': [{ amount: 1000, terminalCode: 'VVB000001', note: 'x' }],
};
const WITHOUT_BODY = /\/(?:unlink|disable|enable|cancel)$/;
/** A name that is there, so that what follows it is looked at. */
const KNOWN: Record<string, string> = {
  partners: 'other',
  accounts: '5550001',
  boxes: 'VVB000002',
  sources: 'till',
};

export interface StrangeRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: Buffer;
  isLogin?: boolean;
}

/** The path with these values for its parameters. */
function pathOf(url: string, value: (name: string) => string): string {
  return url.replaceAll(/:(\w+)|\*/g, (_all, name?: string) => value(name ?? '*'));
}

const known = (url: string) => (name: string) => {
  if (name === 'terminalCode') return BOX1.terminalCode;
  if (url.startsWith('/hooks/')) return name === '*' ? 'bank/api/transaction-sync' : 'till';
  return KNOWN[/^\/admin\/v1\/(\w+)/.exec(url)?.[1] ?? ''] ?? 'none';
};

/** This JSON with another value, itself JSON, at one place after the other. */
function* changed(value: unknown, others: readonly string[]): Generator<string> {
  if (typeof value !== 'object' || value === null) {
    yield* others;
    // What the schema takes but for one character.
    if (typeof value === 'string') yield* ['\0', '\ud800'].map((it) => JSON.stringify(value + it));
    return;
  }
  for (const [key, it] of Object.entries(value)) {
    for (const other of changed(it, others)) {
      const copy = Array.isArray(value) ? [...value] : { ...value };
      Object.assign(copy, { [key]: '@' });
      yield JSON.stringify(copy).replace('"@"', () => other);
    }
  }
}

const ASSET = /\.(?:js|css)$/;
const LOGIN_PATHS = ['POST /vqr/api/token_generate', 'GET /box/v1/stream', 'POST /box/v1/messages'];
export const basic = (bytes: Buffer | string) => `Basic ${Buffer.from(bytes).toString('base64')}`;

/**
 * Strange values in every path, query, header and body of these routes. Throws for a route with a body of which this list
 * does not know one, so that a new route is tried too.
 */
export function strangeRequests(
  routes: readonly Route[],
  authorizationFor: (url: string) => string | undefined,
): StrangeRequest[] {
  const values = [...TEXTS.map((it) => JSON.stringify(it)), ...NUMBERS];
  return routes.flatMap(({ method, url }): StrangeRequest[] => {
    if (method === 'OPTIONS') return [];
    const path = pathOf(url, known(url));
    const found: StrangeRequest[] = [];
    const given = authorizationFor(url);
    const authorized = given === undefined ? {} : { authorization: given };
    const json = (at: string, body: string) => {
      const bytes = Buffer.from(body);
      const headers = { ...authorized, 'content-type': 'application/json', 'content-length': String(bytes.length) };
      found.push({ method, path: at, headers, body: bytes });
    };
    if (/[:*]/.test(url)) {
      for (const it of ESCAPED)
        json(
          pathOf(url, () => it),
          '{}',
        );
    }
    if (method === 'GET' && !ASSET.test(url)) {
      for (const name of QUERIES) {
        for (const it of IN_QUERIES) found.push({ method, path: `${path}?${name}=${it}`, headers: authorized });
      }
      found.push({ method, path: `${path}?%00=1&before=a&before=b&__proto__=3`, headers: authorized });
    }
    const bodies = BODIES[`${method} ${url}`] ?? (WITHOUT_BODY.test(url) ? [] : undefined);
    if (['POST', 'PATCH', 'PUT'].includes(method) && bodies === undefined) {
      throw new Error(`${method} ${url}: add a right body of it to BODIES`);
    }
    for (const right of bodies ?? []) for (const it of changed(right, values)) json(path, it);
    if (LOGIN_PATHS.includes(`${method} ${url}`)) {
      const logins = [
        ...TEXTS.map((it) => `${it}:x`),
        ...TEXTS.map((it) => `demo:${it}`),
        Buffer.from([0xff, 0x3a, 0]),
      ];
      for (const it of logins) found.push({ method, path, headers: { authorization: basic(it) }, isLogin: true });
    }
    return found;
  });
}

export interface Answered {
  status: number;
  /** A refusal tells its code here, and the reason if it is in the body. */
  why: string;
}

/** Sends each request, one after the other over one connection, but a login from an address of its own. */
export async function answersTo(origin: string, all: readonly StrangeRequest[]): Promise<Answered[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const answers: Answered[] = [];
  for (const [n, it] of all.entries()) {
    const own = it.isLogin === true && { agent: false, localAddress: `127.1.${n >> 8}.${n & 255 || 1}` };
    const { hostname, port } = new URL(origin);
    const { method, path, headers, body } = it;
    const asking = request({ hostname, port, method, path, headers, agent, ...own });
    asking.end(body);
    const [answer] = (await once(asking, 'response')) as [IncomingMessage];
    const status = answer.statusCode ?? 0;
    if (String(answer.headers['content-type']).startsWith('text/event-stream')) asking.destroy();
    answers.push({ status, why: status < 400 ? '' : whyIn(await text(answer)) });
    answer.resume();
  }
  return answers;
}

function whyIn(body: string): string {
  const { message, reason } = JSON.parse(body) as Record<string, unknown>;
  return [message, reason].filter((it) => it !== undefined).join(': ');
}
