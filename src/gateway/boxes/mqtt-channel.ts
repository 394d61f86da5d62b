import { connect as connectTo, type LookupFunction, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect, type IClientOptions, type IPublishPacket, MqttClient } from 'mqtt';
import { type Clock, withDeadline } from '../../lib/clock.ts';
import { MissingPeerError, reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { Names } from '../../lib/names.ts';
import type { Random } from '../../lib/random.ts';
import { TLS_FLOOR } from '../../lib/tls.ts';
import { decodePresence, encode } from '../../protocol/codec.ts';
import { MESSAGE_VERSION } from '../../protocol/messages.ts';
import { boxTopic, GATEWAY_PRESENCE_TOPIC, GATEWAY_RIGHTS, parseBoxTopic } from '../../protocol/topics.ts';
import type { Directory } from '../directory.ts';
import type { BoxHub, LinkFaults } from '../faults/link-faults.ts';
import type { BoxConnection } from './connection.ts';
import type { MessageSigner } from './message-signer.ts';
import { Outgoing } from './outgoing.ts';

/** Waits between attempts to reach a lost broker; the last one repeats. */
const REDIAL_WAITS_MS = [250, 500, 1000, 2000, 5000, 10_000];
const CONNECT_TIMEOUT_MS = 10_000;
const GOODBYE_TIMEOUT_MS = 1000;
/** A broker silent for 1.5 times this is lost. */
const KEEPALIVE_SECONDS = 15;
const MQTT_PORT = 1883;

/** Where the broker is: a URL, or a connection inside this process. */
export interface BrokerAddress {
  where: string | (() => Duplex);
  username?: string | undefined;
  password?: string | undefined;
  /** For a broker over TLS, PEM: the CA that it must have a certificate of, and the gateway's own certificate. */
  tls?: { ca?: Buffer; cert?: Buffer; key?: Buffer } | undefined;
}

export interface MqttChannelDeps {
  hub: BoxHub;
  links: Pick<LinkFaults, 'line' | 'copies'>;
  seals: MessageSigner;
  directory: Directory;
  clock: Clock;
  random: Random;
  log: Logger;
}

export interface MqttChannel {
  /** The box has no connection to the broker any more. */
  boxGone(terminalCode: string): void;
  /** Whether there is a connection to the broker. */
  isConnected(): boolean;
  close(): Promise<void>;
}

/** One connection to the broker, opened once and spent. */
interface Connection {
  client: MqttClient;
  lines: ReadonlyMap<string, BoxConnection>;
  runId: string;
  closed: Promise<void>;
}

/**
 * Joins boxes on an MQTT broker to the hub (PROTOCOL.md, clauses TOP and PRE). A lost broker is dialled again.
 * Throws MissingPeerError when the first connection fails.
 */
export async function openMqttChannel(address: BrokerAddress, deps: MqttChannelDeps): Promise<MqttChannel> {
  const stop = new AbortController();
  // Not those of partners: whose names nobody knows must not be in the way of the broker.
  const names = new Names(deps);
  let current: Connection | undefined = await dial(address, names, deps).catch((error: unknown) => {
    const where = typeof address.where === 'string' ? new URL(address.where).host : 'in this process';
    throw new MissingPeerError(
      `the MQTT broker ${where} cannot be reached: ${reasonOf(error)}`,
      'start the broker, or check mqtt.url, mqtt.username and mqtt.password',
      error,
    );
  });
  const keep = async () => {
    while (!stop.signal.aborted) {
      if (current !== undefined) await current.closed;
      if (stop.signal.aborted) return;
      for (const [box, line] of current?.lines ?? []) deps.hub.disconnected(box, { line }, 'the broker was lost');
      current = await redial(address, names, deps, stop.signal);
    }
  };
  const kept = keep();
  return {
    boxGone: (terminalCode) => {
      const line = current?.lines.get(terminalCode);
      if (line !== undefined) deps.hub.disconnected(terminalCode, { line }, 'its connection to the broker ended');
    },
    isConnected: () => current?.client.connected === true,
    close: async () => {
      stop.abort();
      names.close();
      if (current !== undefined) await sayGoodbye(current, deps.clock);
      await kept;
    },
  };
}

async function redial(
  address: BrokerAddress,
  names: Names,
  deps: MqttChannelDeps,
  signal: AbortSignal,
): Promise<Connection | undefined> {
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    await deps.clock.sleep(REDIAL_WAITS_MS[Math.min(attempt, REDIAL_WAITS_MS.length - 1)] ?? 0, signal);
    if (signal.aborted) break;
    try {
      const connection = await dial(address, names, deps);
      deps.log.info('broker-back', { attempt: attempt + 1 });
      if (!signal.aborted) return connection;
      await sayGoodbye(connection, deps.clock);
    } catch (error) {
      deps.log.warn('broker-unreachable', { attempt: attempt + 1, reason: reasonOf(error) });
    }
  }
  return undefined;
}

