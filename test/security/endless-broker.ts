import { createHash } from 'node:crypto';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { generate, type Packet, parser } from 'mqtt-packet';
import { onTestFinished } from 'vitest';

/** As the packet of the fault: what a peer that collects it would have in memory. */
const PACKET_BYTES = 250_000_000;
const CHUNK = Buffer.alloc(65_536, 'x');
/** The key of RFC 6455, section 1.3. */
const WEBSOCKET_KEY = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

export interface Attack {
  scheme: 'mqtt' | 'ws';
  /** Sent instead of a CONNACK, or after a subscription was granted. */
  when: 'before it accepts the login' | 'after it has accepted the login';
  /** Only the head of a packet, or bytes behind it for as long as the peer takes them; or a frame of WebSocket. */
  what: 'the head of a packet' | 'a packet without end' | 'the head of a frame';
}

interface Victim {
  isClosed: boolean;
  /** Bytes of the attack that the system has taken. */
  bytes: number;
}

/** The head of a PUBLISH with this remaining length (MQTT 3.1.1, section 2.2.3). */
function headOf(length: number): Buffer {
  const bytes = [0x30];
  for (let left = length; left > 0; left = Math.floor(left / 128)) bytes.push((left % 128) | (left >= 128 ? 0x80 : 0));
  return Buffer.from(bytes);
}

function frameHead(length: number): Buffer {
  const head = Buffer.alloc(10);
  head.writeUInt16BE(0x827f);
  head.writeBigUInt64BE(BigInt(length), 2);
  return head;
}

/** A broker that sends a packet of 250 MB. It speaks MQTT over TCP, or over WebSocket. */
export async function endlessBroker({ scheme, when, what }: Attack): Promise<{ url: string; victims: Victim[] }> {
  const victims: Victim[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    const victim: Victim = { isClosed: false, bytes: 0 };
    victims.push(victim);
    socket.on('error', () => undefined);
    socket.once('close', () => {
      victim.isClosed = true;
    });
    const send = (bytes: Buffer) =>
      socket.write(scheme === 'ws' ? Buffer.concat([frameHead(bytes.length), bytes]) : bytes);
    const attack = () => {
      const head = what === 'the head of a frame' ? frameHead(PACKET_BYTES) : headOf(PACKET_BYTES);
      const done = (error?: Error | null) => {
        if (error || socket.destroyed) return;
        victim.bytes += CHUNK.length;
        socket.write(scheme === 'ws' ? Buffer.concat([frameHead(CHUNK.length), CHUNK]) : CHUNK, done);
      };
      if (what === 'the head of a frame') socket.write(head);
      else send(head);
      if (what === 'a packet without end') socket.write(CHUNK, done);
    };
    const packets = parser();
    let version: 4 | 5 = 4;
    packets.on('packet', (packet) => {
      if (packet.cmd === 'connect') {
        version = packet.protocolVersion === 5 ? 5 : 4;
        const accepted: Packet = { cmd: 'connack', returnCode: 0, reasonCode: 0, sessionPresent: false };
        if (when === 'before it accepts the login') attack();
        else send(generate(accepted, { protocolVersion: version }));
      } else if (packet.cmd === 'subscribe') {
        const granted = packet.subscriptions.map(() => 1 as const);
        send(generate({ cmd: 'suback', messageId: packet.messageId ?? 1, granted }, { protocolVersion: version }));
        attack();
      }
    });
    if (scheme === 'ws') upgrade(socket, (bytes) => packets.parse(bytes));
    else socket.on('data', (bytes: Buffer) => packets.parse(bytes));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`, victims };
}

/** Answers the handshake of a WebSocket, and reads the short frames of a client. */
function upgrade(socket: Socket, read: (bytes: Buffer) => void): void {
  let unread = Buffer.alloc(0);
  let isOpen = false;
  socket.on('data', (bytes: Buffer) => {
    unread = Buffer.concat([unread, bytes]);
    if (!isOpen) {
      const end = unread.indexOf('\r\n\r\n');
      if (end < 0) return;
      const key = /sec-websocket-key: *(\S+)/i.exec(unread.toString('latin1'))?.[1] ?? '';
      const accept = createHash('sha1').update(`${key}${WEBSOCKET_KEY}`).digest('base64');
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n`,
      );
      unread = unread.subarray(end + 4);
      isOpen = true;
    }
    for (let frame = frameIn(unread); frame !== undefined; frame = frameIn(unread)) {
      unread = unread.subarray(frame.end);
      read(frame.payload);
    }
  });
}

/** The first frame of a client, unmasked, if all of it is there (RFC 6455, section 5.2). */
function frameIn(bytes: Buffer): { payload: Buffer; end: number } | undefined {
  if (bytes.length < 4) return undefined;
  const short = (bytes[1] ?? 0) & 0x7f;
  const maskAt = short === 126 ? 4 : 2;
  const end = maskAt + 4 + (short === 126 ? bytes.readUInt16BE(2) : short);
  if (bytes.length < end) return undefined;
  const mask = bytes.subarray(maskAt, maskAt + 4);
  const payload = Buffer.from(bytes.subarray(maskAt + 4, end).map((byte, at) => byte ^ (mask[at % 4] ?? 0)));
  return { payload, end };
}
