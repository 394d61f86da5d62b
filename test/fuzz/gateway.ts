import { get } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { startGateway } from '../../src/gateway/gateway.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { CODES } from '../../src/protocol/codes.ts';
import { BOX_CHALLENGE_HEADER, BOX_PATHS, BOX_SESSION_HEADER } from '../../src/protocol/http-api.ts';
import { loginOf, signingKeyOf } from '../../src/protocol/keys.ts';
import type { DownMessage, UpBody, UpMessage } from '../../src/protocol/messages.ts';
import { BoxSeal } from '../../src/protocol/seal.ts';
import { ACCOUNT, BOX1, BOX2, PARTNER, UNENROLLED } from './corpus.ts';
import { type Answer, exchange, requestOf } from './http.ts';
import { type Line, listeningLog } from './logs.ts';
import { hold, type World } from './target.ts';

const VIEWS = ['boxes', 'orders', 'payments', 'callbacks', 'credits'] as const;
/** A refusal is compared with the state before it at least every so many inputs; then one by one, if something changed. */
const COMPARED_EVERY = 16;
const DEAD_PORT = 9;
const SETTLE_TRIES_MAX = 500;

export interface FuzzedGateway {
  port: number;
  mqttPort: number;
  lines: Line[];
  token: string;
  /** Everything that `/_mock` tells. */
  state(): Promise<string>;
  /** The state once no callback is under way. */
  settled(): Promise<string>;
  send(request: Buffer): Promise<Answer>;
}

/** A real gateway in this process, with two boxes, a partner and nobody who would hear its callbacks. */
export async function openGateway(
  world: World,
  { clock = systemClock, sources = [] }: { clock?: Clock; sources?: readonly object[] } = {},
): Promise<FuzzedGateway> {
  const callback = { url: `http://127.0.0.1:${DEAD_PORT}/` };
  const config = parseGatewayConfig(
    {
      ...{ http: { port: 0 }, mqtt: { embedded: { port: 0 } }, dataDir: await world.folder(), accounts: [ACCOUNT] },
      boxes: [BOX1, BOX2, UNENROLLED].map((box) => ({ ...box, account: ACCOUNT.bankAccount })),
      partners: [{ ...PARTNER, accounts: [ACCOUNT.bankAccount], callback }],
      ...{
        callbackRetryWaitsMs: [],
        callbackLateRetries: { everySeconds: 3600, forSeconds: 0 },
        confirmTimeoutMs: 60_000,
        sources,
      },
    },
    'fuzz',
  );
  const { log, lines } = listeningLog(clock);
  const gateway = await startGateway(config, { clock, random: systemRandom, log });
  world.onEnd(() => gateway.close());
  const port = Number(new URL(gateway.origin).port);
  const read = (path: string) => exchange(port, requestOf(`GET ${path}`, {}, Buffer.alloc(0)));
  const state = async () => {
    const views = await Promise.all(VIEWS.map((view) => read(`/_mock/${view}?limit=200`)));
    for (const view of views) hold(view.status === 200, () => `/_mock answers ${view.text.slice(0, 500)}`);
    return views.map((view) => view.body).join('\n');
  };
  const basic = Buffer.from(`${PARTNER.username}:${PARTNER.password}`).toString('base64');
  const granted = await exchange(
    port,
    requestOf('POST /vqr/api/token_generate', { authorization: `Basic ${basic}` }, Buffer.alloc(0)),
  );
  return {
    port,
    mqttPort: Number(new URL(gateway.mqttUrl ?? '').port),
    lines,
    token: String((JSON.parse(granted.body) as { access_token: unknown }).access_token),
    state,
    settled: async () => {
      for (let left = SETTLE_TRIES_MAX; left > 0; left -= 1) {
        const now = await state();
        if (!now.includes('"status":"pending"')) return now;
        await delay(2);
      }
      throw new Error('a callback is under way for ever');
    },
    send: (request) => exchange(port, request),
  };
}

