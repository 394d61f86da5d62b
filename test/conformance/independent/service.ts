import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import QRCode from 'qrcode';
import { Logins } from './logins.ts';
import { generate, sendQr } from './orders.ts';
import { testCallback } from './payments.ts';
import { type Fields, type Partner, Refusal, type World } from './world.ts';

const BASE_PATH = '/vqr';
const BODY_BYTES_MAX = 65_536;
/** Requests within this real time come together. */
const TOGETHER_MS = 30;

interface Reply {
  status: number;
  headers: Record<string, string>;
  body: Buffer | string;
}

export interface IndependentService {
  /** With the path prefix. */
  readonly baseUrl: string;
  close(): Promise<void>;
}

/** A payment QR service, written from the specification and PROTOCOL.md alone. It shares no code with ours. */
export async function startIndependentService(world: World): Promise<IndependentService> {
  const ending = new AbortController();
  const logins = new Logins(world);
  let baseUrl = '';
  const server = createServer((request, response) => {
    answerTo({ world, logins, baseUrl, ending: ending.signal }, request).then(
      (reply) => send(response, reply),
      (error: unknown) => send(response, refused(world, error)),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}${BASE_PATH}`;
  return {
    baseUrl,
    close: () =>
      new Promise((resolve) => {
        ending.abort();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface Serving {
  world: World;
  logins: Logins;
  baseUrl: string;
  ending: AbortSignal;
}

async function answerTo({ world, logins, baseUrl, ending }: Serving, request: IncomingMessage): Promise<Reply> {
  const { faults } = world;
  const { headers, url = '', method, rawHeaders, socket } = request;
  const hosts = rawHeaders.filter((it, index) => index % 2 === 0 && it.toLowerCase() === 'host');
  if (hosts.length > 1 && !faults.has('a request may have two Hosts')) throw new Refusal('E46');
  const { pathname, host } = new URL(url, `http://${headers.host ?? ''}`);
  if (!url.startsWith('/') && host !== headers.host) throw new Refusal('E46');
  const path = pathname.startsWith(BASE_PATH) ? pathname.slice(BASE_PATH.length) : '';
  const picture = world.pictures.get(/^\/qr\/([0-9a-f-]+)\.png$/.exec(path)?.[1] ?? '');
  if (picture !== undefined && method === 'GET') {
    const to = faults.has('qrLink leads nowhere') ? '' : picture;
    if (to === '') throw new Refusal('E46', 404);
    return { status: 200, headers: { 'content-type': 'image/png' }, body: await QRCode.toBuffer(to) };
  }
  const services: Record<string, (partner: Partner, fields: Fields) => object> = {
    '/api/qr/generate-customer': (partner, fields) => generate(world, partner, fields, baseUrl),
    '/api/tid/send-qr': (partner, fields) => sendQr(world, partner, fields),
    '/bank/api/test/transaction-callback': (partner, fields) => testCallback(world, partner, fields, ending),
  };
  const isToken = path === '/api/token_generate';
  const service = services[path];
  if (!isToken && service === undefined) {
    if (faults.has('an unknown path is 200')) return json(200, {});
    throw new Refusal('E46', 404);
  }
  if (method !== 'POST' && !faults.has('another method is taken')) throw new Refusal('E46', 405, { allow: 'POST' });
  const isLate = faults.has('the bearer is looked at after the body');
  const given = isToken || isLate ? await read(request, world) : undefined;
  if (isToken) {
    if (given !== '' && faults.has('the body of a token request is read')) fieldsOf(world, given ?? '');
    return json(200, logins.token(headers.authorization, socket.remoteAddress ?? ''));
  }
  if (isLate) fieldsOf(world, given ?? '');
  const partner = await partnerOf(request, path, world, logins);
  const isJson = /^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '');
  if (!isJson && !faults.has('a body of any type is taken')) throw new Refusal('E46', 415);
  const fields = fieldsOf(world, given ?? (await read(request, world)));
  return json(200, service?.(partner, await withOthers(world, path, fields)) ?? {});
}

/** Who calls. Throws Refusal for a wrong bearer. */
async function partnerOf(request: IncomingMessage, path: string, world: World, logins: Logins): Promise<Partner> {
  const { faults, boxes } = world;
  const { authorization } = request.headers;
  const { searchParams } = new URL(request.url ?? '', 'http://localhost');
  const isTold = authorization === undefined && faults.has('a token in the address is taken');
  try {
    return logins.partnerOf(isTold ? `Bearer ${searchParams.get('access_token')}` : authorization);
  } catch (error) {
    const isShown = path === '/api/tid/send-qr' && faults.has('a push without a bearer is refused and shown');
    const { qrCode } = isShown ? fieldsOf(world, await read(request, world)) : {};
    for (const box of boxes) if (isShown && box.account !== undefined) box.shownQr = String(qrCode);
    throw error;
  }
}

/** The fields of a request, unless those of another one that came with it are taken for it. */
async function withOthers({ faults, newest }: World, path: string, fields: Fields): Promise<Fields> {
  const isMixed =
    path === '/api/qr/generate-customer'
      ? faults.has('requests that come together have one QR')
      : path.endsWith('transaction-callback') && faults.has('payments that come together are the last one');
  if (!isMixed) return fields;
  newest.set(path, fields);
  await new Promise((resolve) => setTimeout(resolve, TOGETHER_MS));
  const mixed = newest.get(path) ?? fields;
  // Each keeps its bank: a judge who asks for all banks at once would find that fault only where they come at one time.
  return 'bankCode' in fields ? { ...mixed, bankCode: fields.bankCode } : mixed;
}

const json = (status: number, body: object): Reply => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

/** The body as text. Throws Refusal for one that is too long, or no UTF-8. */
async function read(request: IncomingMessage, { faults }: World): Promise<string> {
  const most = faults.has('a body may be long') ? BODY_BYTES_MAX * 10 : BODY_BYTES_MAX;
  const least = faults.has('a body of 65,536 bytes is refused') ? BODY_BYTES_MAX - 1 : most;
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes <= least) parts.push(part);
  }
  if (bytes > least) throw new Refusal('E46', 413);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts));
  } catch {
    throw new Refusal('E46');
  }
}

