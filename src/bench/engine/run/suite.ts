import { systemClock } from '../../../lib/clock.ts';
import type { Judged, Result } from '../reports/result.ts';
import type { Entry } from './choice.ts';
import { resultWithoutVerdict } from './run.ts';

/** Runs an entry once. `number` counts entries from 1, `retry` the earlier runs of this one. */
export type RunOnce = (entry: Entry, run: { number: number; retry: number; signal: AbortSignal }) => Promise<Result>;

export interface SuiteOptions {
  target: string;
  /** The number of entries that run at the same time, each on a target of its own. */
  jobs: number;
  /** The number of further runs of an entry that did not pass. */
  retries: number;
  /** Ends the suite at the first entry that did not pass after its retries. */
  failFast: boolean;
  signal: AbortSignal;
  /** Begins an entry. The suite calls both functions in the order of the entries, whichever entry ends first. */
  onBegin(entry: Entry, number: number): void;
  onEnd(result: Judged): void;
}

/**
 * Judges all entries. Those that a signal or `failFast` ended have a result too. Throws only when the bench itself
 * fails.
 */
export async function runSuite(entries: readonly Entry[], runOnce: RunOnce, options: SuiteOptions): Promise<Judged[]> {
  const suite = new Suite(runOnce, options);
  const waiting = entries.map((entry, index) => ({ entry, number: index + 1, over: Promise.withResolvers<Judged>() }));
  const queue = waiting.values();
  const work = async () => {
    // All workers share one queue.
    for (const { entry, number, over } of queue) {
      over.resolve(suite.judged(entry, number));
      await over.promise;
    }
  };
  const working = Promise.all(Array.from({ length: options.jobs }, work));
  // A failure belongs to an entry, which is awaited below.
  working.catch(() => undefined);
  const results: Judged[] = [];
  for (const { entry, number, over } of waiting) {
    options.onBegin(entry, number);
    const result = await over.promise;
    options.onEnd(result);
    results.push(result);
  }
  await working;
  return results;
}

class Suite {
  readonly #runOnce: RunOnce;
  readonly #options: SuiteOptions;
  readonly #failed = new AbortController();
  readonly #signal: AbortSignal;

  constructor(runOnce: RunOnce, options: SuiteOptions) {
    this.#runOnce = runOnce;
    this.#options = options;
    this.#signal = AbortSignal.any([options.signal, this.#failed.signal]);
  }

  /** Runs an entry until it passes or has no retries left. */
  async judged(entry: Entry, number: number): Promise<Judged> {
    const { retries, failFast } = this.#options;
    const earlier: Result[] = [];
    const beganMs = systemClock.monotonicMs();
    try {
      for (;;) {
        this.#signal.throwIfAborted();
        const result = await this.#runOnce(entry, { number, retry: earlier.length, signal: this.#signal });
        const isGood = result.outcome === 'passed' || result.outcome === 'skipped';
        if (isGood) return earlier.length === 0 ? { ...result, earlier } : flaky(result, earlier);
        if (earlier.length < retries) {
          earlier.push(result);
          continue;
        }
        if (failFast) this.#failed.abort(new Error(`"${entry.scenario.name}" ${result.outcome}`));
        return { ...result, earlier };
      }
    } catch (error) {
      if (!this.#signal.aborted) throw error;
      return { ...this.#unjudged(entry), tookMs: systemClock.monotonicMs() - beganMs, earlier };
    }
  }

  #unjudged({ scenario, seed }: Entry): Result {
    const { signal, target } = this.#options;
    if (signal.aborted) return resultWithoutVerdict(scenario, target, seed, signal.reason);
    const { reason } = this.#failed.signal;
    return { ...resultWithoutVerdict(scenario, target, seed, reason), outcome: 'skipped', reason: whyLeft(reason) };
  }
}

function whyLeft(reason: unknown): string {
  return `not judged: --fail-fast, and ${reason instanceof Error ? reason.message : reason}`;
}

function flaky(result: Result, earlier: readonly Result[]): Judged {
  const last = earlier.at(-1);
  const runs = earlier.length + 1;
  return {
    ...result,
    outcome: result.outcome === 'passed' ? 'flaky' : result.outcome,
    reason: `passed only in run ${runs}; run ${runs - 1}: ${last?.reason ?? ''}`,
    where: last?.where,
    earlier,
  };
}
