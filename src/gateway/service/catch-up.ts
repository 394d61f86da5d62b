import { z } from 'zod';
import { reasonOf } from '../../lib/errors.ts';
import { parseJson } from '../../lib/http-client.ts';
import type { Store } from '../../store/store.ts';
import type { Context } from '../context.ts';
import type { AskSource, Credit, Source } from '../sources/source.ts';
import { CREDIT_FRESH_MS, type CreditResult, type ReceiveCredit } from './receive-credits.ts';

const INTERVAL_MS = 15 * 60_000;
/** Each period begins so much before the end of the one before: lists get entries late. */
const OVERLAP_MS = 3_600_000;
/** The longest period that is asked for at once, so that a long outage is caught up piece by piece. */
const PERIOD_MS_MAX = 86_400_000;
/** Older credits are payments to nobody, so they are not asked for. */
const LOOKBACK_MS_MAX = 30 * 86_400_000;
/** Waits after a failed list: twice as long each time, up to the interval. */
const FAILED_WAIT_MS = 60_000;
/** Orders that payOS is asked for: the newest that wait for money. */
const ORDER_CODES_MAX = 100;
const ORDERS_READ_MAX = 500;
const LINES_LOGGED_MAX = 10;

/** The last agreement with a source; it survives a restart. */
const agreement = z.object({
  /** Up to this time every credit of the list is in the store. */
  agreedUpToMs: z.number(),
  /** When a list was last read to its end. */
  agreedAtMs: z.number().nullable(),
  /** Credits that no webhook had told. */
  found: z.int(),
  /** When the source last told of something by itself. */
  toldAtMs: z.number().nullable(),
});
type Agreement = z.output<typeof agreement>;

/** A source as the admin sees it. Times are milliseconds since 1970. */
export interface SourceStatus {
  name: string;
  kind: string;
  /** Whether the source has a list that is asked for. */
  hasList: boolean;
  /** When it last told of something by itself. */
  toldAtMs: number | null;
  agreedUpToMs: number | null;
  agreedAtMs: number | null;
  /** Credits that no webhook had told. */
  found: number;
  /** Why the last list could not be read. */
  problem: string | null;
}

export interface CatchUpDeps extends Pick<Context, 'clock' | 'log' | 'changes'> {
  sources: readonly Source[];
  store: Pick<Store, 'setting' | 'replaceSetting'> & { orders: Pick<Store['orders'], 'newest'> };
  receiveCredit: ReceiveCredit;
  heard: (source: string, result: CreditResult) => void;
  /** Asks until `signal` aborts. */
  askUntil: (signal: AbortSignal) => AskSource;
}

interface Caught {
  source: Source;
  agreement: Agreement;
  problem: string | null;
  failures: number;
  /** Ends the wait for the next list. */
  wake: () => void;
}

/**
 * Asks the lists of the sources for credits that no webhook has told: at the start, every 15 minutes, and soon after
 * something was lost (PROTOCOL.md, clauses SRC-27 to SRC-31).
 */
export class CatchUp {
  readonly #deps: CatchUpDeps;
  readonly #closing = new AbortController();
  readonly #all: Map<string, Caught>;
  #ended: Promise<unknown> = Promise.resolve();

  private constructor(deps: CatchUpDeps, all: Caught[]) {
    this.#deps = deps;
    this.#all = new Map(all.map((it) => [it.source.name, it]));
  }

  static async open(deps: CatchUpDeps): Promise<CatchUp> {
    const { store, clock } = deps;
    const all = deps.sources.map(async (source): Promise<Caught> => {
      const fresh: Agreement = {
        agreedUpToMs: clock.wallMs() - CREDIT_FRESH_MS,
        agreedAtMs: null,
        found: 0,
        toldAtMs: null,
      };
      const kept = await store.setting(settingOf(source), () => JSON.stringify(fresh));
      const read = agreement.safeParse(parseJson(kept));
      const known = read.success ? read.data : fresh;
      return { source, agreement: known, problem: null, failures: 0, wake: () => undefined };
    });
    return new CatchUp(deps, await Promise.all(all));
  }

