import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import { readRootToken } from '../../src/gateway/access/root-token.ts';
import type { BoxScreen } from '../../src/gateway/common/world.ts';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { type Gateway, startGateway } from '../../src/gateway/gateway.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { type Random, systemRandom } from '../../src/lib/random.ts';
import { accountCheckSum, checkSum } from '../../src/protocol/checksum.ts';
import { encodeVietQr } from '../../src/protocol/vietqr.ts';
import { keptLog, type LogLine } from '../support/kept-log.ts';
import { temporaryFolder } from '../support/net.ts';

export const ACCOUNT = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' };
export const OTHER_ACCOUNT = { bankAccount: 'SHOP2ACC', bankCode: 'VCB', userBankName: 'TRAN THI B' };
export const FOREIGN_ACCOUNT = { bankAccount: '5550001', bankCode: '970418', userBankName: 'LE VAN C' };

/** Boxes 1 and 2 are linked to ACCOUNT, 3 to nothing, 4 to OTHER_ACCOUNT. */
export const BOXES = [1, 2, 3, 4].map((n) => ({
  terminalCode: `VVB00000${n}`,
  serialNumber: `VVB90000${n}`,
  secret: `Secret-of-box-number-${n}-of-tests`,
  ...(n === 3 ? {} : { account: n === 4 ? OTHER_ACCOUNT.bankAccount : ACCOUNT.bankAccount }),
}));
export const [BOX1, BOX2, BOX3, BOX4] = BOXES as [Identity, Identity, Identity, Identity];
type Identity = (typeof BOXES)[number];

export type { LogLine } from '../support/kept-log.ts';
/** A JSON answer of the gateway. */
export type Answer = { status: number; body: Record<string, unknown>; headers: Headers };

export interface TestGateway extends Gateway {
  log: LogLine[];
  /** The lines in the log of an event. */
  logged(event: string): LogLine[];
  /** Refusals in the log since they were last asked for, as `code`. */
  refusals(): unknown[];
  token(username?: string, password?: string): Promise<string>;
  /** POSTs JSON below base_url as the partner `demo`, or with the headers given. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** The calls of a partner that are right but for `change`, as `order`, `push` and `testCallback` make them. */
  generate(change?: Record<string, unknown>, headers?: Record<string, string>): Promise<Answer>;
  sendQr(change?: Record<string, unknown>, headers?: Record<string, string>): Promise<Answer>;
  testCallback(change?: Record<string, unknown>, headers?: Record<string, string>): Promise<Answer>;
  /** Headers of an admin: with the token that a live gateway has made at its start; none where nobody needs one. */
  asAdmin: Record<string, string>;
  mock<T = Record<string, unknown>[]>(path: string, method?: 'GET' | 'POST'): Promise<T>;
}

export interface TestOptions {
  config?: Record<string, unknown>;
  callback?: unknown;
  dataDir?: string;
  clock?: Clock;
  random?: Random;
  boxScreen?: BoxScreen;
}

/** A real gateway on free ports with the identities above; closed when the test ends. */
export async function testGateway(options: TestOptions = {}): Promise<TestGateway> {
  const { clock = systemClock, random = systemRandom, boxScreen } = options;
  const config = parseGatewayConfig(
    {
      http: { port: 0 },
      mqtt: { embedded: { port: 0 } },
      dataDir: options.dataDir ?? (await temporaryFolder()),
      accounts: [ACCOUNT, OTHER_ACCOUNT, FOREIGN_ACCOUNT],
      boxes: BOXES,
      partners: [
        {
          username: 'demo',
          password: 'demo-secret',
          accounts: [ACCOUNT.bankAccount, OTHER_ACCOUNT.bankAccount],
          ...(options.callback === undefined ? {} : { callback: options.callback }),
        },
        { username: 'other', password: 'other-secret', accounts: [FOREIGN_ACCOUNT.bankAccount] },
      ],
      ...options.config,
    },
    'test',
  );
  const { log, lines } = keptLog(clock);
  const gateway = await startGateway(config, { clock, random, log, ...(boxScreen && { boxScreen }) });
  onTestFinished(() => gateway.close());
  const made = config.adminToken === undefined ? readRootToken(config) : undefined;
  const asAdmin: Record<string, string> = made === undefined ? {} : { authorization: `Bearer ${made}` };
  return { ...gateway, log: lines, asAdmin, ...callsTo(gateway, lines, asAdmin) };
}

function callsTo(
  gateway: Gateway,
  log: LogLine[],
  asAdmin: Record<string, string>,
): Omit<TestGateway, keyof Gateway | 'log' | 'asAdmin'> {
  const tokens = new Map<string, string>();
  const logged = (event: string) => log.filter((it) => it.event === event);
  let refusalsRead = 0;
  const token = async (username = 'demo', password = `${username}-secret`) => {
    const basic = Buffer.from(`${username}:${password}`).toString('base64');
    const headers = { authorization: `Basic ${basic}` };
    const answer = await fetch(`${gateway.baseUrl}/api/token_generate`, { method: 'POST', headers });
    return String(((await answer.json()) as { access_token: unknown }).access_token);
  };
  const post: TestGateway['post'] = async (path, body, headers = {}) => {
    if (headers.authorization === undefined && !tokens.has('demo')) tokens.set('demo', await token());
    const sent = {
      'content-type': 'application/json',
      authorization: `Bearer ${tokens.get('demo')}`,
      ...headers,
    };
    const answer = await fetch(`${gateway.baseUrl}${path}`, {
      method: 'POST',
      headers: Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== '')),
      body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === '' ? {} : JSON.parse(text), headers: answer.headers };
  };
  return {
    token,
    logged,
    refusals: () => {
      const newer = logged('request-refused').slice(refusalsRead);
      refusalsRead += newer.length;
      return newer.map((it) => it.code);
    },
    post,
    generate: (change, headers) => post(GENERATE, order(change), headers),
    sendQr: (change, headers) => post(SEND_QR, push(change), headers),
    testCallback: (change, headers) => post(TEST_CALLBACK, testCallback(change), headers),
    mock: async <T>(path: string, method: 'GET' | 'POST' = 'GET') =>
      (await (await fetch(`${gateway.origin}/_mock${path}`, { method, headers: asAdmin })).json()) as T,
  };
}

