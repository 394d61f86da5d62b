import type { Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { CLOCK_ERROR_MS_MAX } from './schema/tables.ts';
import type { Store } from './store.ts';

const INTERVAL_MS = 3_600_000;
/** Between two batches, for whatever else there is to do. */
const PAUSE_MS = 50;
/** A gateway that was off for longer does not believe a calendar that says so. */
const OFF_MAX_MS = 7 * 86_400_000;

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
  /** The calendar time that was believed last, and the monotonic time of that. */
  #believed: { wallMs: number; atMs: number } | undefined;
  #isTold = false;

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

  /**
   * The time by which is judged what is over: the calendar's, but never further than time has passed since the one before, and
   * a little more. One that has jumped deletes nothing: it is followed only as fast as the gateway runs. One that was set back
   * is told too, because what is kept meanwhile has a wrong date.
   */
  async #believedMs(): Promise<number> {
    const { store, clock, log } = this.#deps;
    const [wallMs, nowMs] = [clock.wallMs(), clock.monotonicMs()];
    const last = this.#believed ?? { wallMs: await store.trustedTimeMs(wallMs), atMs: nowMs };
    const passedMs = last.wallMs + (nowMs - last.atMs);
    const aheadMaxMs = this.#believed === undefined ? OFF_MAX_MS : CLOCK_ERROR_MS_MAX;
    const isDoubted = wallMs > passedMs + aheadMaxMs || wallMs < passedMs - CLOCK_ERROR_MS_MAX;
    if (isDoubted && !this.#isTold) {
      const fix = 'set the clock of this machine; if it is right, old rows are only kept for so much longer';
      const time = (ms: number) => new Date(ms).toISOString();
      log.warn('clock-doubted', { clock: time(wallMs), believed: time(passedMs), fix });
    }
    this.#isTold = isDoubted;
    this.#believed = { wallMs: isDoubted ? passedMs : Math.max(last.wallMs, wallMs), atMs: nowMs };
    await store.saveTrustedTime(this.#believed.wallMs);
    return Math.min(wallMs, this.#believed.wallMs);
  }

  async #prune(): Promise<void> {
    const { store, clock, log } = this.#deps;
    const { signal } = this.#closing;
    const pruned = { pushes: 0, orders: 0, payments: 0, qrCodes: 0 };
    for await (const { kind, deleted, undelivered: untold = 0 } of store.prune(await this.#believedMs())) {
      pruned[kind] += deleted;
      if (untold > 0) log.warn('untold-payments-deleted', { count: untold, reason: 'too many newer ones are kept' });
      await clock.sleep(PAUSE_MS, signal);
      if (signal.aborted) break;
    }
    if (Object.values(pruned).some((count) => count > 0)) log.info('store-pruned', pruned);
  }
}
