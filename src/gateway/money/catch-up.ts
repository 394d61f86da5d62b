import { reasonOf } from '../../lib/errors.ts';
import { untilOurs } from '../common/shared-work.ts';
import type { World } from '../common/world.ts';
import { CREDIT_FRESH_MS } from '../store/repositories/credit-sides.ts';
import type { Settings, Store } from '../store/store.ts';
import { type Agreement, Agreements, newest, type SourceStatus } from './agreements.ts';
import { ASKING_WORK, type Asking } from './asking.ts';
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

/** The part of a period that the gateway has read so far. */
interface Reading {
  nowMs: number;
  /** The time after which the youngest listed credit counts as missed by its webhook. */
  youngMs: number;
  found: number;
  unread: string[];
}

/** The part of the store that catch-up uses: agreements with sources, and unpaid orders. */
export interface WaitingOrders extends Settings {
  orders: { newest: Store['orders']['newest'] };
  paymentRequests: { open: Store['paymentRequests']['open'] };
}

interface Caught {
  source: Source;
  /** The stored agreement, and what was read since. Another gateway that asks the source has a newer one. */
  agreement: Agreement;
  failures: number;
  /** When the source last called a webhook of this gateway. */
  toldAtMs: number | null;
  /** The monotonic time at which `toldAtMs` was last stored. */
  toldKeptMs?: number;
  /** Ends the wait for the next list. */
  wake: () => void;
  /** True once this gateway is the one that asks the source. */
  isOurs: boolean;
  /** True while the news that a credit was lost wait for the store. */
  isTelling: boolean;
  /** Aborts when the source is removed. */
  ending: AbortController;
  ended: Promise<void>;
}

/**
 * Asks the lists of the sources for credits that no webhook has reported: at the start, every 15 minutes, and soon
 * after a webhook was lost (PROTOCOL.md, clauses SRC-27 to SRC-31). One gateway of a database does this for all.
 */
export class CatchUp {
  readonly #world: World;
  readonly #store: WaitingOrders;
  readonly #asking: Asking;
  readonly #agreements: Agreements;
  readonly #closing = new AbortController();
  readonly #all = new Map<string, Caught>();
  #started = false;

  constructor(world: World, store: WaitingOrders, asking: Asking) {
    this.#world = world;
    this.#store = store;
    this.#asking = asking;
    this.#agreements = new Agreements(world, store);
  }

  /** Begins to ask a source. The caller must first remove an older one of the same name. */
  async add(source: Source): Promise<void> {
    const agreement = await this.#agreements.open(source.name);
    const fresh = { failures: 0, toldAtMs: null, isOurs: false, isTelling: false, wake: () => undefined };
    const ending = new AbortController();
    const caught: Caught = { source, agreement, ...fresh, ending, ended: Promise.resolve() };
    this.#all.set(source.name, caught);
    if (this.#started) this.#begin(caught);
  }

  /** Ends the wait or the request of a source, and never asks it again. */
  async remove(name: string): Promise<void> {
    const caught = this.#all.get(name);
    if (caught === undefined) return;
    this.#all.delete(name);
    caught.ending.abort(new Error('the source is taken away'));
    await caught.ended.then(() => this.#saveAll(caught));
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
    const atMs = clock.wallMs();
    caught.toldAtMs = atMs;
    changes.publish('sources');
    if (clock.monotonicMs() - (caught.toldKeptMs ?? Number.NEGATIVE_INFINITY) < TOLD_KEPT_MS) return;
    caught.toldKeptMs = clock.monotonicMs();
    const failed = (error: unknown) => log.warn('source-not-stored', { name, reason: reasonOf(error) });
    this.#agreements.saveTold(name, atMs).catch(failed);
  }

  /** Records that a webhook's credit was not stored. The list of the source is then read soon. */
  lost(name: string): void {
    const caught = this.#all.get(name);
    if (caught === undefined) return;
    caught.wake();
    if (caught.isOurs || caught.isTelling) return;
    caught.isTelling = true;
    // The news wait for a store that takes nothing now.
    void this.#world.place.tell({ about: 'credit-lost', source: name }).then(() => {
      caught.isTelling = false;
    });
  }

  /** Makes the list of a source be read soon, because another gateway could not store one of its credits. */
  lostElsewhere(name: string): void {
    this.#all.get(name)?.wake();
  }

  /** Returns the state of each source, as the gateway that asks it has last stored it. Never rejects. */
  async status(): Promise<SourceStatus[]> {
    const stored = await this.#agreements.of([...this.#all.keys()]).catch(() => undefined);
    return [...this.#all.values()].map(({ source: { name, kind, list }, isOurs, ...own }) => {
      const kept = stored?.get(name);
      const { agreedUpToMs, agreedAtMs, found, problem } = isOurs ? own.agreement : (kept ?? own.agreement);
      const toldAtMs = newest(own.toldAtMs, kept?.toldAtMs ?? own.agreement.toldAtMs);
      const agreed = { agreedUpToMs: agreedAtMs === null ? null : agreedUpToMs, agreedAtMs, found, problem };
      return { name, kind, hasList: list !== undefined, toldAtMs, ...agreed };
    });
  }

  /** Ends all waits and requests. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the gateway is stopping'));
    await Promise.all([...this.#all.values()].map((it) => it.ended.then(() => this.#saveAll(it))));
  }

  #save({ source, agreement }: Caught): Promise<void> {
    return this.#agreements.save(source.name, agreement);
  }

  async #saveAll(caught: Caught): Promise<void> {
    const { source, toldAtMs, isOurs } = caught;
    if (isOurs) await this.#save(caught);
    if (toldAtMs !== null) await this.#agreements.saveTold(source.name, toldAtMs);
  }

  async #run(caught: Caught): Promise<void> {
    const { clock, log, changes } = this.#world;
    const signal = AbortSignal.any([this.#closing.signal, caught.ending.signal]);
    if (!(await untilOurs(this.#world, ASKING_WORK, signal))) return;
    const askSource = this.#asking.of(caught.source);
    const ask: AskSource = (url, request) => askSource(url, { ...request, signal });
    while (!signal.aborted) {
      let waitMs = INTERVAL_MS;
      try {
        await this.#takeOver(caught);
        waitMs = await this.#agree(caught, ask);
        if (caught.agreement.problem !== null) log.info('source-recovered', { source: caught.source.name });
        await this.#note(caught, null);
        caught.failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        const problem = reasonOf(error);
        waitMs = Math.min(FAILED_WAIT_MS * 2 ** caught.failures, INTERVAL_MS);
        caught.failures += 1;
        log.warn('source-list-failed', { source: caught.source.name, reason: problem, waitMs });
        await this.#note(caught, problem);
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

  /** Reads the agreement again when this gateway begins to ask the source: another one may have asked it until now. */
  async #takeOver(caught: Caught): Promise<void> {
    if (caught.isOurs) return;
    const { name } = caught.source;
    caught.agreement = (await this.#agreements.of([name])).get(name) ?? caught.agreement;
    caught.isOurs = true;
  }

  /** Stores the reason why the last list could not be read, for all gateways. */
  async #note(caught: Caught, problem: string | null): Promise<void> {
    if (caught.agreement.problem === problem) return;
    caught.agreement.problem = problem;
    await this.#save(caught).catch(() => undefined);
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
