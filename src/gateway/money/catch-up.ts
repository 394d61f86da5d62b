import { z } from 'zod';
import { reasonOf } from '../../lib/errors.ts';
import { parseJson } from '../../lib/http-client.ts';
import type { World } from '../common/world.ts';
import { CREDIT_FRESH_MS } from '../store/repositories/credit-sides.ts';
import type { Store } from '../store/store.ts';
import type { Asking } from './asking.ts';
import type { AskSource, Credit, Listed, Source, WaitingOrder } from './sources/source.ts';

const INTERVAL_MS = 15 * 60_000;
/** Each period overlaps the one before by this time, because sources list some credits late. */
const OVERLAP_MS = 3_600_000;
/** The longest period of one request, so that the gateway catches up piece by piece after a long outage. */
const PERIOD_MS_MAX = 86_400_000;
/** An older credit pays no order, so it is not asked for. */
const LOOKBACK_MS_MAX = 30 * 86_400_000;
/** How long the gateway waits after a failed list. The wait doubles each time, up to the interval. */
const FAILED_WAIT_MS = 60_000;
/** A source is asked about this many orders at once: the newest unpaid ones. */
const ORDERS_ASKED_MAX = 100;
const ORDERS_READ_MAX = 500;
const LINES_LOGGED_MAX = 10;
/** `toldAtMs` is stored at most once in this time, so that a webhook need not wait for the store. */
const TOLD_KEPT_MS = 60_000;
/** A list that takes longer has no end: 1,000 pages at two requests a second are faster. */
const LIST_TIME_MS_MAX = 600_000;

/** The last agreement with a source. It survives a restart. */
const agreement = z.object({
  /** Every credit of the list up to this time is in the store. */
  agreedUpToMs: z.number(),
  /** When the gateway last read a list to its end. */
  agreedAtMs: z.number().nullable(),
  /** How many credits the gateway found in lists before a webhook reported them. */
  found: z.int(),
  /** When the source last called a webhook. */
  toldAtMs: z.number().nullable(),
});
type Agreement = z.output<typeof agreement>;

/** The state of a source as the admin sees it. Times are milliseconds since 1970. */
export interface SourceStatus {
  name: string;
  kind: string;
  hasList: boolean;
  /** When the source last called a webhook. */
  toldAtMs: number | null;
  agreedUpToMs: number | null;
  agreedAtMs: number | null;
  /** How many credits the gateway found in lists before a webhook reported them. */
  found: number;
  /** The reason why the last list could not be read. */
  problem: string | null;
}

/** The part of a period that the gateway has read so far. */
interface Reading {
  nowMs: number;
  /** The time after which the youngest listed credit counts as missed by its webhook. */
  youngMs: number;
  found: number;
  unread: string[];
}

/** The part of the store that catch-up uses: agreements with sources, and unpaid orders. */
export interface WaitingOrders extends Pick<Store, 'setting' | 'replaceSetting'> {
  orders: { newest: Store['orders']['newest'] };
  paymentRequests: { open: Store['paymentRequests']['open'] };
}

interface Caught {
  source: Source;
  agreement: Agreement;
  problem: string | null;
  failures: number;
  /** The monotonic time at which `toldAtMs` was last stored. */
  toldKeptMs?: number;
  /** Ends the wait for the next list. */
  wake: () => void;
  /** Aborts when the source is removed. */
  ending: AbortController;
  ended: Promise<void>;
}

/**
 * Asks the lists of the sources for credits that no webhook has reported: at the start, every 15 minutes, and soon
 * after a webhook was lost (PROTOCOL.md, clauses SRC-27 to SRC-31).
 */
export class CatchUp {
  readonly #world: World;
  readonly #store: WaitingOrders;
  readonly #asking: Asking;
  readonly #closing = new AbortController();
  readonly #all = new Map<string, Caught>();
  #started = false;

  constructor(world: World, store: WaitingOrders, asking: Asking) {
    this.#world = world;
    this.#store = store;
    this.#asking = asking;
  }

