import { randomUUID } from 'node:crypto';
import { get } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { type Agent, startAgent } from '../../../src/device/agent/agent.ts';
import type { Connection } from '../../../src/device/agent/contract.ts';
import type { ConfiguredDisplay } from '../../../src/device/agent/screen/screen.ts';
import { httpTransport } from '../../../src/device/agent/transports/http.ts';
import { MessageQueue } from '../../../src/device/agent/transports/message-queue.ts';
import type { AgentSetup } from '../../../src/device/agent/world.ts';
import { sceneText } from '../../../src/device/display/text.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { PayboxError } from '../../../src/lib/errors.ts';
import { systemRandom } from '../../../src/lib/random.ts';
import { turn } from '../../../src/lib/virtual-clock.ts';
import { decodeDown, encode } from '../../../src/protocol/codec.ts';
import type { DownBody, DownMessage, UpMessage } from '../../../src/protocol/messages.ts';
import { DOWN } from '../../protocol/examples.ts';
import { anyChar, fc } from '../../support/properties.ts';
import type { Seeded } from '../../support/seeded.ts';
import { NO_SEAL, transportIo } from '../../support/transport-io.ts';
import { mutated } from '../bytes.ts';
import { ACCOUNT, BOX1, MESSAGES_DOWN, QR_CODE } from '../corpus.ts';
import { mutatedJson, sampled } from '../json.ts';
import { listeningLog } from '../logs.ts';
import { hold, holdNamed, type Target, type World } from '../target.ts';

const TURNS_MAX = 400;

/** A display that takes everything. */
const display: ConfiguredDisplay = {
  driver: 'fuzz',
  open: async () => ({
    surface: { kind: 'panel', qr: { sidePixels: 400, charsMax: 512 }, accents: true },
    draw: async () => undefined,
    close: async () => undefined,
  }),
};

interface OpenedAgent {
  agent: Agent;
  sent: UpMessage[];
  sessionId(): string;
  say(bytes: Uint8Array | string): void;
  lines: { event: string }[];
}

/** A whole box in this process, whose gateway says what the test says. */
async function openAgent(world: World): Promise<OpenedAgent> {
  const { log, lines } = listeningLog(systemClock);
  const sent: UpMessage[] = [];
  let incoming = new MessageQueue({ log, seal: NO_SEAL, heard: () => undefined });
  let sessionId = '';
  const say = (bytes: Uint8Array | string) => incoming.take(bytes);
  const setup: AgentSetup = {
    ...{ identity: BOX1, version: '0', displays: [display], http: { host: '127.0.0.1', port: 0 }, parts: {} },
    ...{ dataDir: await world.folder(), paidHoldMs: 1, endedHoldMs: 1, onStop: 'blank' as const },
    link: {
      ...{ transport: 'fuzz', gateway: 'fuzz' },
      open: async (io): Promise<Connection> => {
        incoming = new MessageQueue({ log, seal: NO_SEAL, heard: () => undefined });
        sessionId = io.sessionId;
        return {
          incoming,
          send: async (message) => {
            sent.push(message);
            if (message.type === 'hello') say(down({ ...DOWN.welcome, link: ACCOUNT }, sessionId));
            if (message.type === 'paid' || message.type === 'ended')
              say(down({ type: 'ack', reportIds: [message.id] }, sessionId));
          },
          close: async () => incoming.close(),
        };
      },
    },
  };
  const deps = { clock: systemClock, random: systemRandom, log, terminal: undefined, terminalInput: undefined };
  const agent = await startAgent(setup, deps);
  world.onEnd(() => agent.close());
  const opened = { agent, sent, sessionId: () => sessionId, say, lines };
  await online(opened);
  return opened;
}

function down(body: DownBody, sessionId: string): string {
  return encode({ ...body, v: 1, id: randomUUID(), sentAtMs: Date.now(), sessionId } as DownMessage);
}

async function online({ agent }: OpenedAgent): Promise<void> {
  for (let left = TURNS_MAX; left > 0 && !agent.box.status().online; left -= 1) await systemClock.sleep(5);
  hold(agent.box.status().online, () => `the box does not come back: ${JSON.stringify(agent.box.status())}`);
}

/** Settles once the box has nothing more to do about what it was told: a withdrawal of nothing is answered last. */
async function caughtUp(box: OpenedAgent): Promise<void> {
  const pushId = randomUUID();
  box.say(down({ type: 'withdraw', pushId, why: 'timeout' }, box.sessionId()));
  for (let left = TURNS_MAX; left > 0; left -= 1) {
    if (box.sent.some((it) => it.type === 'rejected' && it.pushId === pushId)) break;
    await (left > TURNS_MAX / 2 ? turn() : systemClock.sleep(5));
    if (isSuperseded(box)) break;
    if (!box.agent.box.status().online) await online(box);
  }
  box.sent.splice(0, box.sent.length);
}

/** Such a box has stopped for good (PROTOCOL.md, clause MSG-8). */
const isSuperseded = ({ agent }: OpenedAgent) => agent.box.status().fault?.code === 'SUPERSEDED';

const facts = ({ agent }: OpenedAgent) => {
  const { state, order, lastPayment, journal, fault } = agent.box.status();
  return JSON.stringify({ state, order, lastPayment, journal, fault });
};

