import type { Entry } from '../../box/entry.ts';
import { RECENT_MAX, REMEMBERED_MAX, UNSENT_MAX } from '../../box/state.ts';

/** What is settled and older than this is forgotten. */
export const SETTLED_AGE_MAX_MS = 30 * 86_400_000;
/** A calendar further ahead than this of the newest time that the gateway has told is not believed: it deletes nothing. */
const AHEAD_MAX_MS = 7 * 86_400_000;

/** What an entry is a fact of: a second one with the same key says nothing more. */
export function keyOf(entry: Entry): string {
  if (entry.kind === 'acked') return `acked ${entry.ids.length} ${entry.ids[0]}`;
  // An account that comes back is told once more.
  if (entry.kind === 'account') return `account ${entry.account.bankAccount} ${entry.announcedAtMs}`;
  return `${entry.kind} ${idOf(entry)}`;
}

/** Whether some entry is so old that a compaction at this calendar time would forget it if it is settled. */
export function hasAged(entries: readonly Entry[], wallMs: number): boolean {
  return agedUpTo(entries, wallMs) >= 0;
}

/**
 * Which entries (indices, ascending) a journal needs to restore the same box: pushes that never ended, reports that are
 * still owed, the account that people were told of, and as many of the newest ends and payments as a box remembers against repetitions, but the settled ones
 * for `SETTLED_AGE_MAX_MS` only. What is owed stays whatever the clock says, which may be wrong by decades.
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
  newest(RECENT_MAX, (entry) => entry.kind === 'payment' && !isSeen(entry));

  const ids = new Set([...kept].map((index) => idOf(entries[index])));
  entries.forEach((entry, index) => {
    const tells =
      entry.kind === 'acked'
        ? entry.ids.some((id) => ids.has(id))
        : (entry.kind === 'payment-displayed' || entry.kind === 'shown') && ids.has(idOf(entry));
    if (tells) kept.add(index);
  });
  return kept;
}

/** The newest entry whose own time is too long ago; -1 without one. Everything before it is older, whatever it says. */
function agedUpTo(entries: readonly Entry[], wallMs: number): number {
  const newestMs = entries.reduce((newest, entry) => Math.max(newest, ownTimeMs(entry) ?? newest), -Infinity);
  const believedMs = Math.min(wallMs, newestMs + AHEAD_MAX_MS);
  return entries.findLastIndex((entry) => (ownTimeMs(entry) ?? believedMs) < believedMs - SETTLED_AGE_MAX_MS);
}

function ownTimeMs(entry: Entry): number | undefined {
  if (entry.kind === 'push') return entry.order.expiresAtMs;
  return entry.kind === 'payment' ? entry.payment.paidAtMs : undefined;
}

function factsOf(entries: readonly Entry[]) {
  const acked = new Set<string>();
  const seen = new Set<string>();
  const closedLater = new Map<string, number>();
  entries.forEach((entry, index) => {
    if (entry.kind === 'acked') for (const id of entry.ids) acked.add(id);
    else if (entry.kind === 'shown' || entry.kind === 'payment-displayed') seen.add(idOf(entry));
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

/** What `shown`, `told` and `acked` name: a push or a transaction. */
function idOf(entry: Entry | undefined): string {
  switch (entry?.kind) {
    case 'push':
      return entry.order.pushId;
    case 'payment':
      return entry.payment.transactionId;
    case 'payment-displayed':
      return entry.transactionId;
    case 'shown':
    case 'ended':
    case 'refused':
      return entry.pushId;
    default:
      return '';
  }
}
