import { reasonOf } from '../../lib/errors.ts';
import { untilOurs } from '../common/shared-work.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import { CREDIT_FRESH_MS } from '../store/repositories/credit-sides.ts';
import type { EndedRequest } from '../store/repositories/payment-requests.ts';
import { ASKING_WORK, type Asking } from './asking.ts';
import type { Maker, Sources } from './open-sources.ts';
import type { AskSource, QrMaker, Source } from './sources/source.ts';

/** How many requests one round ends. */
const ENDED_MAX = 100;
/** The wait between two rounds if no order changes. */
const INTERVAL_MS = 60_000;
/** The wait after a change. Many orders change together, so one round serves them all. */
const PAUSE_MS = 500;
/** The wait after a failed round. It doubles each time. */
const FAILED_WAIT_MS = 2_000;
const FAILED_WAIT_MS_MAX = 15 * 60_000;

/**
 * Ends the QRs of sources when their orders are over, and asks once more for money that came in. An order is closed
 * only when the source accepts no more money for it and the gateway has stored all that it received (PROTOCOL.md,
 * clause PQR-5). One gateway of a database does this for all.
 */
export class PaymentRequests {
  readonly #world: World;
  readonly #stored: Stored;
  readonly #sources: Sources;
  readonly #asking: Asking;
  readonly #closing = new AbortController();
  /** Failed rounds in a row by source, and the monotonic time until which the source is not asked. */
  readonly #failed = new Map<string, { failures: number; untilMs: number }>();
  #ended: Promise<unknown> = Promise.resolve();

  constructor(world: World, stored: Stored, sources: Sources, asking: Asking) {
    this.#world = world;
    this.#stored = stored;
    this.#sources = sources;
    this.#asking = asking;
  }

  start(): void {
    this.#ended = this.#run();
  }

  /** Ends all waits and requests. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the gateway is stopping'));
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { clock, changes } = this.#world;
    const sources = this.#sources;
    const { signal } = this.#closing;
    if (!(await untilOurs(this.#world, ASKING_WORK, signal))) return;
    let woken = new AbortController();
    let makers = sources.makers();
    const unwatch = changes.watch((topic) => {
      if (topic === 'sources' || (topic === 'orders' && makers.length > 0)) woken.abort(topic);
    });
    while (!signal.aborted) {
      woken = new AbortController();
      makers = sources.makers();
      const over = AbortSignal.any([signal, woken.signal]);
      if (makers.length === 0) {
        if (!over.aborted) await new Promise((resolve) => over.addEventListener('abort', resolve, { once: true }));
        continue;
      }
      await Promise.all(makers.map((it) => this.#round(it)));
      const waitMs = Math.min(...makers.map((it) => this.#leftAloneMs(it)));
      await clock.sleep(waitMs, over);
      await clock.sleep(PAUSE_MS, signal);
    }
    unwatch();
  }

  /** Returns the time until the next round of a source. */
  #leftAloneMs({ source }: Maker): number {
    const { untilMs } = this.#failed.get(source.name) ?? {};
    return untilMs === undefined ? INTERVAL_MS : Math.max(0, untilMs - this.#world.clock.monotonicMs());
  }

  /** Runs one round. Never throws: after a failure the source is not asked for a while. */
  async #round({ source, maker }: Maker): Promise<void> {
    const { clock, log } = this.#world;
    const { of: askOf } = this.#asking;
    const { name } = source;
    const { signal } = this.#closing;
    const { failures = 0, untilMs = 0 } = this.#failed.get(name) ?? {};
    if (clock.monotonicMs() < untilMs) return;
    const ask = askOf(source);
    try {
      await this.#endAll(source, maker, (url, request) => ask(url, { ...request, signal }));
      this.#failed.delete(name);
    } catch (error) {
      if (signal.aborted) return;
      const waitMs = Math.min(FAILED_WAIT_MS * 2 ** failures, FAILED_WAIT_MS_MAX);
      this.#failed.set(name, { failures: failures + 1, untilMs: clock.monotonicMs() + waitMs });
      log.warn('payment-requests-not-ended', { source: name, reason: reasonOf(error), waitMs });
    }
  }

  /**
   * Ends all due requests of a source. A failed one does not stop the others; the first failure is thrown at the end.
   */
  async #endAll(source: Source, maker: QrMaker, ask: AskSource): Promise<void> {
    const { store } = this.#stored;
    const { clock } = this.#world;
    const failed: unknown[] = [];
    const nowMs = clock.wallMs();
    for (const request of await store.paymentRequests.end(source.name, nowMs, nowMs - CREDIT_FRESH_MS, ENDED_MAX)) {
      this.#closing.signal.throwIfAborted();
      await this.#end(source, maker, request, ask).catch((error: unknown) => failed.push(error));
    }
    if (failed.length > 0) throw failed[0];
  }

  async #end(source: Source, maker: QrMaker, { order_code, isPaid }: EndedRequest, ask: AskSource): Promise<void> {
    const { store } = this.#stored;
    const { clock, log } = this.#world;
    const { receiveCredit, heard } = this.#asking;
    if (!isPaid) await maker.cancel(order_code, ask);
    const { isOver, listed } = await maker.look(order_code, ask);
    const nowMs = clock.wallMs();
    // A young credit is left to its webhook, so that the boxes announce it.
    const young = listed.credits.filter((it) => nowMs - (it.bankTimeMs ?? 0) <= CREDIT_FRESH_MS);
    for (const credit of listed.credits.filter((it) => !young.includes(it))) {
      const { result, report } = await receiveCredit(source.name, credit, true);
      report();
      if (result !== 'duplicate') heard(source.name, result);
    }
    for (const reason of listed.unread) log.warn('source-entry-skipped', { source: source.name, reason });
    if (!isOver || young.length > 0) return;
    await store.paymentRequests.close(source.name, order_code, nowMs);
    log.info('payment-request-closed', { source: source.name, orderCode: order_code });
  }
}
