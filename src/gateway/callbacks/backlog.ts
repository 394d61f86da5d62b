import { type Clock, withDeadline } from '../../lib/clock.ts';
import type { Backlog } from '../store/repositories/owed.ts';

/** Of one question to the store. */
const ANSWER_TIMEOUT_MS = 2000;
/** Who asks often costs no more than who asks now and then. */
const ANSWER_KEPT_MS = 1000;

export interface BacklogDeps {
  clock: Clock;
  store: { payments: { backlog(): Promise<Backlog> } };
}

/** What partners are still to be told, and what they are not told any more. */
export interface BacklogNow {
  waiting: number;
  /** Dead letters: they are tried again only by hand. */
  failed: number;
  /** Age of the oldest that waits; 0 when none does. */
  oldestWaitingSeconds: number;
  /** Those of them to whom something is owed. */
  partners: Backlog['partners'];
}

/** Tells what is owed to partners; `undefined` while the store does not answer. Never rejects. */
export type BacklogReader = () => Promise<BacklogNow | undefined>;

export function createBacklog({ clock, store }: BacklogDeps): BacklogReader {
  return async () => {
    const asked = store.payments.backlog().catch(() => undefined);
    const backlog = await withDeadline(clock, ANSWER_TIMEOUT_MS, asked);
    if (backlog === undefined) return undefined;
    const { partners, oldestWaitingAtMs } = backlog;
    const sum = (kind: 'waiting' | 'failed') => partners.reduce((count, it) => count + it[kind], 0);
    const ageMs = oldestWaitingAtMs === undefined ? 0 : Math.max(0, clock.wallMs() - oldestWaitingAtMs);
    const oldestWaitingSeconds = Math.round(ageMs / 1000);
    return { waiting: sum('waiting'), failed: sum('failed'), oldestWaitingSeconds, partners };
  };
}

/** The same for whoever may ask often: an answer is given again for a second. */
export function keepBacklog(read: BacklogReader, clock: Clock): BacklogReader {
  let last: { atMs: number; answer: ReturnType<BacklogReader> } | undefined;
  return () => {
    const nowMs = clock.monotonicMs();
    if (last === undefined || nowMs >= last.atMs + ANSWER_KEPT_MS) last = { atMs: nowMs, answer: read() };
    return last.answer;
  };
}
