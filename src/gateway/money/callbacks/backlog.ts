import { type Clock, withDeadline } from '../../../lib/clock.ts';
import type { BacklogCounts } from '../../common/metrics.ts';
import type { Backlog } from '../../store/repositories/callbacks.ts';

const ANSWER_TIMEOUT_MS = 2000;
/** The store is read at most once in this time, however often the backlog is asked for. */
const CACHED_MS = 1000;

/** The number of undelivered callbacks, in total and by partner. */
export interface BacklogNow extends BacklogCounts {
  partners: Backlog['partners'];
}

/** Reads the backlog; `undefined` while the store does not answer. Never rejects. */
export type BacklogReader = () => Promise<BacklogNow | undefined>;

export function createBacklog({
  clock,
  store,
}: {
  clock: Clock;
  store: { callbacks: { backlog(): Promise<Backlog> } };
}): BacklogReader {
  return async () => {
    const asked = store.callbacks.backlog().catch(() => undefined);
    const backlog = await withDeadline(clock, ANSWER_TIMEOUT_MS, asked);
    if (backlog === undefined) return undefined;
    const { partners, oldestWaitingAtMs = clock.wallMs() } = backlog;
    const sum = (kind: 'waiting' | 'failed') => partners.reduce((count, it) => count + it[kind], 0);
    const oldestWaitingSeconds = Math.round(Math.max(0, clock.wallMs() - oldestWaitingAtMs) / 1000);
    return { waiting: sum('waiting'), failed: sum('failed'), oldestWaitingSeconds, partners };
  };
}

/** Returns a reader that reads at most once a second. In between it returns the last answer. */
export function cacheBacklog(read: BacklogReader, clock: Clock): BacklogReader {
  let last: { atMs: number; answer: ReturnType<BacklogReader> } | undefined;
  return () => {
    const nowMs = clock.monotonicMs();
    if (last === undefined || nowMs >= last.atMs + CACHED_MS) last = { atMs: nowMs, answer: read() };
    return last.answer;
  };
}
