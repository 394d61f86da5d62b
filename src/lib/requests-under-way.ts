import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ClientRequest } from 'node:http';

/** Node publishes each HTTP request of this process on this channel. */
const CREATED = 'http.client.request.created';

/** Tracks the requests of this process to one host that have no answer yet. */
export class RequestsUnderWay {
  readonly #host: string;
  #count = 0;
  readonly #add = (message: unknown) => {
    const { request } = message as { request: ClientRequest };
    if (request.getHeader('host') !== this.#host) return;
    this.#count += 1;
    request.once('close', () => {
      this.#count -= 1;
    });
  };

  /** `host` is as in a URL, with its port unless it is the default one. */
  constructor(host: string) {
    this.#host = host;
    subscribe(CREATED, this.#add);
  }

  get isAny(): boolean {
    return this.#count > 0;
  }

  /** Stops counting. */
  close(): void {
    unsubscribe(CREATED, this.#add);
  }
}