/** What is illegal changes nothing, and whatever is legal leaves a box that can say how it is. */
const toldBox: Target['open'] = async (world) => {
  const open = async () => {
    const opened = await openAgent(world);
    // A page that watches is told of every change.
    get(`${opened.agent.origin}/events`, (response) => response.resume()).on('error', () => undefined);
    return opened;
  };
  let box = await open();
  return {
    feed: async (input) => {
      if (isSuperseded(box)) {
        await box.agent.close();
        box = await open();
      }
      const text = input.toString('latin1').replace(/"sessionId":"[^"]*"/, `"sessionId":"${box.sessionId()}"`);
      const bytes = Buffer.from(text, 'latin1');
      const { ok } = decodeDown(bytes);
      const before = facts(box);
      box.say(bytes);
      await caughtUp(box);
      const { box: window } = box.agent;
      hold(typeof sceneText(window.scene()) === 'string', () => 'no text');
      const after = facts(box);
      hold(
        ok || after === before || /"state":"(paid|expired)"/.test(before),
        () => `refused, but ${before} became ${after}`,
      );
      hold(JSON.stringify(window.status()).length < 20_000, () => 'a status without end');
      return ok;
    },
  };
};

/** A legal message with times, amounts and words at the edges of what the schemas let through. */
const legal = fc.record({
  type: fc.constantFrom('show', 'payment', 'withdraw', 'ack', 'welcome'),
  atMs: fc.oneof(
    fc.nat(),
    fc.maxSafeNat(),
    fc.constantFrom(0, 8_640_000_000_000_000, 8_640_000_000_000_001, Number.MAX_SAFE_INTEGER),
  ),
  // Over at once, or not before the test is: what time ends would look like what a refused message changed.
  lifetimeMs: fc.oneof(fc.constant(0), fc.integer({ min: 3_600_000, max: 86_400_000 })),
  amount: fc.constantFrom(50_000, 1, 9_999_999_999_999),
  text: fc.string({ unit: anyChar, maxLength: 64 }),
  account: fc.constantFrom(ACCOUNT.bankAccount, ACCOUNT.bankAccount, 'X'),
  linked: fc.boolean(),
});

function legalMessage(chance: Seeded): Buffer {
  const { type, atMs, lifetimeMs, amount, text, account, linked } = sampled(legal, chance);
  const [a, b] = [uuidOf(chance), uuidOf(chance)];
  const order = { orderId: text, amount, content: text, bankAccount: account, bankCode: 'MB' };
  const bodies: Record<string, object> = {
    show: {
      ...DOWN.show,
      pushId: a,
      ...order,
      userBankName: text,
      qrCode: QR_CODE,
      expiresAtMs: atMs,
      expiresInMs: lifetimeMs,
      sessionMs: atMs,
    },
    payment: { ...DOWN.payment, transactionId: b, pushId: linked ? a : null, ...order, paidAtMs: atMs },
    withdraw: { ...DOWN.withdraw, pushId: a, why: linked ? 'timeout' : 'paid' },
    ack: { ...DOWN.ack, reportIds: [a, b] },
    welcome: { ...DOWN.welcome, link: linked ? ACCOUNT : null },
  };
  return Buffer.from(JSON.stringify({ ...bodies[type], v: 1, id: a, sentAtMs: atMs, sessionId: a, type }));
}

/** One of few, so that messages speak of the same pushes and payments. */
function uuidOf(chance: Seeded): string {
  return `00000000-0000-4000-8000-${String(chance.below(200)).padStart(12, '0')}`;
}

const STREAMS = MESSAGES_DOWN.flatMap((message) => [
  Buffer.from(`data: ${message}\n\n`),
  Buffer.from(
    `:\n\nid: 1\nevent: x\nretry: 5\ndata: ${message.subarray(0, 40)}\ndata: ${message.subarray(40)}\r\n\r\n: alive\n\n`,
  ),
]);
const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n';
const WHOLE = STREAMS.map((stream) => Buffer.concat([Buffer.from(HEAD), stream]));

/** A stream of a hostile gateway: only legal messages come out of it, and it ends by name. */
const stream: Target['open'] = async (world) => {
  let next = Buffer.alloc(0);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    socket.once('data', () => {
      const half = Math.floor(next.length / 2);
      socket.write(next.subarray(0, half));
      setImmediate(() => socket.end(next.subarray(half)));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  world.onEnd(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
  const options = httpTransport.options.parse({ url, connectTimeoutMs: 5_000 });
  const { log } = listeningLog(systemClock);
  return {
    feed: async (input) => {
      next = Buffer.from(input);
      const io = transportIo({ log, identity: BOX1 });
      let messages = 0;
      try {
        const session = await httpTransport.open(options, io, new AbortController().signal);
        for await (const message of session.incoming) {
          if (message.type === 'overtaken' || message.type === 'linked') continue;
          hold(decodeDown(encode(message)).ok, () => `not legal: ${JSON.stringify(message)}`);
          messages += 1;
        }
        hold(false, () => 'a stream that its gateway ended has no reason');
      } catch (error) {
        if (!(error instanceof PayboxError)) throw error;
        holdNamed(error.message.replace(/answered undefined/, ''));
      }
      return messages > 0;
    },
  };
};

export const BOX: Target[] = [
  { name: 'gateway to a box', inputs: 1_200, make: (chance) => mutatedJson(MESSAGES_DOWN, chance), open: toldBox },
  { name: 'hostile gateway', inputs: 800, make: legalMessage, open: toldBox },
  {
    name: 'event stream',
    inputs: 800,
    make: (chance) =>
      chance.chance(0.3) ? mutated(WHOLE, chance) : Buffer.concat([Buffer.from(HEAD), mutated(STREAMS, chance)]),
    open: stream,
  },
];
