import type { Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import type { Changes } from '../changes.ts';
import type { Directory } from '../directory.ts';
import type { Metrics } from '../metrics.ts';
import type { CallbackChoice } from '../store/repositories/owed.ts';
import type { AfterAttempt } from '../store/repositories/payments.ts';
import type { CallbackRow } from '../store/schema/tables.ts';
import type { Store } from '../store/store.ts';
import type { TrafficLog } from '../traffic-log.ts';
import type { Attempt, MakeAttempt } from './attempt.ts';
import { PartnerQueue } from './partner-queue.ts';
import type { Post } from './post.ts';

/** Until the store, which failed at the start, is asked again. */
const STUCK_WAIT_MS = 10_000;
/** Of one call to have them tried again … */
const AGAIN_MAX = 10_000;
/** … and in one transaction: whatever else there is to do waits for no more than that. */
const AGAIN_BATCH_MAX = 100;

export interface CallbackDispatcherDeps {
  store: Store;
  directory: Directory;
  clock: Clock;
  random: Random;
  log: Logger;
  changes: Changes;
  metrics: Metrics;
  wire: Pick<TrafficLog, 'callback'>;
  /** How a partner is called. */
  post: Post;
  attempt: MakeAttempt;
  /** Waits of the ladder in milliseconds, one before each retry (PROTOCOL.md, clause SYN-4). */
  retryWaitsMs: readonly number[];
}

/** Brings stored callbacks to partners, again and again as the ladder says; it outlives the gateway's restarts. */
export class CallbackDispatcher {
  readonly #deps: CallbackDispatcherDeps;
  /** By partner. */
  readonly #lanes = new Map<string, PartnerQueue>();
  /** One attempt of a callback at a time, by the ladder or by hand. */
  readonly #attempts = new Map<string, Promise<unknown>>();
  readonly #closing = new AbortController();
  #starting: Promise<void> = Promise.resolve();

  constructor(deps: CallbackDispatcherDeps) {
    this.#deps = deps;
  }

  /** Begins to deliver what the store has to deliver, each callback where it stood. */
  start(): void {
    this.#starting = this.#takeUp();
  }

  /** Looks into the store: there is something new to tell a partner. */
  look(partner: string): void {
    const { signal } = this.#closing;
    if (signal.aborted) return;
    const queue = this.#lanes.get(partner);
    queue?.look();
    const deps = { ...this.#deps, attempt: (id: string) => this.#attempt(id, false) };
    if (queue === undefined) this.#lanes.set(partner, new PartnerQueue(partner, deps, signal));
  }

  /** One attempt more, by hand (PROTOCOL.md, clause SYN-5). `undefined` when there is no such callback. */
  async resend(id: string): Promise<CallbackRow | undefined> {
    await this.#attempt(id, true);
    const callback = await this.#deps.store.payments.callback(id);
    if (callback !== undefined) this.look(callback.partner);
    return callback;
  }

  /**
   * Has callbacks that failed, or that wait, tried again at once, as after their first attempt, in the queue of their
   * partner; oldest first, at most 10,000. How many, and whether there may be more (PROTOCOL.md, clause SYN-5).
   */
  async resendAll(choice: CallbackChoice): Promise<{ count: number; more: boolean }> {
    const { store, clock, changes, log } = this.#deps;
    const atMs = clock.wallMs();
    const partners = new Set<string>();
    let count = 0;
    let after: number | undefined = 0;
    while (after !== undefined && count < AGAIN_MAX && !this.#closing.signal.aborted) {
      const batch = await store.payments.tryAgain(choice, after, AGAIN_BATCH_MAX, atMs);
      for (const partner of batch.partners) partners.add(partner);
      for (const partner of new Set(batch.partners)) this.look(partner);
      count += batch.partners.length;
      after = batch.after;
      await new Promise((resolve) => setImmediate(resolve));
    }
    log.info('callbacks-resent', { count, partners: partners.size, status: choice.status });
    if (count > 0) changes.publish('callbacks', 'payments');
    return { count, more: after !== undefined };
  }

  /** Ends every wait and attempt; an attempt that is cut off is made anew at the next start. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the gateway is stopping'));
    await this.#starting;
    await Promise.all([...this.#lanes.values()].map((it) => it.ended()));
    await Promise.allSettled(this.#attempts.values());
  }

  async #takeUp(): Promise<void> {
    const { store, clock, log } = this.#deps;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        for (const partner of await store.payments.pendingPartners()) this.look(partner);
        return;
      } catch (error) {
        log.error('callbacks-stuck', { reason: reasonOf(error) });
        await clock.sleep(STUCK_WAIT_MS, signal);
      }
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
    const { store, directory, clock, random, log, changes, metrics, wire, post } = this.#deps;
    const callback = await store.payments.callback(id);
    if (callback === undefined || (!byHand && callback.status !== 'pending')) return;
    // A URL that was corrected since then is for what is owed too; without one it may still be at the old.
    const { url = callback.url, auth, signingSecret } = directory.partner(callback.partner)?.callback ?? {};
    const attempt = await this.#deps.attempt(
      { id, url, auth: auth ?? { kind: 'none' }, signingSecret, body: callback.body, tries: callback.tries, byHand },
      { clock, post },
      this.#closing.signal,
    );
    if (this.#closing.signal.aborted && attempt.status === null) return;
    const after = { url, ...this.#after(callback, attempt, byHand) };
    const { status: outcome = callback.status } = after;
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
    metrics.called(attempt.result === 'retry' && outcome === 'failed' ? 'failed' : attempt.result);
    const { result, status, error, warning } = attempt;
    const { partner, body, payment_id: transactionId } = callback;
    const { answer, durationMs: tookMs } = attempt;
    wire.callback({
      id,
      transactionId,
      partner,
      body,
      byHand,
      result: outcome,
      status,
      answer,
      error,
      warning,
      tookMs,
    });
    const line = { callback: id, partner: callback.partner, result: outcome, status, error, warning };
    if (result === 'delivered' && warning === null) log.info('callback', line);
    else log.warn('callback', line);
    changes.publish('callbacks', 'payments');
  }

  /** What an attempt changes; a failure by hand neither ends the ladder nor takes back a delivery. */
  #after({ tries }: CallbackRow, attempt: Attempt, byHand: boolean): Omit<AfterAttempt, 'url'> {
    const { retryWaitsMs, clock } = this.#deps;
    if (attempt.result === 'delivered') {
      return { status: 'delivered', warning: attempt.warning, tries: tries + (byHand ? 0 : 1) };
    }
    if (byHand) return {};
    const waitMs = attempt.result === 'failed' ? undefined : retryWaitsMs[tries];
    const failed = { status: 'failed', warning: null, tries: tries + 1 } as const;
    return waitMs === undefined ? failed : { ...failed, status: 'pending', next_at_ms: clock.wallMs() + waitMs };
  }
}
