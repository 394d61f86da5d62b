import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { isIPv6 } from 'node:net';

/**
 * States of a connection, in the order of eviction. `mute`: the server has not answered a request on it yet. `idle`: no
 * request is open. `active`: the server is answering a request, or the client is logged in.
 */
const EVICTION_ORDER = ['mute', 'idle', 'active'] as const;
export type ConnectionState = (typeof EVICTION_ORDER)[number];

/** These weights find the address with most connections. Active ones count less, because they are in use. */
const WEIGHTS: Readonly<Record<ConnectionState, number>> = { mute: 4, idle: 4, active: 1 };

interface Network {
  readonly name: string;
  weight: number;
  /** Each set is ordered from the oldest to the newest. */
  readonly places: Readonly<Record<ConnectionState, Set<Place>>>;
}

interface Place {
  readonly socket: Socket;
  readonly key: string;
  network: Network;
  state: ConnectionState;
}

export interface Peer {
  remoteAddress?: string | undefined;
  remotePort?: number | undefined;
}

/** The headers of a request, with their names in small letters. */
export interface RequestHead {
  headers: IncomingHttpHeaders;
}

/** A request's headers, and the connection that it came over. */
export interface RequestOrigin extends RequestHead {
  socket: Socket;
}

/**
 * Limits a server to `max` connections. When all are in use, a new connection replaces one of the address with the
 * highest weight (a /64 of IPv6 counts as one address): its oldest mute one, else idle, else active (PROTOCOL.md,
 * clause LIM-6). The cost of adding does not grow with the number of connections.
 */
export class Connections {
  readonly #max: number;
  /** Finds a connection by the peer's address and port. With TLS, a request has another socket than its connection. */
  readonly #places = new Map<string, Place>();
  readonly #networks = new Map<string, Network>();
  readonly #byWeight = new Map<number, Set<Network>>();
  #mostWeight = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /**
   * Adds a connection as mute, until it closes, and evicts another one when full. Behind a proxy, `address` is the
   * caller's.
   */
  add(socket: Socket, address = socket.remoteAddress): void {
    if (socket.remoteAddress === undefined || address === undefined) {
      // The connection has already ended.
      socket.destroy();
      return;
    }
    const key = keyOf(socket);
    const former = this.#places.get(key);
    if (former !== undefined) this.#remove(former);
    if (this.#places.size >= this.#max) this.#cutOne();
    const place: Place = { socket, key, network: this.#network(address), state: 'mute' };
    this.#places.set(key, place);
    this.#enter(place);
    socket.once('close', () => this.#remove(place));
  }

  /** Sets the state of this peer's connection; ignores unknown peers. */
  setState(peer: Peer, state: ConnectionState): void {
    const place = this.#places.get(keyOf(peer));
    if (place === undefined || place.state === state) return;
    const { network, state: before } = place;
    network.places[before].delete(place);
    network.places[state].add(place);
    place.state = state;
    this.#weigh(network, WEIGHTS[state] - WEIGHTS[before]);
  }

  /** Counts this peer's connection for another address, because it now carries a request from there. */
  setAddress(peer: Peer, address: string): void {
    const place = this.#places.get(keyOf(peer));
    if (place === undefined || place.network.name === networkOf(address)) return;
    this.#leave(place);
    place.network = this.#network(address);
    this.#enter(place);
  }

  /** Closes all connections. */
  end(): void {
    for (const { socket } of this.#places.values()) socket.destroy();
  }

  #cutOne(): void {
    const [network] = this.#byWeight.get(this.#mostWeight) ?? [];
    const found = EVICTION_ORDER.find((it) => (network?.places[it].size ?? 0) > 0);
    const [oldest] = (found && network?.places[found]) ?? [];
    if (oldest === undefined) return;
    this.#remove(oldest);
    oldest.socket.destroy();
  }

  #remove(place: Place): void {
    if (this.#places.get(place.key) !== place) return;
    this.#places.delete(place.key);
    this.#leave(place);
  }

  #enter(place: Place): void {
    place.network.places[place.state].add(place);
    this.#weigh(place.network, WEIGHTS[place.state]);
  }

  #leave(place: Place): void {
    const { network, state } = place;
    network.places[state].delete(place);
    this.#weigh(network, -WEIGHTS[state]);
    if (network.weight === 0) this.#networks.delete(network.name);
  }

  #network(address: string): Network {
    const name = networkOf(address);
    const known = this.#networks.get(name);
    if (known !== undefined) return known;
    const network = {
      name,
      weight: 0,
      places: { mute: new Set<Place>(), idle: new Set<Place>(), active: new Set<Place>() },
    };
    this.#networks.set(name, network);
    return network;
  }

  #weigh(network: Network, by: number): void {
    const before = this.#byWeight.get(network.weight);
    before?.delete(network);
    if (before?.size === 0) this.#byWeight.delete(network.weight);
    network.weight += by;
    if (network.weight > 0) {
      const same = this.#byWeight.get(network.weight) ?? new Set();
      this.#byWeight.set(network.weight, same.add(network));
    }
    this.#mostWeight = Math.max(this.#mostWeight, network.weight);
    // The maximum drops only by a few each time, so this loop is short.
    while (this.#mostWeight > 0 && !this.#byWeight.has(this.#mostWeight)) this.#mostWeight -= 1;
  }
}

/** Names a connection by the address and port of its peer. */
export function keyOf({ remoteAddress, remotePort }: Peer): string {
  return `${remoteAddress} ${remotePort}`;
}

/**
 * Returns the key that groups addresses: the address itself, or its /64 for IPv6, which usually belongs to one client.
 * An IPv4 address written as IPv6 has the key of the IPv4 address.
 */
export function networkOf(address: string): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !isIPv6(address)) return mapped ?? address;
  const [head = '', tail] = address.split('%', 1)[0]?.split('::') ?? [];
  const groups = (text: string | undefined) => (text ? text.split(':') : []);
  const missing = tail === undefined ? 0 : Math.max(0, 8 - groups(head).length - groups(tail).length);
  const all = [...groups(head), ...Array<string>(missing).fill('0'), ...groups(tail)];
  return `${all
    .slice(0, 4)
    .map((it) => Number.parseInt(it, 16).toString(16))
    .join(':')}::/64`;
}
