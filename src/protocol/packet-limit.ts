import type { Socket } from 'node:net';
import { Duplex, type Readable } from 'node:stream';
import { LIMITS } from './fields.ts';

/** URL schemes of MQTT brokers, over TCP and over WebSocket. */
export const BROKER_SCHEMES = {
  mqtt: { port: 1883, isTls: false },
  mqtts: { port: 8883, isTls: true },
  ws: { port: 80, isTls: false },
  wss: { port: 443, isTls: true },
} as const;

/** Room for topic and packet id, and in a login for last will, names and secret. */
const OVERHEAD_BYTES_MAX = 1024;
/** The largest MQTT packet of a box or a host, and of the gateway (PROTOCOL.md, clause LIM-4). */
export const PACKET_BYTES_MAX = LIMITS.messageBytesMax + OVERHEAD_BYTES_MAX;
/**
 * A client reads MQTT packets up to this size. It exceeds the limit of a message, so a slightly longer message is
 * refused without ending the connection.
 */
export const READ_PACKET_BYTES_MAX = 262_144;
/** A broker may put several packets into one WebSocket message, which is collected before its packets are read. */
const WEBSOCKET_MESSAGE_BYTES_MAX = 1_048_576;
/** MQTT's remaining length has at most four bytes of seven bits each. */
const LENGTH_BYTES_MAX = 4;

/** Options of the MQTT library for `ws:` and `wss:`: they end a connection at the head of a message that is too long. */
export const WEBSOCKET_LIMITS = { maxPayload: WEBSOCKET_MESSAGE_BYTES_MAX };

export const PACKET_TOO_LONG = 'PACKET_TOO_LONG';

/** The peer has begun to send a packet that is too long. */
class PacketTooLong extends Error {
  /** The MQTT library reports only errors with a code. */
  readonly code = PACKET_TOO_LONG;

  /** `bytes` is undefined if the length itself is malformed. */
  constructor(bytes: number | undefined, bytesMax: number) {
    const what = bytes === undefined ? 'a packet of no legal length' : `a packet of ${bytes} bytes`;
    super(`${what} is refused at its head: at most ${bytesMax} bytes are taken`);
  }
}

/** Finds the packets in a stream of MQTT bytes by their fixed headers (MQTT 3.1.1, section 2.2). */
class PacketMeter {
  readonly #bytesMax: number;
  #state: 'type' | 'length' | 'body' = 'type';
  #lengthBytes = 0;
  #remaining = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Reads these bytes; returns the error of a packet that begins in them and is too long. */
  problemIn(chunk: Buffer): PacketTooLong | undefined {
    let at = 0;
    while (at < chunk.length) {
      if (this.#state === 'body') {
        const taken = Math.min(this.#remaining, chunk.length - at);
        this.#remaining -= taken;
        at += taken;
        if (this.#remaining === 0) this.#state = 'type';
      } else if (this.#state === 'type') {
        this.#state = 'length';
        this.#lengthBytes = 0;
        this.#remaining = 0;
        at += 1;
      } else {
        const byte = chunk[at] ?? 0;
        this.#remaining += (byte & 0x7f) * 128 ** this.#lengthBytes;
        this.#lengthBytes += 1;
        at += 1;
        const isLast = byte < 0x80 || this.#lengthBytes >= LENGTH_BYTES_MAX;
        if (isLast && byte >= 0x80) return new PacketTooLong(undefined, this.#bytesMax);
        if (isLast && this.#remaining > this.#bytesMax) return new PacketTooLong(this.#remaining, this.#bytesMax);
        if (isLast) this.#state = this.#remaining === 0 ? 'type' : 'body';
      }
    }
    return undefined;
  }
}

/**
 * Destroys the stream of a client with an error of code PACKET_TOO_LONG at the head of a packet that is too long. The
 * client's parser would collect the whole packet. Call it before the first byte: a peer may send before it has accepted
 * the login.
 */
export function limitPackets(stream: Readable): void {
  const meter = new PacketMeter(READ_PACKET_BYTES_MAX);
  stream.prependListener('data', (chunk: Buffer) => {
    const problem = meter.problemIn(chunk);
    if (problem !== undefined) stream.destroy(problem);
  });
}

/**
 * Has `read()` give all bytes that have arrived, as it did before Node 26, which gives one chunk: the library of the
 * broker reads once for each event, and would leave the rest of a packet until the next one arrives.
 */
export function readWhole<Stream extends Readable>(stream: Stream): Stream {
  const readChunk = stream.read.bind(stream);
  stream.read = (bytes) => {
    const chunks: Buffer[] = [];
    for (let chunk = readChunk(bytes); chunk !== null; chunk = readChunk()) {
      chunks.push(chunk);
      if (bytes !== undefined && bytes !== null) break;
    }
    return chunks.length > 1 ? Buffer.concat(chunks) : (chunks[0] ?? null);
  };
  return stream;
}

export interface SocketLimits {
  packetBytesMax: number;
  unreadBytesMax: number;
  /** IP address of the caller if a proxy is between. */
  address?: string;
}

/**
 * Wraps the socket of a client of a broker in this process, with limits that the broker lacks. A packet over the limit
 * ends it before the broker has collected the packet (PROTOCOL.md, clause LIM-4). Writes never wait for a full socket,
 * because the broker would then delay every client. A client that leaves too much unread is disconnected instead.
 */
export class LimitedSocket extends Duplex {
  /** The underlying connection. */
  readonly socket: Socket;
  /** IP address of the caller, also if a proxy is between. */
  readonly address: string;
  readonly #unreadBytesMax: number;

  constructor(socket: Socket, { packetBytesMax, unreadBytesMax, address = socket.remoteAddress ?? '' }: SocketLimits) {
    super({ allowHalfOpen: false });
    this.socket = socket;
    this.address = address;
    this.#unreadBytesMax = unreadBytesMax;
    const meter = new PacketMeter(packetBytesMax);
    readWhole(this);
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => {
      const problem = meter.problemIn(chunk);
      if (problem !== undefined) this.destroy(problem);
      else if (!this.push(chunk)) socket.pause();
    });
    socket.on('end', () => this.push(null));
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
  }

  override _read(): void {
    this.socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#pass(chunk, done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#pass(Buffer.concat(chunks.map((it) => it.chunk)), done);
  }

  #pass(bytes: Buffer, done: (error?: Error | null) => void): void {
    this.socket.write(bytes);
    if (this.socket.writableLength <= this.#unreadBytesMax) done();
    else done(new Error(`more than ${this.#unreadBytesMax} bytes are unread`));
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.socket.destroy();
    done(error);
  }
}
