import { connect as connectTo, type LookupFunction, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect, type IClientOptions, MqttClient } from 'mqtt';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { HostResolver } from '../../lib/resolver.ts';
import { TLS_FLOOR } from '../../lib/tls.ts';
import { limitPackets, WEBSOCKET_LIMITS } from '../../protocol/packet-limit.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** The client ends the connection after a silence of 1.5 times this interval. */
const KEEPALIVE_SECONDS = 15;
const MQTT_PORT = 1883;

/** The message of the error if the broker gives no reason. */
export const CLOSED = 'the broker closed the connection';

/** The address of the broker: a URL, or a connection inside this process. */
export interface BrokerAddress {
  where: string | (() => Duplex);
  username?: string | undefined;
  password?: string | undefined;
  /** For a broker over TLS, PEM: the CA of its certificate, and the gateway's own certificate. */
  tls?: { ca?: Buffer; cert?: Buffer; key?: Buffer } | undefined;
}

/** Names this transport where people read how a box is connected. */
export const BROKER_TRANSPORT = 'mqtt';

/** Connects once to a broker and does not reconnect. Throws the error of the connection. */
export async function connectToBroker(
  address: BrokerAddress,
  names: HostResolver,
  options: IClientOptions,
  log: Logger,
): Promise<MqttClient> {
  const client = clientOf(address, names.lookup(), options);
  limitPackets(client.stream);
  try {
    await new Promise<void>((resolve, reject) => {
      client.once('connect', () => resolve());
      client.once('error', reject);
      client.once('close', () => reject(new Error(CLOSED)));
    });
  } catch (error) {
    client.on('error', () => undefined);
    client.end(true);
    throw error;
  }
  client.on('error', (error) => log.warn('broker-connection-failed', { reason: reasonOf(error) }));
  // Without this, a message after an acknowledgement waits 40 ms for the broker's delayed ACK.
  if (client.stream instanceof Socket) client.stream.setNoDelay(true);
  return client;
}

function clientOf({ where, username, password, tls }: BrokerAddress, lookup: LookupFunction, more: IClientOptions) {
  const options: IClientOptions = {
    protocolVersion: 4,
    clean: true,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...TLS_FLOOR,
    ...tls,
    wsOptions: { ...WEBSOCKET_LIMITS, ...TLS_FLOOR, ...tls },
    reconnectPeriod: 0,
    resubscribe: false,
    // A cache of all 16-bit numbers takes 10 MB and 60 ms of processor time.
    writeCache: false,
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepalive: KEEPALIVE_SECONDS,
    ...more,
  };
  if (typeof where !== 'string') return new MqttClient(where, options);
  const url = new URL(where);
  // The library passes `lookup` on for every protocol except `mqtt:`.
  if (url.protocol !== 'mqtt:') {
    const found: IClientOptions & { lookup: LookupFunction } = { ...options, lookup };
    return connect(where, { ...found, wsOptions: { ...options.wsOptions, lookup } });
  }
  const to = { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || MQTT_PORT), lookup };
  return new MqttClient(() => connectTo(to), options);
}
