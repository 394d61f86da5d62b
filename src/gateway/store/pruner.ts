import type { Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { CLOCK_ERROR_MS_MAX } from './schema/tables.ts';
import type { Store } from './store.ts';

const INTERVAL_MS = 3_600_000;
/** The pause between two batches, so that other work gets its turn. */
const PAUSE_MS = 50;
/** The longest time that a gateway is expected to be off. If the calendar clock shows more, it is not trusted. */
const OFF_MS_MAX = 7 * 86_400_000;

export interface PrunerDeps {
  store: Store;
  clock: Clock;
  log: Logger;
  /** Resolves with true once this gateway is the one that prunes, and with false if the signal aborts before. */
  isOurs(signal: AbortSignal): Promise<boolean>;
}

/** Prunes the store at the start and every hour. */
export class Pruner {
  readonly #deps: PrunerDeps;
  readonly #closing = new AbortController();
  #pruning: Promise<void> = Promise.resolve();
  /** The last trusted calendar time, and the monotonic time at which it was read. */
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
    const { clock, log, isOurs } = this.#deps;
    const { signal } = this.#closing;
    if (!(await isOurs(signal))) return;
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
   * Returns the time that decides which rows are old: the calendar time, but at most the last trusted time plus the
   * time passed since, plus a tolerance. So a clock that jumps ahead deletes nothing. A clock that was set back is
   * logged too, because new rows get a wrong date.
   */
  async #trustedMs(): Promise<number> {
    const { store, clock, log } = this.#deps;
    const [wallMs, nowMs] = [clock.wallMs(), clock.monotonicMs()];
    const last = this.#trusted ?? { wallMs: await store.trustedTimeMs(wallMs), atMs: nowMs };
    const passedMs = last.wallMs + (nowMs - last.atMs);
    const aheadMaxMs = this.#trusted === undefined ? OFF_MS_MAX : CLOCK_ERROR_MS_MAX;
    const isWrong = wallMs > passedMs + aheadMaxMs || wallMs < passedMs - CLOCK_ERROR_MS_MAX;
    if (isWrong && !this.#isLogged) {
      const fix = 'set the clock of this machine; if it is right, nothing is lost, old rows are only kept longer';
      const time = (ms: number) => new Date(ms).toISOString();
      log.warn('clock-jumped', { clock: time(wallMs), expected: time(passedMs), fix });
    }
    this.#isLogged = isWrong;
    this.#trusted = { wallMs: isWrong ? passedMs : Math.max(last.wallMs, wallMs), atMs: nowMs };
    await store.saveTrustedTime(this.#trusted.wallMs);
    return Math.min(wallMs, this.#trusted.wallMs);
  }

  async #prune(): Promise<void> {
    const { store, clock, log } = this.#deps;
    const { signal } = this.#closing;
    const pruned = { pushes: 0, orders: 0, payments: 0, credits: 0, qrCodes: 0 };
    for await (const { kind, deleted, undelivered = 0 } of store.prune(await this.#trustedMs())) {
      pruned[kind] += deleted;
      if (undelivered > 0) {
        log.warn('undelivered-payments-deleted', { count: undelivered, reason: 'the store is full of newer payments' });
      }
      await clock.sleep(PAUSE_MS, signal);
      if (signal.aborted) break;
    }
    if (Object.values(pruned).some((count) => count > 0)) log.info('store-pruned', pruned);
  }
}
