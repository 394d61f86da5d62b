import type { Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Store } from './store.ts';

const INTERVAL_MS = 3_600_000;
/** Between two batches, for whatever else there is to do. */
const PAUSE_MS = 50;

export interface PrunerDeps {
  store: Store;
  clock: Clock;
  log: Logger;
}

/** Keeps the store within its limits: at the start and every hour, beside the work. */
export class Pruner {
  readonly #deps: PrunerDeps;
  readonly #closing = new AbortController();
  #pruning: Promise<void> = Promise.resolve();

  constructor(deps: PrunerDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#pruning = this.#run();
  }

  /** Settles once the batch in hand is done. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#pruning;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#deps;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        await this.#prune();
      } catch (error) {
        log.error('store-not-pruned', { reason: reasonOf(error) });
      }
      await clock.sleep(INTERVAL_MS, signal);
    }
  }

  async #prune(): Promise<void> {
    const { store, clock, log } = this.#deps;
    const { signal } = this.#closing;
    const pruned = { pushes: 0, orders: 0, payments: 0, qrCodes: 0 };
    for await (const { kind, deleted } of store.prune(clock.wallMs())) {
      pruned[kind] += deleted;
      await clock.sleep(PAUSE_MS, signal);
      if (signal.aborted) break;
    }
    if (Object.values(pruned).some((count) => count > 0)) log.info('store-pruned', pruned);
  }
}