/** Everything that a refusal must leave as it is (PROTOCOL.md, clause ERR-5). */
export const kept = (gateway: TestGateway) =>
  Promise.all(['/boxes', '/orders', '/payments', '/callbacks'].map((path) => gateway.mock(path)));

/** The body of a refusal. */
export const failed = (message: string) => ({ status: 'FAILED', message });

type Refused = readonly [path: string, request: unknown, code: string, how?: { status?: number; type?: string }];

/** Posts what is to be refused: each is answered and logged so, and together they change nothing. */
export async function expectRefused(gateway: TestGateway, requests: readonly Refused[]): Promise<void> {
  const before = await kept(gateway);
  for (const [path, request, code, { status = 400, type } = {}] of requests) {
    const { length } = gateway.logged('request-refused');
    const answer = await gateway.post(path, request, type === undefined ? {} : { 'content-type': type });
    const what = `${path} with ${JSON.stringify(request)}`.slice(0, 300);
    const told = gateway.logged('request-refused').slice(length);
    const line = expect.objectContaining({ level: 'warn', status, code, reason: expect.stringMatching(/\S/) });
    expect([what, answer.status, answer.body, told]).toEqual([what, status, failed(code), [line]]);
  }
  expect(await kept(gateway)).toEqual(before);
}

/** Sends wrong values together, fewer each time: the first of them in the documented order is refused. */
export async function expectRefusedInOrder(
  wrong: readonly (readonly [code: string, change: Record<string, unknown>, ...unknown[]])[],
  send: (change: Record<string, unknown>) => Promise<Answer>,
): Promise<void> {
  for (const [i, [code]] of wrong.entries()) {
    const change: Record<string, unknown> = {};
    for (const [, its] of wrong.slice(i).reverse()) Object.assign(change, its);
    expect([i, (await send(change)).body.message]).toEqual([i, code]);
  }
}

export const GENERATE = '/api/qr/generate-customer';
export const SEND_QR = '/api/tid/send-qr';
export const TEST_CALLBACK = '/bank/api/test/transaction-callback';

/** A generate request of type 0 that is answered with a QR. */
export const order = (change: Record<string, unknown> = {}) => ({
  ...ACCOUNT,
  amount: 50_000,
  content: 'DH001',
  orderId: 'DH001',
  transType: 'C',
  qrType: 0,
  ...change,
});

export const qrFor = (change: Partial<Parameters<typeof encodeVietQr>[0]> = {}) =>
  encodeVietQr({
    bin: '970422',
    account: ACCOUNT.bankAccount,
    service: 'account',
    initiation: 'dynamic',
    amount: 50_000,
    purpose: 'DH001',
    ...change,
  });

/** The same QR without a text, beside which a push may have any content. */
export const qrWithoutText = () => {
  const payee = { bin: '970422', account: ACCOUNT.bankAccount, service: 'account' } as const;
  return encodeVietQr({ ...payee, amount: 50_000, initiation: 'dynamic' });
};

/** A send-qr request to box 1 that is right, its checkSum over what it really says unless that is changed too. */
export const push = (change: Record<string, unknown> = {}) => {
  const { bankAccount, bankCode } = ACCOUNT;
  const fields = { bankAccount, bankCode, amount: '50000', content: 'DH001', orderId: 'DH001', qrCode: qrFor() };
  const request = { ...fields, terminalCode: BOX1.terminalCode, serialNumber: BOX1.serialNumber, ...change };
  return { checkSum: checkSum('demo-secret', request), ...request };
};

export const testCallback = (change: Record<string, unknown> = {}) => ({
  bankAccount: ACCOUNT.bankAccount,
  content: 'DH001',
  amount: 50_000,
  transType: 'C',
  ...change,
});

/** A check-order request that finds the order DH001, its checkSum as `push` has it. */
export const checkOrder = (change: Record<string, unknown> = {}) => {
  const request = { bankAccount: ACCOUNT.bankAccount, type: 0, value: 'DH001', ...change };
  return { checkSum: accountCheckSum(request.bankAccount, 'demo'), ...request };
};

export interface PartnerCall {
  method: string;
  path: string;
  authorization: string | undefined;
  body: string;
}
type Reply = (call: PartnerCall, response: ServerResponse, request: IncomingMessage) => void;

/** What a partner should answer to a callback (service specification, section 6). */
export const processed: Reply = (_call, response) => {
  response.end(
    JSON.stringify({ error: false, errorReason: '000', toastMessage: '', object: { reftransactionid: 'r1' } }),
  );
};

/** A partner's server that answers as the test says, one reply after the other; the last one repeats. */
export async function partnerServer(
  ...replies: Reply[]
): Promise<{ origin: string; url: string; calls: PartnerCall[] }> {
  const calls: PartnerCall[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method = '', url = '', headers } = request;
    const call = { method, path: url, authorization: headers.authorization, body: Buffer.concat(chunks).toString() };
    const reply = replies[Math.min(calls.length, replies.length - 1)] ?? processed;
    calls.push(call);
    reply(call, response, request);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { origin, url: `${origin}/hook/sync?x=1`, calls };
}

export const status =
  (code: number, body = ''): Reply =>
  (_call, response) => {
    response.statusCode = code;
    response.end(body);
  };
