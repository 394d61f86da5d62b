import type { Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { CLOCK_ERROR_MS_MAX } from './schema/tables.ts';
import type { Store } from './store.ts';

const INTERVAL_MS = 3_600_000;
/** Between two batches, for other work. */
const PAUSE_MS = 50;
/** A calendar clock that says the gateway was off for longer is not trusted. */
const OFF_MS_MAX = 7 * 86_400_000;

export interface PrunerDeps {
  store: Store;
  clock: Clock;
  log: Logger;
}

/** Keeps the store within its limits, at the start and every hour, while the gateway works. */
export class Pruner {
  readonly #deps: PrunerDeps;
  readonly #closing = new AbortController();
  #pruning: Promise<void> = Promise.resolve();
  /** The last trusted calendar time, and the monotonic time of that. */
  #trusted: { wallMs: number; atMs: number } | undefined;
  #isLogged = false;

  constructor(deps: PrunerDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#pruning = this.#run();
  }

  /** Settles after the current batch. */
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

  /**
   * The time that decides what is old: the calendar's, but only as far ahead as time has passed since the last one, and
   * a tolerance. A clock that jumped ahead so deletes nothing; it is followed as fast as the gateway runs. One that was
   * set back is logged too, because the rows of that time get a wrong date.
   */
  async #trustedMs(): Promise<number> {
    const { store, clock, log } = this.#deps;
    const [wallMs, nowMs] = [clock.wallMs(), clock.monotonicMs()];
    const last = this.#trusted ?? { wallMs: await store.trustedTimeMs(wallMs), atMs: nowMs };
    const passedMs = last.wallMs + (nowMs - last.atMs);
    const aheadMaxMs = this.#trusted === undefined ? OFF_MS_MAX : CLOCK_ERROR_MS_MAX;
    const isWrong = wallMs > passedMs + aheadMaxMs || wallMs < passedMs - CLOCK_ERROR_MS_MAX;
    if (isWrong && !this.#isLogged) {
      const fix = 'set the clock of this machine; if it is right, old rows are only kept for so much longer';
      const time = (ms: number) => new Date(ms).toISOString();
      log.warn('clock-not-trusted', { clock: time(wallMs), expected: time(passedMs), fix });
    }
    this.#isLogged = isWrong;
    this.#trusted = { wallMs: isWrong ? passedMs : Math.max(last.wallMs, wallMs), atMs: nowMs };
    await store.saveTrustedTime(this.#trusted.wallMs);
    return Math.min(wallMs, this.#trusted.wallMs);
  }

  async #prune(): Promise<void> {
    const { store, clock, log } = this.#deps;
    const { signal } = this.#closing;
    const pruned = { pushes: 0, orders: 0, payments: 0, qrCodes: 0 };
    for await (const { kind, deleted, undelivered = 0 } of store.prune(await this.#trustedMs())) {
      pruned[kind] += deleted;
      if (undelivered > 0) {
        log.warn('undelivered-payments-deleted', { count: undelivered, reason: 'too many newer ones are kept' });
      }
      await clock.sleep(PAUSE_MS, signal);
      if (signal.aborted) break;
    }
    if (Object.values(pruned).some((count) => count > 0)) log.info('store-pruned', pruned);
  }
}
