import { randomUUID } from 'node:crypto';
import { onTestFinished } from 'vitest';
import type { GatewayAddress, InboundMessage, Transport } from '../../../src/device/agent/contract.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import type { UpMessage } from '../../../src/protocol/messages.ts';
import { down, fakeBroker, fakeHttpGateway, IDENTITY } from '../../support/fake-gateway.ts';
import { keptLog } from '../../support/kept-log.ts';
import { eventually } from '../../support/net.ts';
import { startProxy } from '../../support/proxy.ts';
import { MAC, publicService, SERVICE } from '../../support/public-service.ts';
import { transportIo } from '../../support/transport-io.ts';

export const RUN = '3b241101-e2bb-4255-8caf-4136c566a962';
export const OTHER_RUN = '9b241101-e2bb-4255-8caf-4136c566a962';

/** Opens a connection with these options, besides what is the same for most. */
export function boxOver(
  transport: Pick<Transport<GatewayAddress>, 'options' | 'open'>,
  url: string,
  change: { secret?: string; clock?: Clock; [option: string]: unknown } = {},
) {
  const { secret = IDENTITY.secret, clock = systemClock, ...more } = change;
  const { log, lines } = keptLog();
  const abort = new AbortController();
  const io = transportIo({ clock, log, identity: { ...IDENTITY, secret } });
  const options = transport.options.parse({ url, connectTimeoutMs: 20_000, ...more });
  const opening = transport.open(options, io, abort.signal);
  opening.catch(() => undefined);
  onTestFinished(async () => {
    await (await opening.catch(() => undefined))?.close();
  });
  return { opening, abort, sessionId: io.sessionId, lines, events: () => lines.map(({ event }) => event) };
}

/** A box over MQTT whose way to its broker can be made bad. */
export async function overProxy(transport: Transport<GatewayAddress>, change: Parameters<typeof boxOver>[2]) {
  const broker = await fakeBroker();
  await broker.gatewayIs(true, RUN);
  const proxy = await startProxy({ port: Number(new URL(broker.url).port) });
  onTestFinished(() => proxy.close());
  const session = await boxOver(transport, `mqtt://127.0.0.1:${proxy.port}`, change).opening;
  return { broker, proxy, session };
}

/** What a session gives until it ends, and why it ended. */
export async function drain(
  incoming: AsyncIterable<InboundMessage>,
): Promise<{ messages: InboundMessage[]; reason: string }> {
  const messages: InboundMessage[] = [];
  try {
    for await (const message of incoming) messages.push(message);
    return { messages, reason: '' };
  } catch (error) {
    return { messages, reason: String(error) };
  }
}

const SESSION = randomUUID();
export const shown = (): UpMessage => {
  return { v: 1, id: randomUUID(), sentAtMs: 1, sessionId: SESSION, type: 'shown', pushId: randomUUID() };
};
export const withdraw = () => down({ type: 'withdraw', pushId: randomUUID(), why: 'timeout' });
/** An event of the stream of BOX-HTTP. */
export const event = (data: string | Buffer) => `data: ${data}\n\n`;

/** The other end of a transport, as far as every transport has the same. */
interface Peer {
  url: string;
  /** Settles once the peer has what a box says first. */
  reached(): Promise<unknown>;
  /** Ends the box's connection without a goodbye. */
  cut(): void;
  received: readonly UpMessage[];
  faults: readonly string[];
  /** Sends a message of the gateway, or something illegal. Not at a service that speaks a dialect. */
  tell?(payload: string | Buffer): unknown;
}

interface PeerKind {
  /** Starts a peer; a silent one never answers what a box says first. */
  start(silent?: boolean): Promise<Peer>;
  /** Options that the transport needs besides those of every transport. */
  options: object;
  /** Addresses that it refuses. */
  wrongUrls: readonly string[];
  /** How it says that an address is wrong. */
  wrongUrl: RegExp;
  wrongLogin: { [option: string]: unknown };
  /** How it says that the peer was silent. */
  silence: RegExp;
  /** What no other transport can carry at all. */
  illegal: readonly (string | Buffer)[];
}

const NO_BROKER_URLS = ['', 'not a url', 'http://broker.example', 'mqtt://name@broker.example'];
const NO_SECRET = { secret: 'another-secret' };

/** A peer for each transport of the registry, by name. */
export const PEERS: Readonly<Record<string, PeerKind>> = {
  mqtt: {
    start: async (silent = false) => {
      const broker = await fakeBroker();
      if (!silent) await broker.gatewayIs(true, RUN);
      return { ...broker, reached: () => eventually('the birth', () => broker.presences.length > 0) };
    },
    options: {},
    wrongUrls: NO_BROKER_URLS,
    wrongUrl: /address/,
    wrongLogin: NO_SECRET,
    silence: /the gateway is not at the broker at mqtt:/,
    illegal: ['', Buffer.from([0xff, 0xfe])],
  },
  http: {
    start: async (silent = false) => {
      const gateway = await fakeHttpGateway();
      let asked = 0;
      gateway.answerWith(() => {
        asked += 1;
        return silent;
      });
      return {
        ...gateway,
        reached: () => eventually('the request', () => asked > 0),
        cut: () => {
          for (const socket of gateway.sockets) socket.destroy();
        },
        tell: (payload) => gateway.write(event(payload)),
      };
    },
    options: {},
    wrongUrls: ['', 'not a url', 'http://', 'ftp://gateway.example', 'http://gateway.example/path'],
    wrongUrl: /address|origin/,
    wrongLogin: NO_SECRET,
    silence: /not done within 500 ms/,
    illegal: [],
  },
  vietqr: {
    start: async (silent = false) => {
      const { known, enrolments, ...service } = await publicService();
      if (silent) known.clear();
      const reached = () => eventually('the enrolment', () => enrolments.length > 0);
      return { ...service, received: [], reached };
    },
    options: { macAddr: MAC, ...SERVICE },
    wrongUrls: NO_BROKER_URLS,
    wrongUrl: /address/,
    wrongLogin: { password: 'another-secret' },
    silence: /did not answer the enrolment/,
    illegal: [],
  },
};
