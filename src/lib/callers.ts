import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv6, type Socket } from 'node:net';
import { keyOf, type Peer } from './connections.ts';
import { beginningOf } from './text.ts';

const PREFIX_MAX = { 4: 32, 6: 128 };
/** An entry of X-Forwarded-For; some proxies add the port. */
const HOP = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+|(.*))$/;

/** Whether a text is an IP address, or a network as `10.0.0.0/8`. All addresses together are no network. */
export function isNetwork(text: string): boolean {
  const [address = '', prefix = '1', ...more] = text.split('/');
  const version = isIP(address);
  if ((version !== 4 && version !== 6) || address.includes('%') || more.length > 0) return false;
  return /^[1-9]\d{0,2}$/.test(prefix) && Number(prefix) <= PREFIX_MAX[version];
}

/**
 * Knows who is at the other end of the connections to a server. A trusted proxy may say it: for a connection by a PROXY
 * header, for a request by X-Forwarded-For (PROTOCOL.md, clauses LIM-8 and LIM-9). Of all others the address counts from
 * which the connection comes.
 */
export class Callers {
  readonly #trusted = new BlockList();
  /** Callers named by PROXY headers, by the proxy's side of the connection: with TLS, a request has another socket. */
  readonly #named = new Map<string, { address: string }>();

  /** `trusted`: addresses and networks of proxies (see `isNetwork`). */
  constructor(trusted: readonly string[] = []) {
    for (const network of trusted) {
      const [address = '', prefix] = network.split('/');
      const family = isIPv6(address) ? 'ipv6' : 'ipv4';
      if (prefix === undefined) this.#trusted.addAddress(address, family);
      else this.#trusted.addSubnet(address, Number(prefix), family);
    }
  }

  /** Whether a proxy with this address may say who a caller is. */
  isTrusted(address = ''): boolean {
    return isIP(address) !== 0 && this.#trusted.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
  }

  /** Takes over whom a PROXY header has named, until the connection closes. */
  name(socket: Socket, address: string): void {
    const key = keyOf(socket);
    const named = { address };
    this.#named.set(key, named);
    socket.once('close', () => {
      if (this.#named.get(key) === named) this.#named.delete(key);
    });
  }

  /** The address of whoever opened this connection; '' for one that has ended. */
  ofConnection(peer: Peer): string {
    return this.#named.get(keyOf(peer))?.address ?? peer.remoteAddress ?? '';
  }

  /** The address of the caller of a request that a trusted proxy has passed on; `undefined` for any other request. */
  ofPassedOn({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): string | undefined {
    if (!this.isTrusted(socket.remoteAddress)) return undefined;
    let caller = this.ofConnection(socket);
    // Each proxy adds whom it has got the request from at the right. What is left of an untrusted one is its own words.
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
