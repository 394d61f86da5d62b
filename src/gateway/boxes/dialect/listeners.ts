import type { Socket } from 'node:net';
import type { Aedes, Client } from 'aedes';
import { LimitedSocket } from '../../../protocol/packet-limit.ts';
import { boxOf } from '../broker-rights.ts';

/**
 * Records which topics have listeners at the embedded broker. The shared login does not identify a box: only a
 * subscription to its topic shows that it is there (PROTOCOL.md, clause VQD-5).
 */
export class Listeners {
  readonly #byTopic = new Map<string, Set<Client>>();
  readonly #topicsOf = new Map<Client, Set<string>>();
  readonly #username: string;
  readonly #onChange: (topic: string, socket: Socket | undefined) => void;

  /**
   * Follows the clients of one login. `onChange` is called with the socket of each new listener, and without one when a
   * topic has lost its last listener.
   */
  constructor(username: string, onChange: (topic: string, socket: Socket | undefined) => void) {
    this.#username = username;
    this.#onChange = onChange;
  }

  isListening(topic: string): boolean {
    return [...(this.#byTopic.get(topic) ?? [])].some((it) => !it.closed);
  }

  /** Follows the subscriptions at a broker until its end. A broker that replaces it is watched too. */
  watch(aedes: Aedes): void {
    aedes.on('subscribe', (subscriptions, client) => {
      if (boxOf(client) !== this.#username || !(client.conn instanceof LimitedSocket)) return;
      // A refused subscription has QoS 128.
      for (const { topic, qos } of subscriptions) if (qos <= 2) this.#add(topic, client, client.conn.socket);
    });
    aedes.on('unsubscribe', (topics, client) => {
      for (const topic of topics) this.#remove(topic, client);
    });
    aedes.on('clientDisconnect', (client) => {
      for (const topic of this.#topicsOf.get(client) ?? []) this.#remove(topic, client);
      this.#topicsOf.delete(client);
    });
  }

  #add(topic: string, client: Client, socket: Socket): void {
    // Clients of a stopped broker do not say goodbye.
    const clients = new Set([...(this.#byTopic.get(topic) ?? [])].filter((it) => !it.closed));
    this.#byTopic.set(topic, clients.add(client));
    this.#topicsOf.set(client, (this.#topicsOf.get(client) ?? new Set()).add(topic));
    this.#onChange(topic, socket);
  }

  #remove(topic: string, client: Client): void {
    const clients = this.#byTopic.get(topic);
    clients?.delete(client);
    if (this.isListening(topic)) return;
    this.#byTopic.delete(topic);
    if (clients !== undefined) this.#onChange(topic, undefined);
  }
}
