import { BlockList, isIP, isIPv6, type Socket } from 'node:net';
import { keyOf, type Peer, type RequestOrigin } from './connections.ts';
import { beginningOf } from './text.ts';

const PREFIX_MAX = { 4: 32, 6: 128 };
/** Matches one entry of X-Forwarded-For. Some proxies add the port. */
const HOP = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+|(.*))$/;

/**
 * Returns whether a text is an IP address, or a network such as `10.0.0.0/8`. A network of all addresses is refused.
 */
export function isNetwork(text: string): boolean {
  const [address = '', prefix = '1', ...more] = text.split('/');
  const version = isIP(address);
  if ((version !== 4 && version !== 6) || address.includes('%') || more.length > 0) return false;
  return /^[1-9]\d{0,2}$/.test(prefix) && Number(prefix) <= PREFIX_MAX[version];
}

/**
 * Finds the real address of a caller. A trusted proxy names it: by a PROXY header for a connection, by X-Forwarded-For
 * for a request (PROTOCOL.md, clauses LIM-8 and LIM-9). For every other peer, the address of its connection counts.
 */
export class Callers {
  readonly #trusted = new BlockList();
  /**
   * Maps the proxy's side of a connection to the caller that its PROXY header named. With TLS a request has another
   * socket, so the socket itself cannot be the key.
   */
  readonly #named = new Map<string, { address: string }>();

  /** `trusted` lists addresses and networks of proxies (see `isNetwork`). */
  constructor(trusted: readonly string[] = []) {
    for (const network of trusted) {
      const [address = '', prefix] = network.split('/');
      const family = isIPv6(address) ? 'ipv6' : 'ipv4';
      if (prefix === undefined) this.#trusted.addAddress(address, family);
      else this.#trusted.addSubnet(address, Number(prefix), family);
    }
  }

  /** Returns whether a proxy with this address may name its callers. */
  isTrusted(address = ''): boolean {
    return isIP(address) !== 0 && this.#trusted.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
  }

  /** Stores the caller that a PROXY header named, until the connection closes. */
  name(socket: Socket, address: string): void {
    const key = keyOf(socket);
    const named = { address };
    this.#named.set(key, named);
    socket.once('close', () => {
      if (this.#named.get(key) === named) this.#named.delete(key);
    });
  }

  /** Returns the address of the peer that opened this connection; '' after the connection has ended. */
  ofConnection(peer: Peer): string {
    return this.#named.get(keyOf(peer))?.address ?? peer.remoteAddress ?? '';
  }

  /** Returns the caller of a request that a trusted proxy forwarded; `undefined` for every other request. */
  ofPassedOn({ socket, headers }: RequestOrigin): string | undefined {
    if (!this.isTrusted(socket.remoteAddress)) return undefined;
    let caller = this.ofConnection(socket);
    // Each proxy appends its own caller at the right. Everything left of an untrusted address was written by that
    // caller.
    for (const hop of [headers['x-forwarded-for'] ?? ''].flat().join().split(',').reverse()) {
      const [, bracketed, withPort, plain] = HOP.exec(hop.trim()) ?? [];
      const address = bracketed ?? withPort ?? plain ?? '';
      if (!this.isTrusted(caller) || isIP(address) === 0) break;
      // A slice would keep the whole header in memory for as long as the address is counted.
      caller = beginningOf(address, address.length);
    }
    return caller;
  }
}
