import { reasonOf } from '../../../lib/errors.ts';
import type { Stored } from '../../common/stored.ts';
import type { World } from '../../common/world.ts';

/** How many attempts to one partner run at once. */
const RUNNING_MAX = 20;
/**
 * How many run at once if some are retries. The rest is for first attempts, so that a new payment does not wait behind
 * many that the partner refused.
 */
const RUNNING_WITH_RETRIES_MAX = 15;
/** How long the queue waits after an error of the store. */
const STORE_ERROR_WAIT_MS = 10_000;

interface Attempts {
  /** Waits before each retry, in milliseconds. */
  waitsMs: readonly number[];
  /** Makes one attempt of a callback and stores its result. */
  attempt(callbackId: string): Promise<void>;
}

/**
 * Sends the callbacks of one partner when they are due. Each partner has its own queue, so that one that does not
 * answer delays no other.
 */
export class PartnerQueue {
  readonly #partner: string;
  readonly #world: World;
  readonly #stored: Stored;
  readonly #attempts: Attempts;
  readonly #closing: AbortSignal;
  readonly #running = new Map<string, Promise<void>>();
  /** Aborts when a callback in the store may be due earlier than the queue expects. */
  #wakeUp = new AbortController();
  readonly #loop: Promise<void>;

  /** Starts at once, and runs until `closing` aborts. */
  constructor(partner: string, world: World, stored: Stored, attempts: Attempts, closing: AbortSignal) {
    this.#partner = partner;
    this.#world = world;
    this.#stored = stored;
    this.#attempts = attempts;
    this.#closing = closing;
    closing.addEventListener('abort', () => this.wake(), { once: true });
    this.#loop = this.#run();
  }

  /** Makes the queue read the store again, after a new callback or the end of an attempt. */
  wake(): void {
    this.#wakeUp.abort('due');
  }

  /** Settles after `closing`, once no attempt is running. */
  async ended(): Promise<void> {
    await this.#loop;
    await Promise.all(this.#running.values());
  }

  async #run(): Promise<void> {
    while (!this.#closing.aborted) {
      // The signal is replaced before the store is read. Otherwise a wake-up in between would be lost.
      this.#wakeUp = new AbortController();
      const { signal } = this.#wakeUp;
      try {
        const waitMs = await this.#beginDue();
        if (this.#closing.aborted) return;
        if (waitMs !== undefined) await this.#world.clock.sleep(waitMs, signal);
        else if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
      } catch (error) {
        this.#world.log.error('callbacks-store-failed', { partner: this.#partner, reason: reasonOf(error) });
        await this.#world.clock.sleep(STORE_ERROR_WAIT_MS, this.#closing);
      }
    }
  }

  /** Begins the attempts that are due. Returns the time until the next one, or undefined to wait for a wake-up. */
  async #beginDue(): Promise<number | undefined> {
    const { store } = this.#stored;
    const { waitsMs } = this.#attempts;
    const mayBegin = (below: number) => !this.#closing.aborted && this.#running.size < below;
    if (!mayBegin(RUNNING_MAX)) return undefined;
    // Up to RUNNING_MAX of these rows may already run. Twice as many rows always leave enough others.
    for (const { id } of await store.callbacks.neverTried(this.#partner, 2 * RUNNING_MAX)) {
      if (!mayBegin(RUNNING_MAX)) return undefined;
      this.#begin(id);
    }
    let soonestMs: number | undefined;
    for (const { id, tries, next_at_ms } of await store.callbacks.nextDue(this.#partner, 2 * RUNNING_MAX)) {
      if (!mayBegin(RUNNING_WITH_RETRIES_MAX)) return undefined;
      const waitMs = next_at_ms - this.#world.clock.wallMs();
      // The due time is a calendar time. If somebody sets the clock back, an attempt must not wait longer than its
      // schedule.
      if (waitMs > 0 && waitMs <= (waitsMs[tries - 1] ?? 0)) soonestMs = Math.min(waitMs, soonestMs ?? waitMs);
      else this.#begin(id);
    }
    return soonestMs;
  }

  #begin(id: string): void {
    if (!this.#running.has(id)) this.#running.set(id, this.#attempt(id));
  }

  async #attempt(id: string): Promise<void> {
    const { attempt } = this.#attempts;
    const { clock, log } = this.#world;
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
