import { reasonOf } from '../../../lib/errors.ts';
import type { Metrics } from '../../common/metrics.ts';
import { lookRegularly } from '../../common/shared-work.ts';
import type { Stored } from '../../common/stored.ts';
import type { World } from '../../common/world.ts';
import { retryWaitsOf } from '../../config/retry-schedule.ts';
import type { AfterAttempt, CallbackChoice } from '../../store/repositories/callbacks.ts';
import type { CallbackRow } from '../../store/schema/tables.ts';
import { type Attempt, attemptCallback, createPost, type MakeAttempt, type Post } from './attempt.ts';
import { PartnerQueue } from './partner-queue.ts';

/** How long the start waits after an error of the store. */
const STORE_ERROR_WAIT_MS = 10_000;
/**
 * How many callbacks `resendAll` resends in one call, and in one of its transactions. Other queries wait while a
 * transaction runs.
 */
const RESEND_MAX = 10_000;
const RESEND_BATCH_MAX = 100;

/**
 * Delivers stored callbacks to partners by the retry schedule, also after a restart of the gateway. Of the gateways that
 * share a database, one delivers the callbacks of a partner, and another one goes on when it ends.
 */
export class CallbackDispatcher {
  readonly #world: World;
  readonly #stored: Stored;
  readonly #metrics: Metrics;
  readonly #post: Post;
  readonly #makeAttempt: MakeAttempt;
  /** Waits before each retry, in milliseconds (PROTOCOL.md, clause SYN-4). */
  readonly #retryWaitsMs: readonly number[];
  /** Queues by partner. */
  readonly #queues = new Map<string, PartnerQueue>();
  /**
   * Running attempts by callback. At this gateway a callback has one attempt at a time, be it scheduled or by hand. By
   * hand, another gateway may make one at the same time: both send the same id (SYN-4).
   */
  readonly #attempts = new Map<string, Promise<unknown>>();
  readonly #closing = new AbortController();
  #starting: Promise<void> = Promise.resolve();
  #looking: Promise<void> = Promise.resolve();

  constructor(world: World, stored: Stored, metrics: Metrics, attempt: MakeAttempt = attemptCallback) {
    this.#world = world;
    this.#stored = stored;
    this.#metrics = metrics;
    this.#post = createPost(world.outside);
    this.#makeAttempt = attempt;
    this.#retryWaitsMs = retryWaitsOf(world.config);
  }

  /** Begins to deliver the pending callbacks of the store. */
  start(): void {
    this.#starting = this.#startQueues();
    this.#looking = lookRegularly(this.#world, 'callbacks', this.#closing.signal, () => this.#look());
  }

