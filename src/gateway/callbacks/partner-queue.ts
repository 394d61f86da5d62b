import type { Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Store } from '../store/store.ts';

/** Attempts to one partner at the same time; its other callbacks wait in the store. */
const RUNNING_MAX = 20;
/** Repeated ones leave room for first ones: what is paid now does not wait for a heap of what was not taken. */
const REPEATED_WHILE_RUNNING_MAX = 15;
/** After a failure of the store, which is no answer of a partner. */
const STUCK_WAIT_MS = 10_000;

export interface PartnerQueueDeps {
  store: { payments: Pick<Store['payments'], 'neverTried' | 'nextPending'> };
  clock: Clock;
  log: Logger;
  /** Waits of the ladder in milliseconds. */
  retryWaitsMs: readonly number[];
  /** Makes one attempt of a callback and stores what came of it. */
  attempt(callbackId: string): Promise<void>;
}

/** The callbacks of one partner in the order in which they are due: a partner that is dead holds up no other. */
export class PartnerQueue {
  readonly #partner: string;
  readonly #deps: PartnerQueueDeps;
  readonly #closing: AbortSignal;
  readonly #running = new Map<string, Promise<void>>();
  /** Aborted when the store may have something due sooner than was known. */
  #news = new AbortController();
  readonly #pumping: Promise<void>;

  /** Begins at once, and goes on until `closing`. */
  constructor(partner: string, deps: PartnerQueueDeps, closing: AbortSignal) {
    this.#partner = partner;
    this.#deps = deps;
    this.#closing = closing;
    closing.addEventListener('abort', () => this.look(), { once: true });
    this.#pumping = this.#pump();
  }

  /** Looks into the store again: a callback came, or an attempt ended. */
  look(): void {
    this.#news.abort();
  }

  /** Settles once nothing of it runs, after `closing`. */
  async ended(): Promise<void> {
    await this.#pumping;
    await Promise.all(this.#running.values());
  }

  async #pump(): Promise<void> {
    while (!this.#closing.aborted) {
      // Before the store is read, or news that come meanwhile would be missed.
      this.#news = new AbortController();
      const { signal } = this.#news;
      try {
        const waitMs = await this.#runDue();
        if (this.#closing.aborted) return;
        if (waitMs !== undefined) await this.#deps.clock.sleep(waitMs, signal);
        else if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
      } catch (error) {
        this.#deps.log.error('callbacks-stuck', { partner: this.#partner, reason: reasonOf(error) });
        await this.#deps.clock.sleep(STUCK_WAIT_MS, this.#closing);
      }
    }
  }

  /** Begins the attempts that are due. The wait for the next one; `undefined` when only news can bring one. */
  async #runDue(): Promise<number | undefined> {
    const { store, clock, retryWaitsMs } = this.#deps;
    const mayBegin = (below: number) => !this.#closing.aborted && this.#running.size < below;
    if (!mayBegin(RUNNING_MAX)) return undefined;
    // Some of these may be running: so many at least are not, where there are so many.
    for (const { id } of await store.payments.neverTried(this.#partner, 2 * RUNNING_MAX)) {
      if (!mayBegin(RUNNING_MAX)) return undefined;
      this.#begin(id);
    }
    let soonestMs: number | undefined;
    for (const { id, tries, next_at_ms } of await store.payments.nextPending(this.#partner, 2 * RUNNING_MAX)) {
      if (!mayBegin(REPEATED_WHILE_RUNNING_MAX)) return undefined;
      const waitMs = next_at_ms - clock.wallMs();
      // Kept as wall time for the sake of a restart, so a clock that was set must not hold it up for long.
      if (waitMs > 0 && waitMs <= (retryWaitsMs[tries - 1] ?? 0)) soonestMs = Math.min(waitMs, soonestMs ?? waitMs);
      else this.#begin(id);
    }
    return soonestMs;
  }

  #begin(id: string): void {
    if (!this.#running.has(id)) this.#running.set(id, this.#run(id));
  }

  async #run(id: string): Promise<void> {
    const { attempt, clock, log } = this.#deps;
    try {
      await attempt(id);
    } catch (error) {
      log.error('callback-stuck', { callback: id, reason: reasonOf(error) });
      await clock.sleep(STUCK_WAIT_MS, this.#closing);
    } finally {
      this.#running.delete(id);
      this.look();
    }
  }
}
