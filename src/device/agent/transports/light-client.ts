import { EventEmitter } from 'node:events';
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { IClientOptions } from 'mqtt';
import { generate, type Packet, parser, writeToStream } from 'mqtt-packet';
import type { Clock } from '../../../lib/clock.ts';
import { ConfigError } from '../../../lib/errors.ts';
import { isTlsUrl } from '../../../lib/tls.ts';
import { BROKER_SCHEMES, limitPackets } from '../../../protocol/packet-limit.ts';
import type { GatewayAddress } from '../contract.ts';
import type { BrokerClient } from './broker.ts';
import { connectionTls } from './tls.ts';

const PACKET_ID_MAX = 65_535;
const ID_AND_QOS = { qos: 1, dup: false } as const;

// The library's cache of all 16-bit numbers needs 10 MB and 60 ms of processor time.
Object.assign(writeToStream, { cacheNumbers: false });

const TICK_MS = 1_000;
/**
 * These are shares of the keepalive. After the first without a byte in one direction the client pings. After the second
 * the broker counts as lost.
 */
const ASK_AFTER = 0.75;
const LOST_AFTER = 1.5;

/** Owns the clients of many boxes, with one watch over their keepalives. */
export class LightClients {
  readonly #open = new Set<LightClient>();
  readonly #closing = new AbortController();

  constructor(clock: Clock) {
    void this.#watch(clock);
  }

  /** Begins to connect. Throws ConfigError for an address other than `mqtt://` and `mqtts://`. */
  readonly connect = (at: GatewayAddress, options: IClientOptions): LightClient => {
    if (!/^mqtts?:/.test(at.url)) throw new ConfigError(`${at.url}: light boxes need an mqtt:// or mqtts:// address`);
    const client = new LightClient(at, options);
    this.#open.add(client);
    client.once('close', () => this.#open.delete(client));
    return client;
  };

  /** Ends the watch. The clients end with their boxes. */
  close(): void {
    this.#closing.abort();
  }

  async #watch(clock: Clock): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await clock.sleep(TICK_MS, signal);
      for (const client of this.#open) client.tick(clock.monotonicMs());
    }
  }
}

/** Waits for the answer to one packet. */
interface Waiting {
  resolve(granted: { qos: number }[]): void;
  reject(error: Error): void;
}

/**
 * Speaks MQTT 3.1.1 for thousands of boxes in one process: QoS 1 and clean sessions only, and it never reconnects.
 * LightClients makes it. It emits the events of the library's client (see BrokerClient).
 */
class LightClient extends EventEmitter implements BrokerClient {
  readonly stream: Socket;
  connected = false;
  readonly #parser = parser({ protocolVersion: 4 });
  readonly #waiting = new Map<number, Waiting>();
  readonly #keepaliveMs: number;
  readonly #read = { bytes: 0, atMs: 0 };
  readonly #written = { bytes: 0, atMs: 0 };
  #packetId = 0;
  #isAsked = false;

  constructor(at: GatewayAddress, options: IClientOptions) {
    super();
    const { hostname, port } = new URL(at.url);
    const host = hostname.replace(/^\[|\]$/g, '');
    const { clientId = '', username = '', password = '', keepalive = 0, will } = options;
    // TLS has no name for an IP address (RFC 6066), so Node checks the certificate against `host`.
    const named = isIP(host) === 0 ? { servername: host } : {};
    this.stream = isTlsUrl(at.url, BROKER_SCHEMES)
      ? connectTls({ host, port: Number(port) || BROKER_SCHEMES.mqtts.port, ...named, ...connectionTls(at) })
      : connectPlain(Number(port) || BROKER_SCHEMES.mqtt.port, host);
    const { stream } = this;
    stream.setNoDelay(true);
    this.#keepaliveMs = keepalive * 1000;
    stream.on('data', (chunk) => this.#parser.parse(chunk));
    limitPackets(stream);
    stream.on('error', (error) => this.emit('error', error));
    stream.on('close', () => this.#closed());
    this.#parser.on('packet', (packet) => this.#take(packet));
    this.#parser.on('error', (error) => stream.destroy(error));
    const login = { username, password: Buffer.from(String(password)) };
    this.#write({
      cmd: 'connect',
      clientId,
      protocolVersion: 4,
      protocolId: 'MQTT',
      clean: true,
      keepalive,
      ...login,
      ...(will && { will }),
    });
  }