  /**
   * Makes the due callbacks of a partner be sent, by this gateway or by the one that has its queue. Callers do this when
   * the store has a new callback for it.
   */
  wake(partner: string): void {
    if (this.wakeHere(partner)) return;
    void this.#take(partner).then((isHere) => {
      if (!isHere) this.#world.place.hint({ about: 'callbacks', partner });
    });
  }

  /** Wakes the queue of a partner if this gateway has it. Returns whether it does. */
  wakeHere(partner: string): boolean {
    const queue = this.#queues.get(partner);
    queue?.wake();
    return queue !== undefined;
  }

  /** Begins the queue of a partner if no other gateway has it. Returns whether this gateway has it now. */
  async #take(partner: string): Promise<boolean> {
    const { signal } = this.#closing;
    if (!(await this.#world.place.lease(`callbacks/${partner}`))) return false;
    if (this.wakeHere(partner) || signal.aborted) return true;
    const attempt = (id: string) => this.#attempt(id, false);
    const waitsMs = this.#retryWaitsMs;
    this.#queues.set(partner, new PartnerQueue(partner, this.#world, this.#stored, { waitsMs, attempt }, signal));
    return true;
  }

  /**
   * Makes one more attempt by hand (PROTOCOL.md, clause SYN-5). Returns undefined if there is no such callback. Returns
   * `test`, without an attempt, for a test payment at a gateway that takes real money (clause MOD-3).
   */
  async resend(id: string): Promise<CallbackRow | 'test' | undefined> {
    const { store } = this.#stored;
    const known = await store.callbacks.find(id);
    if (known !== undefined && (await store.history.isMuted(known.payment_id))) return 'test';
    await this.#attempt(id, true);
    const callback = await store.callbacks.find(id);
    if (callback !== undefined) this.wake(callback.partner);
    return callback;
  }

  /**
   * Makes the oldest failed or pending callbacks of this choice due now, as after their first attempt; at most 10,000.
   * Returns their number and whether more may be left (PROTOCOL.md, clause SYN-5).
   */
  async resendAll(choice: CallbackChoice): Promise<{ count: number; more: boolean }> {
    const { store } = this.#stored;
    const { clock, changes, log } = this.#world;
    const atMs = clock.wallMs();
    const partners = new Set<string>();
    let count = 0;
    let after: number | undefined = 0;
    while (after !== undefined && count < RESEND_MAX && !this.#closing.signal.aborted) {
      const batch = await store.callbacks.requeue(choice, after, RESEND_BATCH_MAX, atMs);
      for (const partner of new Set(batch.partners)) {
        partners.add(partner);
        this.wake(partner);
      }
      count += batch.partners.length;
      after = batch.after;
      await new Promise((resolve) => setImmediate(resolve));
    }
    log.info('callbacks-resent', { count, partners: partners.size, status: choice.status });
    if (count > 0) changes.publish('callbacks', 'payments');
    return { count, more: after !== undefined };
  }

  /** Ends all waits and attempts. The next start repeats an interrupted attempt. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the gateway is stopping'));
    await Promise.all([this.#starting, this.#looking]);
    await Promise.all([...this.#queues.values()].map((it) => it.ended()));
    await Promise.allSettled(this.#attempts.values());
  }

  async #startQueues(): Promise<void> {
    const { store } = this.#stored;
    const { clock, log } = this.#world;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        for (const { partner } of await store.callbacks.pendingPartners()) await this.#take(partner);
        return;
      } catch (error) {
        log.error('callbacks-store-failed', { reason: reasonOf(error) });
        await clock.sleep(STORE_ERROR_WAIT_MS, signal);
      }
    }
  }

  /** Takes the queues of gateways that have ended, and finds callbacks of which no hint has arrived. */
  async #look(): Promise<void> {
    const { store } = this.#stored;
    const { clock } = this.#world;
    for (const { partner, next_at_ms: nextAtMs } of await store.callbacks.pendingPartners()) {
      if (!this.#queues.has(partner)) await this.#take(partner);
      else if (nextAtMs <= clock.wallMs()) this.wakeHere(partner);
    }
  }

  #attempt(id: string, byHand: boolean): Promise<void> {
    const before = this.#attempts.get(id) ?? Promise.resolve();
    const mine = before
      .catch(() => undefined)
      .then(() => this.#attemptOnce(id, byHand))
      .finally(() => {
        if (this.#attempts.get(id) === mine) this.#attempts.delete(id);
      });
    this.#attempts.set(id, mine);
    return mine;
  }

  async #attemptOnce(id: string, byHand: boolean): Promise<void> {
    const { store, directory } = this.#stored;
    const { clock, random } = this.#world;
    const { signal } = this.#closing;
    const callback = await store.callbacks.find(id);
    if (callback === undefined || (!byHand && callback.status !== 'pending')) return;
    const { partner, body, tries } = callback;
    // The configured URL comes first, because the admin may have corrected it. A removed partner has only the stored
    // one.
    const configured = (await directory.partner(partner))?.callback;
    const {
      url = callback.url,
      auth = { kind: 'none' as const },
      signingSecret,
      success = 'any2xx',
    } = configured ?? {};
    const request = { id, url, auth, signingSecret, success, body, tries, byHand };
    const attempt = await this.#makeAttempt(request, { clock, post: this.#post }, signal);
    if (signal.aborted && attempt.status === null) return;
    const after = { url, ...this.#after(callback, attempt, byHand) };
    const row = {
      id: random.uuid(),
      callback_id: id,
      by_hand: byHand ? 1 : 0,
      started_at_ms: attempt.startedAtMs,
      duration_ms: attempt.durationMs,
      request_headers: JSON.stringify(attempt.requestHeaders),
      response_status: attempt.status,
      response_body: attempt.answer,
      error: attempt.error,
    };
    const status = await store.callbacks.addAttempt(row, callback, after);
    this.#publish(callback, attempt, status ?? callback.status, byHand);
  }

  /** Reports a stored attempt to metrics, traffic log, log and console. */
  #publish(
    { id, partner, body, payment_id: transactionId }: CallbackRow,
    { result, status, answer, error, warning, durationMs: tookMs }: Attempt,
    outcome: CallbackRow['status'],
    byHand: boolean,
  ): void {
    const { log, changes, trafficLog } = this.#world;
    this.#metrics.called(result === 'retry' && outcome === 'failed' ? 'failed' : result);
    const shown = { partner, result: outcome, status, error, warning };
    trafficLog.callback({ id, transactionId, body, byHand, answer, tookMs, ...shown });
    if (outcome === 'pending') log.warn('callback-deferred', { callback: id, ...shown });
    else if (result !== 'delivered') log.warn('callback-failed', { callback: id, ...shown });
    else if (warning !== null) log.warn('callback-delivered', { callback: id, ...shown });
    else log.info('callback-delivered', { callback: id, ...shown });
    changes.publish('callbacks', 'payments');
  }

  /** Returns how an attempt changes its callback. A failure by hand neither ends the schedule nor undoes a delivery. */
  #after({ tries }: CallbackRow, attempt: Attempt, byHand: boolean): AfterAttempt {
    const { clock } = this.#world;
    if (attempt.result === 'delivered') {
      return { status: 'delivered', warning: attempt.warning, tries: tries + (byHand ? 0 : 1) };
    }
    if (byHand) return {};
    const waitMs = attempt.result === 'failed' ? undefined : this.#retryWaitsMs[tries];
    const failed = { status: 'failed', warning: attempt.warning, tries: tries + 1 } as const;
    return waitMs === undefined ? failed : { ...failed, status: 'pending', next_at_ms: clock.wallMs() + waitMs };
  }
}