/** Connects, listens to every box, and only then says that the gateway is there (PROTOCOL.md, clause PRE-2). */
async function dial(address: BrokerAddress, names: Names, deps: MqttChannelDeps): Promise<Connection> {
  // Fresh for every connection, not only for every start: boxes say hello anew to a run that they do not know.
  const runId = deps.random.uuid();
  const options: IClientOptions = {
    protocolVersion: 4,
    clean: true,
    clientId: `gateway-${runId.slice(0, 8)}`,
    ...(address.username === undefined ? {} : { username: address.username }),
    ...(address.password === undefined ? {} : { password: address.password }),
    ...TLS_FLOOR,
    ...address.tls,
    wsOptions: { ...TLS_FLOOR, ...address.tls },
    reconnectPeriod: 0,
    resubscribe: false,
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepalive: KEEPALIVE_SECONDS,
    will: { topic: GATEWAY_PRESENCE_TOPIC, payload: Buffer.from(presenceOf(runId, false)), qos: 1, retain: true },
  };
  const { where } = address;
  const client = typeof where === 'string' ? clientOf(where, names.lookup(), options) : new MqttClient(where, options);
  const closed = new Promise<void>((resolve) => client.once('close', () => resolve()));
  const outgoing = new Outgoing(deps.clock);
  const lineOf = (terminalCode: string) => deps.links.line(terminalCode, lineTo(client, outgoing, terminalCode, deps));
  const lines = new Map(deps.directory.boxes().map((box) => [box.terminalCode, lineOf(box.terminalCode)]));
  try {
    await new Promise<void>((resolve, reject) => {
      client.once('connect', () => resolve());
      client.once('error', reject);
      client.once('close', () => reject(new Error('the broker closed the connection')));
    });
    client.on('error', (error) => deps.log.warn('broker-error', { reason: reasonOf(error) }));
    // Otherwise a message behind an acknowledgement waits 40 ms for the broker's delayed ACK.
    if (client.stream instanceof Socket) client.stream.setNoDelay(true);
    client.on('message', (topic, payload, packet) => {
      if (topic === GATEWAY_PRESENCE_TOPIC) keepPresent(client, runId, payload, packet, deps);
      else take({ topic, payload, packet, runId }, (box) => lines.get(box) ?? lineOf(box), deps);
    });
    await client.subscribeAsync([...GATEWAY_RIGHTS.read], { qos: 1 });
    await announce(client, runId, true);
  } catch (error) {
    client.on('error', () => undefined);
    client.end(true);
    throw error;
  }
  return { client, lines, runId, closed };
}

/** The library hands `lookup` on with every protocol but `mqtt:`. */
function clientOf(where: string, lookup: LookupFunction, options: IClientOptions): MqttClient {
  const url = new URL(where);
  if (url.protocol !== 'mqtt:') {
    const found: IClientOptions & { lookup: LookupFunction } = { ...options, lookup };
    return connect(where, { ...found, wsOptions: { ...options.wsOptions, lookup } });
  }
  const to = { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || MQTT_PORT), lookup };
  return new MqttClient(() => connectTo(to), options);
}

