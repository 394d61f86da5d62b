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

/** Callbacks on their ladder at the same time; the others wait in the store, oldest first. */
const UNDERWAY_MAX = 500;

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

interface Underway {
  /** Ends the wait for the next attempt. */
  stop: AbortController;
  done: Promise<void>;
}

/** Brings stored callbacks to partners, again and again as the ladder says; it outlives the gateway's restarts. */
export class Courier {
  readonly #deps: CourierDeps;
  readonly #underway = new Map<string, Underway>();
  /** One attempt of a callback at a time, by the ladder or by hand. */
  readonly #attempts = new Map<string, Promise<unknown>>();
  readonly #closing = new AbortController();

  constructor(deps: CourierDeps) {
    this.#deps = deps;
  }

  /** Takes up what the store has to deliver, each callback where it stood. */
  async resume(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    const pending = await this.#deps.store.payments.callbacksWith('pending', UNDERWAY_MAX);
    for (const { id } of pending) this.deliver(id);
  }

  /** Begins the ladder of a stored callback, or goes on with it. */
  deliver(id: string): void {
    if (this.#closing.signal.aborted || this.#underway.has(id) || this.#underway.size >= UNDERWAY_MAX) return;
    const stop = new AbortController();
    const done = this.#climb(id, AbortSignal.any([stop.signal, this.#closing.signal]))
      .finally(() => this.#underway.delete(id))
      .then(() => (this.#underway.size === UNDERWAY_MAX - 1 ? this.resume() : undefined))
      .catch((error: unknown) => this.#deps.log.error('callback-stuck', { callback: id, reason: reasonOf(error) }));
    this.#underway.set(id, { stop, done });
  }

  /** One attempt more, by hand (PROTOCOL.md, clause SYN-5). `undefined` when there is no such callback. */
  async resend(id: string): Promise<CallbackRow | undefined> {
    await this.#attempt(id, true);
    const callback = await this.#deps.store.payments.callback(id);
    if (callback?.status !== 'pending') this.#underway.get(id)?.stop.abort();
    return callback;
  }

  /** Ends every wait and attempt; an attempt that is cut off is made anew at the next start. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the gateway is stopping'));
    await Promise.all([...this.#underway.values()].map((it) => it.done));
    await Promise.allSettled(this.#attempts.values());
  }

  async #climb(id: string, signal: AbortSignal): Promise<void> {
    const { store, clock, retryWaitsMs } = this.#deps;
    const longestMs = Math.max(0, ...retryWaitsMs);
    for (;;) {
      const callback = await store.payments.callback(id);
      if (callback?.status !== 'pending') return;
      // Kept as wall time for the sake of a restart, so a clock that was set must not hold it up for long.
      await clock.sleep(Math.min(Math.max(0, callback.next_at_ms - clock.wallMs()), longestMs), signal);
      if (signal.aborted) return;
      await this.#attempt(id, false);
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
