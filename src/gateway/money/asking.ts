import type { Clock } from '../../lib/clock.ts';
import { askHttp } from '../../lib/http-client.ts';
import type { CreditResult } from '../common/credit-result.ts';
import type { Outside, World } from '../common/world.ts';
import { lookupFor } from '../config/callback-destination.ts';
import type { ReceiveCredit } from './receive-credits.ts';
import type { AskSource, Source } from './sources/source.ts';

/**
 * The work of the gateway that reads the lists of sources and ends their payment requests. One gateway does both, so
 * that only it and the QRs that cashiers wait for use the rate limit of a source.
 */
export const ASKING_WORK = 'asking sources';

interface CreditReceiver {
  receiveCredit: ReceiveCredit;
  /** Counts a credit in the metrics, by source and result. */
  heard(source: string, result: CreditResult): void;
}

/** Reads the lists of sources and receives their credits. */
export interface Asking extends CreditReceiver {
  /** Returns the function that calls this source. All callers of one source share its rate limit. */
  of(source: Source): AskSource;
}

export function createAsking({ clock, outside }: World, to: CreditReceiver): Asking {
  const asked = new WeakMap<Source, AskSource>();
  const of = (source: Source) => {
    const ask = asked.get(source) ?? createAskSource(clock, outside);
    asked.set(source, ask);
    return ask;
  };
  return { of, ...to };
}

const REQUEST_TIMEOUT_MS = 20_000;
const ANSWER_BYTES_MAX = 4_194_304;
/** SePay allows 3 requests a second. */
const PAUSE_MS = 500;
const TOO_MANY = 429;
/** How often one request is sent while the source answers 429. */
const TRIES_MAX = 5;
/** How long the gateway waits after a 429 without a readable `Retry-After`, and at most. */
const RETRY_AFTER_MS = 5_000;
const RETRY_AFTER_MS_MAX = 120_000;

/**
 * Returns a function that calls the API of one source within its rate limit. It refuses the gateway's own ports,
 * link-local and metadata addresses (PROTOCOL.md, clause SRC-31) and follows no redirect. It rejects when the signal of
 * the request aborts.
 */
export function createAskSource(clock: Clock, { ownPorts, lookup }: Outside): AskSource {
  let freeAtMs = 0;
  /** No request is sent before this time, not even an urgent one. */
  let pausedUntilMs = 0;
  const turn = async (isUrgent: boolean, signal: AbortSignal) => {
    const nowMs = clock.monotonicMs();
    const atMs = isUrgent ? nowMs : Math.max(freeAtMs, nowMs);
    if (!isUrgent) freeAtMs = Math.max(atMs, pausedUntilMs) + PAUSE_MS;
    for (;;) {
      signal.throwIfAborted();
      const waitMs = Math.max(atMs, pausedUntilMs) - clock.monotonicMs();
      if (waitMs <= 0) return;
      await clock.sleep(waitMs, signal);
    }
  };
  return async (url, { isUrgent = false, signal = new AbortController().signal, ...request } = {}) => {
    const to = new URL(url);
    for (let tries = 1; ; tries += 1) {
      await turn(isUrgent, signal);
      const answer = await askHttp(
        to,
        { ...request, lookup: lookupFor(to, ownPorts, lookup(signal)), agent: false, signal },
        { timeoutMs: REQUEST_TIMEOUT_MS, bytesMax: ANSWER_BYTES_MAX, clock },
      );
      if (answer.status !== TOO_MANY || tries === TRIES_MAX) return answer;
      pausedUntilMs = clock.monotonicMs() + retryAfterMs(answer.headers['retry-after'], clock.wallMs());
    }
  };
}

/** Returns the wait in milliseconds. `Retry-After` is a number of seconds or a date (RFC 9110). */
function retryAfterMs(value: string | undefined, nowMs: number): number {
  const ms = /^\d+$/.test(value ?? '') ? Number(value) * 1000 : Date.parse(value ?? '') - nowMs;
  return Number.isFinite(ms) ? Math.min(Math.max(ms, PAUSE_MS), RETRY_AFTER_MS_MAX) : RETRY_AFTER_MS;
}