  /** Pings a silent broker, and ends the connection of one that does not answer. Its owner calls it every second. */
  tick(nowMs: number): void {
    const { bytesRead, bytesWritten } = this.stream;
    if (noted(this.#read, bytesRead, nowMs)) this.#isAsked = false;
    noted(this.#written, bytesWritten, nowMs);
    if (!this.connected || this.#keepaliveMs === 0) return;
    const silentMs = nowMs - this.#read.atMs;
    const quietMs = Math.max(silentMs, nowMs - this.#written.atMs);
    if (silentMs >= LOST_AFTER * this.#keepaliveMs - TICK_MS) {
      this.stream.destroy(new Error('the broker does not answer a ping'));
    } else if (quietMs >= ASK_AFTER * this.#keepaliveMs && !this.#isAsked) {
      this.#isAsked = true;
      this.#write({ cmd: 'pingreq' });
    }
  }

  async subscribeAsync(topics: string[], { qos }: { qos: 1 }): Promise<{ qos: number }[]> {
    return this.#answered((messageId) => ({
      cmd: 'subscribe',
      messageId,
      subscriptions: topics.map((topic) => ({ topic, qos })),
    }));
  }

  async publishAsync(topic: string, payload: string, { retain }: { qos: 1; retain: boolean }): Promise<void> {
    await this.#answered((messageId) => ({ cmd: 'publish', messageId, topic, payload, retain, ...ID_AND_QOS }));
  }

  async endAsync(): Promise<void> {
    this.#write({ cmd: 'disconnect' });
    await new Promise<void>((resolve) => this.stream.end(resolve));
  }

  end(_force: true): void {
    this.stream.destroy();
  }

  #write(packet: Packet): void {
    if (!this.stream.destroyed) this.stream.write(generate(packet));
  }

  /** Sends a packet with a free number, and settles with its answer. */
  #answered(packetOf: (messageId: number) => Packet): Promise<{ qos: number }[]> {
    do this.#packetId = (this.#packetId % PACKET_ID_MAX) + 1;
    while (this.#waiting.has(this.#packetId));
    const messageId = this.#packetId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(messageId, { resolve, reject });
      this.#write(packetOf(messageId));
    });
  }

  #take(packet: Packet): void {
    switch (packet.cmd) {
      case 'connack':
        this.#accepted(packet.returnCode ?? 0);
        break;
      case 'publish':
        if (packet.qos > 0 && packet.messageId !== undefined)
          this.#write({ cmd: 'puback', messageId: packet.messageId });
        this.emit('message', packet.topic, Buffer.from(packet.payload), packet);
        break;
      case 'suback':
        this.#settle(
          packet.messageId,
          packet.granted.map((it) => ({ qos: Number(it) })),
        );
        break;
      case 'puback':
        this.#settle(packet.messageId, []);
        break;
    }
  }

  #accepted(returnCode: number): void {
    this.connected = returnCode === 0;
    if (this.connected) this.emit('connect');
    else
      this.stream.destroy(
        Object.assign(new Error(`connection refused: return code ${returnCode}`), { code: returnCode }),
      );
  }

  #settle(messageId: number | undefined, granted: { qos: number }[]): void {
    if (messageId === undefined) return;
    this.#waiting.get(messageId)?.resolve(granted);
    this.#waiting.delete(messageId);
  }

  #closed(): void {
    this.connected = false;
    for (const { reject } of this.#waiting.values()) reject(new Error('the connection is closed'));
    this.#waiting.clear();
    this.emit('close');
  }
}

/** Records whether a count of bytes has changed. Returns whether it has. */
function noted(last: { bytes: number; atMs: number }, bytes: number, nowMs: number): boolean {
  if (last.bytes === bytes) return false;
  last.bytes = bytes;
  last.atMs = nowMs;
  return true;
}
