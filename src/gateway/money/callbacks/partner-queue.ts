import { reasonOf } from '../../../lib/errors.ts';
import type { Stored } from '../../common/stored.ts';
import type { World } from '../../common/world.ts';

/** Simultaneous attempts to one partner. */
const RUNNING_MAX = 20;
/** Retries leave room for first attempts: a new payment must not wait behind many that the partner did not accept. */
const RUNNING_WITH_RETRIES_MAX = 15;
/** Wait after an error of the store. */
const STORE_ERROR_WAIT_MS = 10_000;

interface Attempts {
  /** Waits before each retry, in milliseconds. */
  waitsMs: readonly number[];
  /** Makes one attempt of a callback and stores its result. */
  attempt(callbackId: string): Promise<void>;
}

/**
 * Sends the callbacks of one partner when they are due. One queue per partner, so that a dead partner delays no other.
 */
export class PartnerQueue {
  readonly #partner: string;
  readonly #world: World;
  readonly #stored: Stored;
  readonly #attempts: Attempts;
  readonly #closing: AbortSignal;
  readonly #running = new Map<string, Promise<void>>();
  /** Aborted when something in the store may be due earlier than known. */
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

  /** Makes it read the store again, after a new callback or the end of an attempt. */
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
      // Set before the store is read, so that a wake-up in between is not lost.
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

  /** Begins the attempts that are due. Returns the time until the next one; `undefined` to wait for a wake-up. */
  async #beginDue(): Promise<number | undefined> {
    const { store } = this.#stored;
    const { clock } = this.#world;
    const { waitsMs } = this.#attempts;
    const mayBegin = (below: number) => !this.#closing.aborted && this.#running.size < below;
    if (!mayBegin(RUNNING_MAX)) return undefined;
    // Up to RUNNING_MAX of these may be running already; the others are enough.
    for (const { id } of await store.callbacks.neverTried(this.#partner, 2 * RUNNING_MAX)) {
      if (!mayBegin(RUNNING_MAX)) return undefined;
      this.#begin(id);
    }
    let soonestMs: number | undefined;
    for (const { id, tries, next_at_ms } of await store.callbacks.nextDue(this.#partner, 2 * RUNNING_MAX)) {
      if (!mayBegin(RUNNING_WITH_RETRIES_MAX)) return undefined;
      const waitMs = next_at_ms - clock.wallMs();
      // The time is stored as calendar time. A clock that was set back must not delay an attempt longer than its
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
