import type { Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import type { Changes } from '../changes.ts';
import type { Directory } from '../directory.ts';
import type { Metrics } from '../metrics.ts';
import type { CallbackRow } from '../store/schema.ts';
import type { Store } from '../store/store.ts';
import { type Attempt, attemptCallback } from './attempt.ts';

/** Attempts of ladders at the same time; those that only wait for their next one wait in the store. */
const RUNNING_MAX = 500;
/** After a failure of the store, which is no answer of a partner. */
const STUCK_WAIT_MS = 10_000;

export interface CourierDeps {
  store: Store;
  directory: Directory;
  clock: Clock;
  random: Random;
  log: Logger;
  changes: Changes;
  metrics: Metrics;
  /** Waits of the ladder in milliseconds, one before each retry (PROTOCOL.md, clause SYN-4). */
  retryWaitsMs: readonly number[];
}

/** Brings stored callbacks to partners, again and again as the ladder says; it outlives the gateway's restarts. */
export class Courier {
  readonly #deps: CourierDeps;
  readonly #running = new Map<string, Promise<void>>();
  /** One attempt of a callback at a time, by the ladder or by hand. */
  readonly #attempts = new Map<string, Promise<unknown>>();
  readonly #closing = new AbortController();
  /** Aborted when the store may have something due sooner than was known. */
  #news = new AbortController();
  #pumping: Promise<void> = Promise.resolve();

  constructor(deps: CourierDeps) {
    this.#deps = deps;
  }

  /** Begins to deliver what the store has to deliver, each callback where it stood. */
  start(): void {
    this.#pumping = this.#pump();
  }

  /** Looks into the store again: a callback came, or an attempt ended. */
  look(): void {
    this.#news.abort();
  }

  /** One attempt more, by hand (PROTOCOL.md, clause SYN-5). `undefined` when there is no such callback. */
  async resend(id: string): Promise<CallbackRow | undefined> {
    await this.#attempt(id, true);
    this.look();
    return this.#deps.store.payments.callback(id);
  }

  /** Ends every wait and attempt; an attempt that is cut off is made anew at the next start. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the gateway is stopping'));
    this.look();
    await this.#pumping;
    await Promise.all(this.#running.values());
    await Promise.allSettled(this.#attempts.values());
  }

  async #pump(): Promise<void> {
    const { clock } = this.#deps;
    const { signal: closing } = this.#closing;
    while (!closing.aborted) {
      // Before the store is read, or news that come meanwhile would be missed.
      this.#news = new AbortController();
      const { signal } = this.#news;
      try {
        const waitMs = await this.#runDue();
        if (closing.aborted) return;
        if (waitMs !== undefined) await clock.sleep(waitMs, signal);
        else if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
      } catch (error) {
        this.#deps.log.error('callbacks-stuck', { reason: reasonOf(error) });
        await clock.sleep(STUCK_WAIT_MS, closing);
      }
    }
  }

  /** Begins the attempts that are due. The wait for the next one; `undefined` when only news can bring one. */
  async #runDue(): Promise<number | undefined> {
    const { store, clock, retryWaitsMs } = this.#deps;
    const longestMs = Math.max(0, ...retryWaitsMs);
    // Those that run are among the first, as they were due: so no more than the limit need be looked at.
    const pending = await store.payments.nextPending(RUNNING_MAX);
    for (const { id, next_at_ms } of pending) {
      if (this.#closing.signal.aborted || this.#running.size >= RUNNING_MAX) return undefined;
      if (this.#running.has(id)) continue;
      const waitMs = next_at_ms - clock.wallMs();
      // Kept as wall time for the sake of a restart, so a clock that was set must not hold it up for long.
      if (waitMs > 0 && waitMs <= longestMs) return waitMs;
      this.#running.set(id, this.#run(id));
    }
    return undefined;
  }

  async #run(id: string): Promise<void> {
    try {
      await this.#attempt(id, false);
    } catch (error) {
      this.#deps.log.error('callback-stuck', { callback: id, reason: reasonOf(error) });
      await this.#deps.clock.sleep(STUCK_WAIT_MS, this.#closing.signal);
    } finally {
      this.#running.delete(id);
      this.look();
    }
  }

  #attempt(id: string, byHand: boolean): Promise<void> {
    const before = this.#attempts.get(id) ?? Promise.resolve();
    const mine = before
      .catch(() => undefined)
      .then(() => this.#makeAttempt(id, byHand))
      .finally(() => {
        if (this.#attempts.get(id) === mine) this.#attempts.delete(id);
      });
    this.#attempts.set(id, mine);
    return mine;
  }

  async #makeAttempt(id: string, byHand: boolean): Promise<void> {
    const { store, directory, clock, random, log, changes, metrics } = this.#deps;
    const callback = await store.payments.callback(id);
    if (callback === undefined || (!byHand && callback.status !== 'pending')) return;
    const auth = directory.partner(callback.partner)?.callback?.auth ?? { kind: 'none' };
    const attempt = await attemptCallback(
      { url: callback.url, auth, body: callback.body },
      clock,
      this.#closing.signal,
    );
    if (this.#closing.signal.aborted && attempt.status === null) return;
    const after = this.#after(callback, attempt, byHand);
    await store.payments.addAttempt(
      {
        id: random.uuid(),
        callback_id: id,
        by_hand: byHand ? 1 : 0,
        started_at_ms: attempt.startedAtMs,
        duration_ms: attempt.durationMs,
        request_headers: JSON.stringify(attempt.requestHeaders),
        response_status: attempt.status,
        response_body: attempt.answer,
        error: attempt.error,
      },
      after,
    );
    metrics.called(attempt.result === 'retry' && after.status === 'failed' ? 'failed' : attempt.result);
    const { result, status, error, warning } = attempt;
    const line = { callback: id, partner: callback.partner, result: after.status, status, error, warning };
    if (result === 'delivered' && warning === null) log.info('callback', line);
    else log.warn('callback', line);
    changes.notify('callbacks', 'payments');
  }

  #after(
    callback: CallbackRow,
    attempt: Attempt,
    byHand: boolean,
  ): Pick<CallbackRow, 'status' | 'warning' | 'tries' | 'next_at_ms'> {
    const { retryWaitsMs, clock } = this.#deps;
    const { tries, next_at_ms } = callback;
    if (attempt.result === 'delivered') {
      return { status: 'delivered', warning: attempt.warning, tries: tries + (byHand ? 0 : 1), next_at_ms };
    }
    // A failure by hand neither ends the ladder nor takes back a delivery.
    if (byHand) return { status: callback.status, warning: callback.warning, tries, next_at_ms };
    const waitMs = attempt.result === 'failed' ? undefined : retryWaitsMs[tries];
    return {
      status: waitMs === undefined ? 'failed' : 'pending',
      warning: null,
      tries: tries + 1,
      next_at_ms: waitMs === undefined ? next_at_ms : clock.wallMs() + waitMs,
    };
  }
}
