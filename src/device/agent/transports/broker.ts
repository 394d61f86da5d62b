import { Socket } from 'node:net';
import type { IClientOptions, MqttClient } from 'mqtt';
import { z } from 'zod';
import { MissingPeerError, type PayboxError, reasonOf } from '../../../lib/errors.ts';
import { isTlsUrl } from '../../../lib/tls.ts';
import { BROKER_SCHEMES, limitPackets, WEBSOCKET_LIMITS } from '../../../protocol/packet-limit.ts';
import type { GatewayAddress } from '../contract.ts';
import { lost } from './inbound-queue.ts';
import { certificateFix, connectionTls, tlsOptions } from './tls.ts';

/* This file has the common parts of the transports over an MQTT 3.1.1 broker. */

/** CONNACK return codes (MQTT 3.1.1, section 3.2.2.3): bad user name or password, not authorized. */
const REFUSED_LOGIN: readonly unknown[] = [4, 5];

/** Returns the options of every transport over a broker. `login` says which options name the login. */
export function brokerOptions(login: string) {
  return {
    url: z
      .url({
        protocol: new RegExp(`^(${Object.keys(BROKER_SCHEMES).join('|')})$`),
        error: 'an mqtt://, mqtts://, ws:// or wss:// address',
        abort: true,
      })
      .max(512)
      .refine((url) => new URL(url).username === '', {
        error: `expected an address without a user name: use ${login}`,
        abort: true,
      })
      .describe('the broker'),
    keepaliveSeconds: z
      .int()
      .min(5)
      .max(600)
      .default(15)
      .describe('a broker that is silent for 1.5 times as long counts as lost'),
    connectTimeoutMs: z
      .int()
      .min(500)
      .max(60_000)
      .default(8000)
      .describe('limit for connecting, until the peer is present'),
    ...tlsOptions,
  };
}

type BrokerLink = GatewayAddress & { connectTimeoutMs: number };

/** Returns the options of a client that connects once, with a clean session. */
export function clientOptions(link: BrokerLink, login: { username?: string; password?: string }): IClientOptions {
  const tls = isTlsUrl(link.url, BROKER_SCHEMES) ? connectionTls(link) : undefined;
  return {
    protocolVersion: 4,
    clean: true,
    ...login,
    connectTimeout: link.connectTimeoutMs,
    reconnectPeriod: 0,
    // The library's cache of all 16-bit numbers needs 10 MB and 60 ms of processor time.
    writeCache: false,
    ...tls,
    wsOptions: { ...WEBSOCKET_LIMITS, ...tls },
  };
}

/** Begins to connect. It loads the library only now, because a box over HTTP does not need it. */
export async function startClient({ url }: GatewayAddress, options: IClientOptions): Promise<MqttClient> {
  const { connect } = await import('mqtt');
  const client = connect(url, options);
  limitPackets(client.stream);
  return client;
}

/** Runs `work` with a client that is logged in, and ends the client. Throws the error of the connection. */
export async function withClient<T>(
  link: GatewayAddress,
  options: IClientOptions,
  work: (client: MqttClient) => Promise<T>,
): Promise<T> {
  const client = await startClient(link, options);
  const failed = new Promise<never>((_resolve, reject) => {
    client.on('error', reject);
    client.on('close', () => reject(new Error('the broker ended the connection')));
  });
  try {
    return await Promise.race([failed, connected(client).then(() => work(client))]);
  } finally {
    client.end(true);
  }
}

/** The part of the MQTT library's client that a box uses. */
export interface BrokerClient {
  readonly connected: boolean;
  readonly stream: unknown;
  on(event: 'message', listener: (topic: string, payload: Buffer, packet: { retain: boolean }) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'close', listener: () => void): unknown;
  once(event: 'connect' | 'close', listener: () => void): unknown;
  subscribeAsync(topics: string[], options: { qos: 1 }): Promise<{ qos: number }[]>;
  publishAsync(topic: string, payload: string, options: { qos: 1; retain: boolean }): Promise<unknown>;
  endAsync(): Promise<void>;
  end(force: true): unknown;
}

/** Settles once the broker has accepted the connection. */
export async function connected(client: BrokerClient): Promise<void> {
  await new Promise<void>((resolve) => client.once('connect', () => resolve()));
  // Without this, a message after an acknowledgement waits 40 ms for the peer's delayed ACK.
  if (client.stream instanceof Socket) client.stream.setNoDelay(true);
}

/** Subscribes with QoS 1. Returns why the broker did not grant it; undefined when it did. */
export async function refusedSubscription(client: BrokerClient, topics: string[]): Promise<unknown> {
  return client.subscribeAsync(topics, { qos: 1 }).then(
    (grants) => grants.find((grant) => grant.qos > 2),
    (error: unknown) => error,
  );
}

/**
 * Returns the failure of a connection, before or after the broker has accepted it. `refused` makes the error of a
 * refused login.
 */
export function brokerFailure(
  error: Error,
  { broker, accepted, refused }: { broker: string; accepted: boolean; refused: () => PayboxError },
): PayboxError {
  if (accepted) return lost(`${broker}: ${reasonOf(error)}`, error);
  if ('code' in error && REFUSED_LOGIN.includes(error.code)) return refused();
  return unreachable(broker, reasonOf(error), error);
}

export function unreachable(broker: string, reason: string, cause?: unknown): PayboxError {
  const fix = certificateFix(cause) ?? 'check link.url, and that the broker runs and can be reached';
  return new MissingPeerError(`${broker} cannot be reached: ${reason}`, fix, cause);
}
