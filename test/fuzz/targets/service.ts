import { checkSum } from '../../../src/protocol/checksum.ts';
import { PATHS } from '../../../src/protocol/http-api.ts';
import type { Seeded } from '../../support/seeded.ts';
import { mutated, ODD_TEXTS, pick } from '../bytes.ts';
import { BODIES, BOX1, PARTNER } from '../corpus.ts';
import { holdRefusal, openBox, openGateway, unchangedBy } from '../gateway.ts';
import { exchange, requestOf } from '../http.ts';
import { mutatedJson } from '../json.ts';
import { hold, type Target } from '../target.ts';

/** A partner's body: refused by a code that means something and without a trace, or answered as it should be. */
function endpoint(path: string, holdTaken: (json: Record<string, unknown>) => void): Target['open'] {
  return async (world) => {
    const gateway = await openGateway(world);
    await openBox(gateway, BOX1, world);
    const headers = { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' };
    return unchangedBy(gateway, async (body) => {
      const answer = await gateway.send(requestOf(`POST /vqr${path}`, headers, body));
      if (answer.status !== 200) {
        holdRefusal(answer);
        return false;
      }
      holdTaken(JSON.parse(answer.body) as Record<string, unknown>);
      return true;
    });
  };
}

/** Every second request gets the checkSum of what it says, or none would come further than that. */
function signed(body: Buffer): Buffer {
  try {
    const json = JSON.parse(body.toString()) as Parameters<typeof checkSum>[1];
    return Buffer.from(JSON.stringify({ ...json, checkSum: checkSum(PARTNER.password, json) }));
  } catch {
    return body;
  }
}

const encodedBasic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
const AUTHORIZATIONS = [
  ...[
    encodedBasic('demo:demo-secret'),
    encodedBasic('demo:'),
    encodedBasic(':'),
    encodedBasic('demo'),
    encodedBasic('nobody:x'),
  ],
  ...['Basic', 'basic ZGVtbzpkZW1vLXNlY3JldA==', 'Basic ====', 'Bearer x', 'Bearer', 'Digest username="demo"', ''],
  'Bearer eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJzdWIiOiJkZW1vIiwiaXNzIjoicGF5Ym94LWdhdGV3YXkiLCJleHAiOjQxMDI0NDQ4MDB9.',
].map((text) => Buffer.from(text));

/** What a header line can carry. */
function headerOf(chance: Seeded): Buffer {
  const value = chance.chance(0.2)
    ? Buffer.from(encodedBasic(`demo:${pick(ODD_TEXTS, chance)}`))
    : mutated(AUTHORIZATIONS, chance);
  return Buffer.from(value.subarray(0, 6_000).filter((byte) => byte !== 0x0a && byte !== 0x0d && byte !== 0));
}

const authorization: Target['open'] = async (world) => {
  const gateway = await openGateway(world);
  return unchangedBy(gateway, async (header) => {
    const atToken = await gateway.send(
      requestOf(`POST /vqr${PATHS.token}`, { authorization: header }, Buffer.from('{}')),
    );
    const headers = { authorization: header, 'content-type': 'application/json' };
    const atService = await gateway.send(
      requestOf(`POST /vqr${PATHS.generate}`, headers, BODIES.generate[0] ?? Buffer.alloc(0)),
    );
    holdRefusal(atService);
    if (atToken.status !== 200) {
      holdRefusal(atToken);
      return false;
    }
    // Only these credentials are right, however they are written.
    const given = Buffer.from(header.toString('latin1').replace(/^basic +/i, ''), 'base64').toString();
    hold(given === `${PARTNER.username}:${PARTNER.password}`, () => `a token for ${given}`);
    return true;
  });
};

const request = (line: string, headers: Record<string, string>, body: string) =>
  requestOf(line, { connection: 'close', ...headers }, Buffer.from(body));
const chunked =
  'POST /vqr/api/qr/generate-customer HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n';
const RAW = [
  request('GET /_mock/orders?limit=5', {}, ''),
  request('GET /_mock/boxes/VVB000001', {}, ''),
  request('POST /_mock/orders/DH001/pay', { 'content-type': 'application/json' }, '{}'),
  request('POST /_mock/callbacks/x/resend', {}, ''),
  request('POST /vqr/api/token_generate', { authorization: 'Basic eA==' }, '{}'),
  request('GET /qr/abc', {}, ''),
  request('GET /docs/swagger-ui.css', { range: 'bytes=0-1' }, ''),
  request('OPTIONS *', { origin: 'http://evil.example' }, ''),
  request('GET /metrics', { 'if-none-match': '*', expect: '100-continue', upgrade: 'websocket' }, ''),
  request('POST /box/v1/messages', { authorization: 'Basic eA==', 'paybox-session': 'x' }, '{}'),
  Buffer.from(chunked),
  Buffer.concat([request('GET /healthz', { connection: 'keep-alive' }, ''), request('GET /healthz', {}, '')]),
];

/** How long a server may wait for the rest of a request that does not come. */
const PATIENCE_MS = 20;

/** Bytes on the HTTP port: what is answered is HTTP, is no fault, and nothing changes. */
function raw(): Target['open'] {
  return async (world) => {
    const gateway = await openGateway(world);
    return unchangedBy(gateway, async (bytes) => {
      const { status, text } = await exchange(gateway.port, bytes, PATIENCE_MS);
      hold(status < 500, () => `answered ${text.slice(0, 1_000)}`);
      hold(status !== 0 || text === '', () => `no HTTP: ${text.slice(0, 1_000)}`);
      hold(!/\n\s+at .*:\d+:\d+/.test(text), () => `a stack trace: ${text.slice(0, 1_000)}`);
      return false;
    });
  };
}

export const SERVICE: Target[] = [
  {
    name: 'generate',
    inputs: 1_500,
    make: (chance) => mutatedJson(BODIES.generate, chance),
    open: endpoint(PATHS.generate, ({ qrCode }) => hold(typeof qrCode === 'string', () => 'no QR')),
  },
  {
    name: 'send-qr',
    inputs: 1_500,
    make: (chance) => {
      const body = mutatedJson(BODIES.sendQr, chance);
      return chance.chance(0.7) ? signed(body) : body;
    },
    open: endpoint(PATHS.sendQr, (json) => hold(json.status === 'SUCCESS' && json.message === '', () => 'no success')),
  },
  {
    name: 'test callback',
    inputs: 1_000,
    make: (chance) => mutatedJson(BODIES.testCallback, chance),
    open: endpoint(PATHS.testCallback, (json) => hold(json.status === 'SUCCESS' && json.message !== '', () => 'no id')),
  },
  { name: 'authorization', inputs: 1_000, make: headerOf, open: authorization },
  { name: 'HTTP', inputs: 1_500, make: (chance) => mutated(RAW, chance), open: raw() },
];
