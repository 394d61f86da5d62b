import { type Server, type Socket, SocketAddress } from 'node:net';
import type { Callers } from './callers.ts';
import type { Clock } from './clock.ts';
import { reasonOf } from './errors.ts';
import type { Logger } from './log.ts';

/*
 * Implements the PROXY protocol, version 2 (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt, section 2.2).
 * A proxy sends a header with its caller's address before the first forwarded byte. No library among the dependencies
 * reads it.
 */

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
/** The head consists of signature, version and command, family, and length. */
const HEAD_BYTES = 16;
/** No header is longer, even with the fields after the addresses, such as the name in a client's certificate. */
const HEADER_BYTES_MAX = 4_096;
/** Version 2: the proxy opened the connection for itself, for example as a health check. */
const LOCAL = 0x20;
/** Version 2: the proxy forwards a connection from the source address. */
const PROXY = 0x21;
/** Gives the length of the source address, and of both addresses with both ports, by family and protocol. */
const FAMILIES: ReadonlyMap<number, { sourceBytes: number; bytes: number }> = new Map([
  [0x11, { sourceBytes: 4, bytes: 12 }],
  [0x21, { sourceBytes: 16, bytes: 36 }],
]);
/** The header must be complete within this time. */
const HEADER_TIMEOUT_MS = 5_000;
/** At most this many connections may still be sending their header. */
const WAITING_MAX = 1_024;

export interface ProxyHeader {
  /** The length of the header. The bytes after it belong to the server. */
  bytes: number;
  /** The address of the caller; `undefined` if the proxy opened the connection for itself. */
  caller: string | undefined;
}

/**
 * Reads the header at the beginning of the received bytes; returns `undefined` while it is incomplete. Throws for
 * anything else.
 */
export function readProxyHeader(received: Buffer): ProxyHeader | undefined {
  const known = Math.min(received.length, SIGNATURE.length);
  if (!received.subarray(0, known).equals(SIGNATURE.subarray(0, known))) {
    throw new Error('expected the signature of the PROXY protocol, version 2');
  }
  if (received.length < HEAD_BYTES) return undefined;
  const [command, family] = [received.readUInt8(12), received.readUInt8(13)];
  const bytes = HEAD_BYTES + received.readUInt16BE(14);
  if (bytes > HEADER_BYTES_MAX) throw new Error(`expected a header of at most ${HEADER_BYTES_MAX} bytes, not ${bytes}`);
  if (command === LOCAL) return received.length < bytes ? undefined : { bytes, caller: undefined };
  if (command !== PROXY) throw new Error(`expected the command LOCAL or PROXY of version 2, not ${hex(command)}`);
  const addresses = FAMILIES.get(family);
  if (addresses === undefined) throw new Error(`expected TCP over IPv4 or IPv6, not ${hex(family)}`);
  if (bytes < HEAD_BYTES + addresses.bytes) throw new Error('expected a length with room for the addresses');
  if (received.length < bytes) return undefined;
  return { bytes, caller: addressText(received.subarray(HEAD_BYTES, HEAD_BYTES + addresses.sourceBytes)) };
}

function addressText(address: Buffer): string {
  if (address.length === 4) return address.join('.');
  const groups = address.toString('hex').match(/.{4}/g) ?? [];
  return new SocketAddress({ address: groups.join(':'), family: 'ipv6' }).address;
}

function hex(byte: number): string {
  return `0x${byte.toString(16).padStart(2, '0')}`;
}

/**
 * Makes a server read the PROXY header of each connection of a trusted proxy before any other listener sees the
 * connection. It closes a connection of such a proxy without a header (PROTOCOL.md, clause LIM-9) and leaves those of
 * other peers alone. Call it once all other listeners of the server are there. `option` is the server's name in the
 * log. Returns a function that closes the connections whose header is incomplete.
 */
export function acceptProxyHeaders(
  server: Server,
  option: string,
  { callers, clock, log }: { callers: Callers; clock: Clock; log: Logger },
): () => void {
  const listeners = server.listeners('connection');
  const waiting = new Set<Socket>();
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const accept = () => {
      for (const listener of listeners) listener.call(server, socket);
    };
    const { remoteAddress: address } = socket;
    const refuse = (reason: string) => {
      log.warn('proxy-header-refused', { address, option, reason });
      socket.destroy();
    };
    if (!callers.isTrusted(address)) accept();
    else if (waiting.size >= WAITING_MAX) refuse(`the headers of ${WAITING_MAX} other connections are still to come`);
    else {
      waiting.add(socket);
      awaitHeader(socket, clock, (read) => {
        waiting.delete(socket);
        if (read === undefined) socket.destroy();
        else if (typeof read === 'string') refuse(read);
        else {
          if (read.caller !== undefined) callers.name(socket, read.caller);
          accept();
        }
      });
    }
  });
  return () => {
    for (const socket of waiting) socket.destroy();
  };
}

/**
 * Calls `settle` once: with the header, with the reason why there is none, or with `undefined` if the peer left without
 * sending a byte. The bytes after the header stay in the socket.
 */
function awaitHeader(socket: Socket, clock: Clock, settle: (read: ProxyHeader | string | undefined) => void): void {
  const over = new AbortController();
  let received: Buffer = Buffer.alloc(0);
  const end = (read: ProxyHeader | string | undefined) => {
    if (over.signal.aborted) return;
    over.abort('over');
    for (const [event, listener] of Object.entries(listeners)) socket.off(event, listener);
    settle(read);
  };
  const listeners = {
    readable: () => {
      for (let chunk = socket.read(); chunk !== null; chunk = socket.read())
        received = Buffer.concat([received, chunk]);
      try {
        const header = readProxyHeader(received);
        if (header === undefined) return;
        const rest = received.subarray(header.bytes);
        if (rest.length > 0) socket.unshift(rest);
        end(header);
      } catch (error) {
        end(reasonOf(error));
      }
    },
    end: () => end(received.length === 0 ? undefined : 'it ended in the middle of the header'),
    error: () => end(undefined),
    close: () => end(undefined),
  };
  for (const [event, listener] of Object.entries(listeners)) socket.on(event, listener);
  void clock
    .sleep(HEADER_TIMEOUT_MS, over.signal)
    .then(() => end(`it was not complete within ${HEADER_TIMEOUT_MS} ms`));
}
