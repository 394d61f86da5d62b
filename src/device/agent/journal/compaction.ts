import type { Entry } from '../../box/entry.ts';
import { RECENT_MAX, REMEMBERED_MAX, UNSENT_MAX } from '../../box/state.ts';

/** Compaction removes settled entries that are older than this. */
export const SETTLED_AGE_MAX_MS = 30 * 86_400_000;
/** A calendar that is further ahead of the gateway's newest time than this is not trusted, and removes nothing. */
const AHEAD_MAX_MS = 7 * 86_400_000;

/** Entries of these kinds record that a push or a payment need not be shown any more. */
const SETTLING: readonly Entry['kind'][] = ['shown', 'payment-displayed', 'payment-dropped'];

/** Identifies the fact that an entry records. A second entry with the same key adds nothing. */
export function keyOf(entry: Entry): string {
  if (entry.kind === 'acked') return `acked ${entry.ids.length} ${entry.ids[0]}`;
  // The box announces an account again that comes back.
  if (entry.kind === 'account') return `account ${entry.account.bankAccount} ${entry.announcedAtMs}`;
  if (entry.kind === 'mark') return `mark ${entry.shown} ${entry.changedAtMs}`;
  if (entry.kind === 'clock') return `clock ${entry.bootId} ${entry.bootMs}`;
  return `${entry.kind} ${idOf(entry)}`;
}

/** Returns whether an entry is so old that compaction at this calendar time removes it once it is settled. */
export function hasAged(entries: readonly Entry[], wallMs: number): boolean {
  return agedUpTo(entries, wallMs) >= 0;
}

/**
 * Returns the entries (indices, ascending) that a journal needs to restore the same box: unfinished pushes,
 * unacknowledged reports, the announced account, and the newest ends and payments, which detect repetitions. Settled
 * ones stay for `SETTLED_AGE_MAX_MS` only. Unacknowledged reports stay forever, because the clock may be wrong by
 * decades.
 */
export function entriesToKeep(entries: readonly Entry[], wallMs: number): Set<number> {
  const { isOwed, isOpen, isSeen } = factsOf(entries);
  const aged = agedUpTo(entries, wallMs);
  const kept = new Set<number>();
  const newest = (max: number, wanted: (entry: Entry, index: number) => boolean) => {
    let left = max;
    for (let index = entries.length - 1; index >= 0 && left > 0; index -= 1) {
      const entry = entries[index];
      if (entry === undefined || !wanted(entry, index)) continue;
      kept.add(index);
      left -= 1;
    }
  };
  newest(UNSENT_MAX, (entry, index) => isOpen(entry, index) && isOwed(entry));
  newest(1, (entry, index) => isOpen(entry, index) && isOwed(entry) && isSeen(entry));
  newest(UNSENT_MAX, (entry) => entry.kind === 'ended' && isOwed(entry));
  newest(UNSENT_MAX, (entry) => entry.kind === 'payment' && isOwed(entry));
  newest(REMEMBERED_MAX, (entry, index) => index > aged && closesAPush(entry));
  newest(REMEMBERED_MAX, (entry, index) => index > aged && entry.kind === 'payment');
  newest(RECENT_MAX, (entry) => entry.kind === 'payment');
  newest(1, (entry) => entry.kind === 'account');
  newest(1, (entry) => entry.kind === 'mark');
  newest(1, (entry) => entry.kind === 'clock');
  newest(RECENT_MAX, (entry) => entry.kind === 'payment' && !entry.payment.late && !isSeen(entry));

  const ids = new Set([...kept].map((index) => idOf(entries[index])));
  entries.forEach((entry, index) => {
    const tells =
      entry.kind === 'acked'
        ? entry.ids.some((id) => ids.has(id))
        : ids.has(idOf(entry)) && SETTLING.includes(entry.kind);
    if (tells) kept.add(index);
  });
  return kept;
}

/**
 * Returns the index of the newest entry that is too old by its own time; -1 if none. All entries before it are older.
 */
function agedUpTo(entries: readonly Entry[], wallMs: number): number {
  const newestMs = entries.reduce((newest, entry) => Math.max(newest, ownTimeMs(entry) ?? newest), -Infinity);
  const believedMs = Math.min(wallMs, newestMs + AHEAD_MAX_MS);
  return entries.findLastIndex((entry) => (ownTimeMs(entry) ?? believedMs) < believedMs - SETTLED_AGE_MAX_MS);
}

function ownTimeMs(entry: Entry): number | undefined {
  if (entry.kind === 'push') return entry.order.expiresAtMs;
  // A late payment is old news, however new its entry is.
  return entry.kind === 'payment' && !entry.payment.late ? entry.payment.paidAtMs : undefined;
}

function factsOf(entries: readonly Entry[]) {
  const acked = new Set<string>();
  const seen = new Set<string>();
  const closedLater = new Map<string, number>();
  entries.forEach((entry, index) => {
    if (entry.kind === 'acked') for (const id of entry.ids) acked.add(id);
    else if (SETTLING.includes(entry.kind)) seen.add(idOf(entry));
    else if (closesAPush(entry)) closedLater.set(pushIdOf(entry), index);
  });
  return {
    isOwed: (entry: Entry) => !acked.has(idOf(entry)),
    isOpen: (entry: Entry, index: number) => entry.kind === 'push' && (closedLater.get(idOf(entry)) ?? -1) < index,
    isSeen: (entry: Entry) => seen.has(idOf(entry)),
  };
}

function closesAPush(entry: Entry): boolean {
  return entry.kind === 'ended' || entry.kind === 'refused' || (entry.kind === 'payment' && entry.pushId !== null);
}

function pushIdOf(entry: Entry): string {
  if (entry.kind === 'payment') return entry.pushId ?? '';
  return idOf(entry);
}

/** Returns the push or transaction that `shown`, `told` and `acked` entries name. */
function idOf(entry: Entry | undefined): string {
  switch (entry?.kind) {
    case 'push':
      return entry.order.pushId;
    case 'payment':
      return entry.payment.transactionId;
    case 'payment-displayed':
    case 'payment-dropped':
      return entry.transactionId;
    case 'shown':
    case 'ended':
    case 'refused':
      return entry.pushId;
    default:
      return '';
  }
}