  start(): void {
    const listed = [...this.#all.values()].filter(({ source }) => source.list !== undefined);
    this.#ended = Promise.all(listed.map((it) => this.#run(it)));
  }

  /** Must be called when a source has told something. */
  told(name: string): void {
    const caught = this.#all.get(name);
    if (caught === undefined) return;
    caught.agreement.toldAtMs = this.#deps.clock.wallMs();
    this.#deps.changes.publish('sources');
  }

  /** Must be called when what a source told was not stored: its list is asked soon. */
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
    await this.#ended;
    await Promise.all([...this.#all.values()].map((it) => this.#save(it)));
  }

  #save({ source, agreement }: Caught): Promise<void> {
    return this.#deps.store.replaceSetting(settingOf(source), JSON.stringify(agreement));
  }

  async #run(caught: Caught): Promise<void> {
    const { clock, log, changes } = this.#deps;
    const { signal } = this.#closing;
    const ask = this.#deps.askUntil(signal);
    while (!signal.aborted) {
      let waitMs = INTERVAL_MS;
      try {
        waitMs = await this.#agree(caught, ask);
        if (caught.problem !== null) log.info('source-agrees-again', { source: caught.source.name });
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
      // A list that failed a moment ago would fail again.
      caught.wake = () => {
        caught.wake = () => undefined;
        void clock.sleep(FAILED_WAIT_MS, signal).then(() => woken.abort());
      };
      await clock.sleep(waitMs, AbortSignal.any([signal, woken.signal]));
    }
  }

  /** Reads the list period by period; returns the time to the next one. */
  async #agree(caught: Caught, ask: AskSource): Promise<number> {
    const { clock } = this.#deps;
    const nowMs = clock.wallMs();
    // The clock may have been set back, and the mark be in the future.
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

  /** Returns the time until the oldest credit that was left to its webhook is late. */
  async #readPeriod(
    caught: Caught,
    period: { sinceMs: number; untilMs: number },
    ask: AskSource,
    nowMs: number,
  ): Promise<number> {
    const { log } = this.#deps;
    const { source } = caught;
    const orderCodes = source.kind === 'payos' ? await this.#orderCodes() : [];
    const listed = await source.list?.({ ...period, orderCodes }, ask);
    if (listed === undefined) return INTERVAL_MS;
    const young: number[] = [];
    let found = 0;
    for (const credit of listed.credits) {
      const ageMs = nowMs - credit.bankTimeMs;
      // Its webhook may still come, and then the boxes say it.
      if (ageMs <= CREDIT_FRESH_MS) young.push(CREDIT_FRESH_MS - ageMs + 1);
      else if (await this.#receive(source, credit)) found += 1;
      this.#closing.signal.throwIfAborted();
    }
    for (const line of listed.unread.slice(0, LINES_LOGGED_MAX)) {
      log.warn('source-entry-unread', { source: source.name, reason: line });
    }
    if (found > 0) log.warn('credits-caught-up', { source: source.name, found });
    const { agreement } = caught;
    const upToMs = Math.min(period.untilMs, nowMs - CREDIT_FRESH_MS);
    agreement.agreedUpToMs = Math.max(Math.min(agreement.agreedUpToMs, nowMs), upToMs);
    agreement.agreedAtMs = nowMs;
    agreement.found += found;
    await this.#save(caught);
    return Math.min(INTERVAL_MS, ...young);
  }

  /** Whether nobody had told of it. */
  async #receive(source: Source, credit: Credit): Promise<boolean> {
    const { result, report } = await this.#deps.receiveCredit(source.name, credit, true);
    report();
    if (result === 'duplicate') return false;
    this.#deps.heard(source.name, result);
    return true;
  }

  /** The orders of the partners whose ids may be numbers of payOS, and which wait for money. */
  async #orderCodes(): Promise<number[]> {
    const orders = await this.#deps.store.orders.newest(ORDERS_READ_MAX);
    const waiting = orders.filter(({ status, order_id }) => status !== 'paid' && /^[1-9]\d{0,14}$/.test(order_id));
    return [...new Set(waiting.map(({ order_id }) => Number(order_id)))].slice(0, ORDER_CODES_MAX);
  }
}

function settingOf({ name }: Source): string {
  return `source-${name}`;
}