/** A refusal of the service: a code that is in the table, and not that of a fault. */
export function holdRefusal({ status, body, text: all }: Answer): void {
  hold(status >= 400 && status < 500, () => `answered ${status}: ${all.slice(0, 1_000)}`);
  let json: { status?: unknown; message?: unknown };
  try {
    json = JSON.parse(body) as typeof json;
  } catch {
    json = {};
  }
  const { message } = json;
  const known = typeof message === 'string' && Object.hasOwn(CODES, message) && message !== 'E05';
  hold(json.status === 'FAILED' && known && Object.keys(json).length === 2, () => `refused with ${body.slice(0, 500)}`);
}

/** Holds that a refused input leaves the state as it was. */
export function unchangedBy(gateway: FuzzedGateway, send: (input: Buffer) => Promise<boolean>) {
  let before: string | undefined;
  let since: Buffer[] = [];
  const compare = async () => {
    const suspects = since;
    since = [];
    const after = await gateway.settled();
    if (before === undefined || before === after) {
      before = after;
      return;
    }
    const was = before;
    before = after;
    for (const suspect of suspects) {
      const taken = await send(suspect);
      const now = await gateway.settled();
      hold(
        taken || now === before,
        () => `refused, but the state changed: ${suspect.toString('latin1').slice(0, 2_000)}`,
      );
      before = now;
    }
    hold(false, () => `one of ${suspects.length} refused inputs changed the state from ${was.slice(0, 300)}`);
  };
  return {
    feed: async (input: Buffer) => {
      if (before === undefined) before = await gateway.settled();
      const taken = await send(input);
      if (taken) {
        // What was taken may change the state; what was refused before it must not have.
        before = undefined;
        since = [];
        return true;
      }
      since.push(input);
      if (since.length >= COMPARED_EVERY) await compare();
      return false;
    },
    check: compare,
  };
}

/** A box on an HTTP stream that does what it is told: every push is on its screen at once. */
export async function openBox({ port }: { port: number }, identity: typeof BOX1, world: World) {
  const sessionId = systemRandom.uuid();
  const basic = Buffer.from(`${identity.terminalCode}:${loginOf(identity.secret)}`).toString('base64');
  const headers = { authorization: `Basic ${basic}`, [BOX_SESSION_HEADER]: sessionId };
  const seal = new BoxSeal({ ...identity, sessionId }, signingKeyOf(systemRandom.secret(32)), systemClock);
  const received: DownMessage[] = [];
  const post = (body: Uint8Array) =>
    exchange(port, requestOf(`POST ${BOX_PATHS.messages}`, { ...headers, 'content-type': 'application/jose' }, body));
  let challenge = '';
  const sealed = (message: UpMessage) => Buffer.from(seal.seal(message, challenge));
  const say = (body: UpBody, id: string = systemRandom.uuid()) =>
    post(sealed({ v: 1, id, sentAtMs: Date.now(), sessionId, ...body } as UpMessage));
  const stream = get({ port, host: '127.0.0.1', path: BOX_PATHS.stream, headers, agent: false });
  stream.on('error', () => undefined);
  const response = await new Promise<import('node:http').IncomingMessage>((resolve) =>
    stream.once('response', resolve),
  );
  if (response.statusCode !== 200) throw new Error(`stream: ${await text(response)}`);
  response.on('error', () => undefined);
  challenge = String(response.headers[BOX_CHALLENGE_HEADER]);
  const take = (data: string) => {
    const decoded = seal.open(data);
    if (!decoded.ok) throw new Error(`the gateway says ${decoded.reason}`);
    received.push(decoded.value);
    if (received.length > 500) received.shift();
    if (decoded.value.type === 'show') void say({ type: 'shown', pushId: decoded.value.pushId });
  };
  let rest = '';
  response.setEncoding('utf8').on('data', (chunk: string) => {
    const events = (rest + chunk).split('\n\n');
    rest = events.pop() ?? '';
    for (const event of events) if (event.startsWith('data: ')) take(event.slice('data: '.length));
  });
  const alive = setInterval(() => void say({ type: 'alive' }), 5_000);
  world.onEnd(() => {
    clearInterval(alive);
    stream.destroy();
  });
  const { terminalCode, serialNumber } = identity;
  const hello = () =>
    say({ type: 'hello', terminalCode, serialNumber, agentVersion: 'fuzz', display: 'fuzz', shownPushId: null });
  await hello();
  return { sessionId, headers, received, post, sealed, say, hello };
}
