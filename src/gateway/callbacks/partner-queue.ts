import type { Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Store } from '../../store/store.ts';

/** Attempts to one partner at the same time. */
const RUNNING_MAX = 20;
/** Retries leave room for first attempts: a new payment must not wait behind many that the partner did not take. */
const RUNNING_WITH_RETRIES_MAX = 15;
/** After an error of the store. */
const STORE_ERROR_WAIT_MS = 10_000;

export interface PartnerQueueDeps {
  store: { callbacks: Pick<Store['callbacks'], 'neverTried' | 'nextDue'> };
  clock: Clock;
  log: Logger;
  /** Waits before each retry, in milliseconds. */
  retryWaitsMs: readonly number[];
  /** Makes one attempt of a callback and stores its result. */
  attempt(callbackId: string): Promise<void>;
}

/** Sends the callbacks of one partner when they are due. Each partner has its own: a dead one delays no other. */
export class PartnerQueue {
  readonly #partner: string;
  readonly #deps: PartnerQueueDeps;
  readonly #closing: AbortSignal;
  readonly #running = new Map<string, Promise<void>>();
  /** Aborted when something in the store may be due sooner than was known. */
  #wakeUp = new AbortController();
  readonly #loop: Promise<void>;

  /** Begins at once, and runs until `closing`. */
  constructor(partner: string, deps: PartnerQueueDeps, closing: AbortSignal) {
    this.#partner = partner;
    this.#deps = deps;
    this.#closing = closing;
    closing.addEventListener('abort', () => this.wake(), { once: true });
    this.#loop = this.#run();
  }

  /** Makes it read the store again: there is a new callback, or an attempt ended. */
  wake(): void {
    this.#wakeUp.abort();
  }

  /** Settles after `closing`, once no attempt runs. */
  async ended(): Promise<void> {
    await this.#loop;
    await Promise.all(this.#running.values());
  }

  async #run(): Promise<void> {
    while (!this.#closing.aborted) {
      // Before the store is read: a wake-up meanwhile must not get lost.
      this.#wakeUp = new AbortController();
      const { signal } = this.#wakeUp;
      try {
        const waitMs = await this.#beginDue();
        if (this.#closing.aborted) return;
        if (waitMs !== undefined) await this.#deps.clock.sleep(waitMs, signal);
        else if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
      } catch (error) {
        this.#deps.log.error('callbacks-store-failed', { partner: this.#partner, reason: reasonOf(error) });
        await this.#deps.clock.sleep(STORE_ERROR_WAIT_MS, this.#closing);
      }
    }
  }

  /** Begins the attempts that are due. Returns the wait for the next one; `undefined` when only a wake-up can bring one. */
  async #beginDue(): Promise<number | undefined> {
    const { store, clock, retryWaitsMs } = this.#deps;
    const mayBegin = (below: number) => !this.#closing.aborted && this.#running.size < below;
    if (!mayBegin(RUNNING_MAX)) return undefined;
    // At most RUNNING_MAX of these may already be running, so the others are enough.
    for (const { id } of await store.callbacks.neverTried(this.#partner, 2 * RUNNING_MAX)) {
      if (!mayBegin(RUNNING_MAX)) return undefined;
      this.#begin(id);
    }
    let soonestMs: number | undefined;
    for (const { id, tries, next_at_ms } of await store.callbacks.nextDue(this.#partner, 2 * RUNNING_MAX)) {
      if (!mayBegin(RUNNING_WITH_RETRIES_MAX)) return undefined;
      const waitMs = next_at_ms - clock.wallMs();
      // Stored as calendar time for a restart: a clock that was set back must not delay it longer than its schedule.
      if (waitMs > 0 && waitMs <= (retryWaitsMs[tries - 1] ?? 0)) soonestMs = Math.min(waitMs, soonestMs ?? waitMs);
      else this.#begin(id);
    }
    return soonestMs;
  }

  #begin(id: string): void {
    if (!this.#running.has(id)) this.#running.set(id, this.#attempt(id));
  }

  async #attempt(id: string): Promise<void> {
    const { attempt, clock, log } = this.#deps;
    try {
      await attempt(id);
    } catch (error) {
      log.error('callback-store-failed', { callback: id, reason: reasonOf(error) });
      await clock.sleep(STORE_ERROR_WAIT_MS, this.#closing);
    } finally {
      this.#running.delete(id);
      this.wake();
    }
  }
}