function lineTo(
  client: MqttClient,
  outgoing: Outgoing,
  terminalCode: string,
  { log, seals, links }: MqttChannelDeps,
): BoxConnection {
  return {
    transport: 'mqtt',
    send: (message) => {
      if (!client.connected) return;
      const unsent = (reason: string) => log.warn('message-unsent', { box: terminalCode, type: message.type, reason });
      const problem = outgoing.problem();
      if (problem !== undefined) {
        unsent(problem.reason);
        if (problem.stalled) client.end(true);
        return;
      }
      const sealed = seals.sign(terminalCode, message);
      if (sealed === undefined) {
        unsent('its session is not known any more');
        return;
      }
      const copies = message.type === 'heard' ? 1 : links.copies(terminalCode);
      for (let copy = copies; copy > 0; copy -= 1) {
        const settled = outgoing.begin();
        client.publish(boxTopic(terminalCode, 'down'), sealed, { qos: 1 }, (error) => {
          settled();
          if (error && !client.disconnecting && client.connected) unsent(reasonOf(error));
        });
      }
    },
    // The connection to the broker is shared; the box reads from its `refused` that it is over.
    end: () => undefined,
  };
}

/**
 * Says again that this run is there when its topic comes to say otherwise, as the late last will of an earlier run
 * does (PROTOCOL.md, clause PRE-2). Another run that is online is told, not answered: two gateways would never stop.
 */
function keepPresent(
  client: MqttClient,
  runId: string,
  payload: Buffer,
  packet: IPublishPacket,
  { log }: MqttChannelDeps,
): void {
  // The past, told because of the subscription: the birth that follows takes its place.
  if (packet.retain) return;
  const decoded = decodePresence(payload);
  if (decoded.ok && decoded.value.online) {
    if (decoded.value.sessionId !== runId) log.warn('gateway-rival', { reason: 'another gateway uses this broker' });
    return;
  }
  log.warn('gateway-presence-restored', { reason: decoded.ok ? 'an earlier run ended late' : decoded.reason });
  announce(client, runId, true).catch((error: unknown) => log.warn('broker-error', { reason: reasonOf(error) }));
}

/** Takes what any box publishes; on a broker without topic rights that can be anything. */
function take(
  { topic, payload, packet, runId }: { topic: string; payload: Buffer; packet: IPublishPacket; runId: string },
  lineOf: (terminalCode: string) => BoxConnection,
  { hub, seals, log }: MqttChannelDeps,
): void {
  const refuse = (code: string, reason: string) => log.warn('message-refused', { topic, code, reason });
  const from = parseBoxTopic(topic);
  if (from === undefined) {
    refuse('E46', 'not a topic of a box');
  } else if (from.channel === 'presence') {
    const decoded = decodePresence(payload);
    if (!decoded.ok) refuse('E46', decoded.reason);
    else if (decoded.value.online) return;
    else if (seals.provesGone(from.terminalCode, decoded.value)) {
      hub.disconnected(from.terminalCode, decoded.value, 'its presence ended');
    } else refuse('SIGNATURE_INVALID', 'who says that the box is gone does not know its secret');
  } else if (packet.retain) {
    refuse('E46', 'retained by the broker');
  } else {
    const opened = seals.verify(from.terminalCode, runId, payload);
    if (!opened.ok) refuse(opened.code, opened.reason);
    else void hub.receive(from.terminalCode, lineOf(from.terminalCode), opened.value);
  }
}

async function sayGoodbye({ client, runId, closed }: Connection, clock: Clock): Promise<void> {
  // The broker sends the goodbye to this run too, which must not contradict it.
  client.removeAllListeners('message');
  if (client.connected) {
    const said = announce(client, runId, false);
    await withDeadline(
      clock,
      GOODBYE_TIMEOUT_MS,
      said.catch(() => undefined),
    );
  }
  client.end(true);
  await closed;
}

async function announce(client: MqttClient, runId: string, online: boolean): Promise<void> {
  await client.publishAsync(GATEWAY_PRESENCE_TOPIC, presenceOf(runId, online), { qos: 1, retain: true });
}

function presenceOf(runId: string, online: boolean): string {
  return encode({ v: MESSAGE_VERSION, online, sessionId: runId });
}