const KNOWN =
  /^(amount|content|bankAccount|bankCode|userBankName|transType|orderId|qrType|terminalCode|subTerminalCode)$|^(serviceCode|urlLink|sign|note|additionalData|serialNumber|qrCode|checkSum)$/;

function fieldsOf({ faults }: World, text: string): Fields {
  const once = faults.has('of equal keys the first counts') ? firstOfEqual(text) : text;
  let fields: unknown;
  try {
    fields = JSON.parse(once);
  } catch {
    throw new Refusal(faults.has('malformed JSON is E05') ? 'E05' : 'E46');
  }
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) throw new Refusal('E46');
  const isStrange = Object.keys(fields).some((name) => !KNOWN.test(name));
  if (isStrange && faults.has('an unknown field is refused')) throw new Refusal('E46');
  return fields as Fields;
}

/** The text without the later one of two equal keys that have numbers or text. */
function firstOfEqual(text: string): string {
  const seen = new Set<string>();
  return text
    .replace(/"(\w+)" *: *("(?:[^"\\]|\\.)*"|[\d.]+),?/g, (whole, name: string) => {
      if (seen.has(name)) return '';
      seen.add(name);
      return whole;
    })
    .replace(/,\}$/, '}');
}

function refused({ faults, partners }: World, error: unknown): Reply {
  if (!(error instanceof Refusal)) return json(500, { status: 'FAILED', message: 'E05' });
  const { code, status, headers } = error;
  const why = faults.has('a refusal tells the password') && { reason: `expected ${partners[0]?.password}` };
  const word = faults.has('a refusal has no code') ? { error: 'refused' } : { status: 'FAILED', message: code, ...why };
  const ordinary = faults.has('refusals come as HTTP 200') ? 200 : faults.has('refusals are 422') ? 422 : 400;
  const { headers: type, body } = json(
    status,
    faults.has('a refusal is in words') ? { message: 'not possible' } : word,
  );
  return { status: status === 400 ? ordinary : status, headers: { ...type, ...headers }, body };
}

function send(response: ServerResponse, { status, headers, body }: Reply): void {
  response.writeHead(status, headers);
  response.end(body);
}
