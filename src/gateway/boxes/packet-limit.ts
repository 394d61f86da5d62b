import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { LIMITS } from '../../protocol/fields.ts';
import { UNREAD_BYTES_MAX } from '../listen.ts';

/** Room for topic and packet id, and in a login for last will, names and secret. */
const OVERHEAD_BYTES_MAX = 1024;
const PACKET_BYTES_MAX = LIMITS.messageBytesMax + OVERHEAD_BYTES_MAX;
/** MQTT's remaining length has at most four bytes of seven bits each. */
const LENGTH_BYTES_MAX = 4;

/** Finds the packets in a stream of MQTT bytes by their fixed headers (MQTT 3.1.1, section 2.2). */
class PacketMeter {
  #state: 'type' | 'length' | 'body' = 'type';
  #lengthBytes = 0;
  #remaining = 0;

  /** Whether every packet that begins in these bytes is short enough. */
  accepts(chunk: Buffer): boolean {
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
        if (this.#lengthBytes > LENGTH_BYTES_MAX || this.#remaining > PACKET_BYTES_MAX) return false;
        if (byte < 0x80) this.#state = this.#remaining === 0 ? 'type' : 'body';
      }
    }
    return true;
  }
}

/**
 * A box's socket with limits that the broker lacks. A packet over the limit ends it before the broker has collected the
 * packet (PROTOCOL.md, clause LIM-4). Writes never wait for a full socket, because the broker would then delay every
 * box. A box that leaves too much unread is disconnected instead.
 */
export class LimitedSocket extends Duplex {
  /** The underlying connection. */
  readonly socket: Socket;
  /** IP address of the caller, also if a proxy is between. */
  readonly address: string;

  constructor(socket: Socket, address = socket.remoteAddress ?? '') {
    super({ allowHalfOpen: false });
    this.socket = socket;
    this.address = address;
    const meter = new PacketMeter();
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => {
      if (!meter.accepts(chunk)) {
        this.destroy(new Error(`a packet is longer than ${PACKET_BYTES_MAX} bytes`));
      } else if (!this.push(chunk)) {
        socket.pause();
      }
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
    if (this.socket.writableLength <= UNREAD_BYTES_MAX) done();
    else done(new Error(`more than ${UNREAD_BYTES_MAX} bytes are unread`));
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.socket.destroy();
    done(error);
  }
}