  /** Begins to ask a source. The caller must first remove an older one of the same name. */
  async add(source: Source): Promise<void> {
    const store = this.#store;
    const { clock } = this.#world;
    const fresh: Agreement = {
      agreedUpToMs: clock.wallMs() - CREDIT_FRESH_MS,
      agreedAtMs: null,
      found: 0,
      toldAtMs: null,
    };
    const kept = await store.setting(settingOf(source), () => JSON.stringify(fresh));
    const read = agreement.safeParse(parseJson(kept));
    const known = read.success ? read.data : fresh;
    const caught = { source, agreement: known, problem: null, failures: 0, wake: () => undefined };
    const begun: Caught = { ...caught, ending: new AbortController(), ended: Promise.resolve() };
    this.#all.set(source.name, begun);
    if (this.#started) this.#begin(begun);
  }

  /** Ends the wait or the request of a source, and never asks it again. */
  async remove(name: string): Promise<void> {
    const caught = this.#all.get(name);
    if (caught === undefined) return;
    this.#all.delete(name);
    caught.ending.abort(new Error('the source is taken away'));
    await caught.ended;
    await this.#save(caught);
  }

  start(): void {
    this.#started = true;
    for (const caught of this.#all.values()) this.#begin(caught);
  }

  #begin(caught: Caught): void {
    if (caught.source.list !== undefined) caught.ended = this.#run(caught);
  }

  /** Records that a source has called a webhook. */
  told(name: string): void {
    const caught = this.#all.get(name);
    if (caught === undefined) return;
    const { clock, changes, log } = this.#world;
    caught.agreement.toldAtMs = clock.wallMs();
    changes.publish('sources');
    if (clock.monotonicMs() - (caught.toldKeptMs ?? Number.NEGATIVE_INFINITY) < TOLD_KEPT_MS) return;
    caught.toldKeptMs = clock.monotonicMs();
    this.#save(caught).catch((error: unknown) => log.warn('source-not-stored', { name, reason: reasonOf(error) }));
  }

  /** Records that a webhook's credit was not stored. The list of the source is then read soon. */
  lost(name: string): void {
    const caught = this.#all.get(name);
    if (caught !== undefined) caught.wake();
  }

  status(): SourceStatus[] {
    return [...this.#all.values()].map(({ source, agreement, problem }) => ({
      name: source.name,
      kind: source.kind,
      hasList: source.list !== undefined,
      ...agreement,
      agreedUpToMs: agreement.agreedAtMs === null ? null : agreement.agreedUpToMs,
      problem,
    }));
  }

  /** Ends all waits and requests. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the gateway is stopping'));
    const all = [...this.#all.values()];
    await Promise.all(all.map((it) => it.ended));
    await Promise.all(all.map((it) => this.#save(it)));
  }

  #save({ source, agreement }: Caught): Promise<void> {
    return this.#store.replaceSetting(settingOf(source), JSON.stringify(agreement));
  }

  async #run(caught: Caught): Promise<void> {
    const { clock, log, changes } = this.#world;
    const signal = AbortSignal.any([this.#closing.signal, caught.ending.signal]);
    const askSource = this.#asking.of(caught.source);
    const ask: AskSource = (url, request) => askSource(url, { ...request, signal });
    while (!signal.aborted) {
      let waitMs = INTERVAL_MS;
      try {
        waitMs = await this.#agree(caught, ask);
        if (caught.problem !== null) log.info('source-recovered', { source: caught.source.name });
        caught.problem = null;
        caught.failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        caught.problem = reasonOf(error);
        waitMs = Math.min(FAILED_WAIT_MS * 2 ** caught.failures, INTERVAL_MS);
        caught.failures += 1;
        log.warn('source-list-failed', { source: caught.source.name, reason: caught.problem, waitMs });
      }
      changes.publish('sources');
      const woken = new AbortController();
      // The gateway waits first, because a list that failed a moment ago would fail again.
      caught.wake = () => {
        caught.wake = () => undefined;
        void clock.sleep(FAILED_WAIT_MS, signal).then(() => woken.abort());
      };
      await clock.sleep(waitMs, AbortSignal.any([signal, woken.signal]));
    }
  }

  /** Reads the list period by period. Returns the time until the next reading. */
  async #agree(caught: Caught, ask: AskSource): Promise<number> {
    const { clock } = this.#world;
    const nowMs = clock.wallMs();
    // Somebody may have set the clock back, and `agreedUpToMs` may be in the future.
    const fromMs = Math.min(caught.agreement.agreedUpToMs, nowMs) - OVERLAP_MS;
    let sinceMs = Math.max(fromMs, nowMs - LOOKBACK_MS_MAX);
    let waitMs = INTERVAL_MS;
    while (sinceMs < nowMs) {
      const untilMs = Math.min(sinceMs + PERIOD_MS_MAX, nowMs);
      const youngMs = await this.#readPeriod(caught, { sinceMs, untilMs }, ask, nowMs);
      waitMs = Math.min(waitMs, youngMs);
      sinceMs = untilMs;
    }
    return waitMs;
  }

  /** Returns the time after which the youngest credit of the period counts as missed by its webhook. */
  async #readPeriod(
    caught: Caught,
    period: { sinceMs: number; untilMs: number },
    ask: AskSource,
    nowMs: number,
  ): Promise<number> {
    const { log, clock } = this.#world;
    const { source, agreement } = caught;
    if (source.list === undefined) return INTERVAL_MS;
    const untilMs = clock.monotonicMs() + LIST_TIME_MS_MAX;
    const reading: Reading = { nowMs, youngMs: INTERVAL_MS, found: 0, unread: [] };
    try {
      for await (const page of source.list({ ...period, orders: await this.#waiting(source) }, ask)) {
        await this.#takePage(caught, page, reading);
        if (clock.monotonicMs() <= untilMs) continue;
        throw new Error(`the list has no end: it was read for ${LIST_TIME_MS_MAX / 60_000} min`);
      }
    } finally {
      agreement.found += reading.found;
      if (reading.found > 0) log.warn('credits-caught-up', { source: source.name, found: reading.found });
      for (const reason of reading.unread) log.warn('source-entry-skipped', { source: source.name, reason });
    }
    const upToMs = Math.min(period.untilMs, nowMs - CREDIT_FRESH_MS);
    agreement.agreedUpToMs = Math.max(Math.min(agreement.agreedUpToMs, nowMs), upToMs);
    agreement.agreedAtMs = nowMs;
    await this.#save(caught);
    return reading.youngMs;
  }

  /** Stores the credits of each page at once. If a later page fails, these are not lost. */
  async #takePage({ source, ending }: Caught, { credits, unread }: Listed, reading: Reading): Promise<void> {
    for (const credit of credits) {
      const ageMs = reading.nowMs - (credit.bankTimeMs ?? 0);
      // A young credit is left to its webhook, so that the boxes announce it.
      if (ageMs <= CREDIT_FRESH_MS) reading.youngMs = Math.min(reading.youngMs, CREDIT_FRESH_MS - ageMs + 1);
      else if (await this.#receive(source, credit)) reading.found += 1;
      ending.signal.throwIfAborted();
      this.#closing.signal.throwIfAborted();
    }
    reading.unread.push(...unread.slice(0, LINES_LOGGED_MAX - reading.unread.length));
  }

  /** Stores a credit. Returns whether it was new. */
  async #receive(source: Source, credit: Credit): Promise<boolean> {
    const { result, report } = await this.#asking.receiveCredit(source.name, credit, true);
    report();
    if (result === 'duplicate') return false;
    this.#asking.heard(source.name, result);
    return true;
  }

  /** Returns the newest unpaid orders. Those whose QR the source made come first. */
  async #waiting(source: Source): Promise<WaitingOrder[]> {
    const { orders, paymentRequests } = this.#store;
    if (source.isAskedByOrder !== true) return [];
    const made = await paymentRequests.open(source.name, ORDERS_ASKED_MAX);
    const requested = made.map((it) => ({ bankAccount: it.bank_account, orderId: '', orderCode: it.order_code }));
    const newest = await orders.newest(ORDERS_READ_MAX);
    const named = newest.filter(({ status, order_id }) => status !== 'paid' && order_id !== '');
    const byName = new Map(named.map((it) => [JSON.stringify([it.bank_account, it.order_id]), it]));
    const others = [...byName.values()].map((it) => ({ bankAccount: it.bank_account, orderId: it.order_id }));
    return [...requested, ...others].slice(0, ORDERS_ASKED_MAX);
  }
}

function settingOf({ name }: Source): string {
  return `source-${name}`;
}
