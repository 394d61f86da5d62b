import type { Entry } from '../box/entry.ts';
import { REMEMBERED_MAX, UNSENT_MAX } from '../box/state.ts';

/** Pushes that never ended, as after a power cut; older ones are forgotten. */
const OPEN_PUSHES_MAX = 100;

/**
 * Which entries (indices, ascending) a journal needs to restore the same box: pushes that are still open, reports that
 * are still owed, and as many of the newest ends and payments as a box remembers against repetitions.
 */
export function entriesToKeep(entries: readonly Entry[]): Set<number> {
  const acked = new Set(entries.flatMap((entry) => (entry.kind === 'acked' ? entry.ids : [])));
  const closedLater = new Map<string, number>();
  entries.forEach((entry, index) => {
    if (entry.kind === 'ended' || entry.kind === 'refused' || entry.kind === 'payment') {
      if (entry.pushId !== null) closedLater.set(entry.pushId, index);
    }
  });
  const isOpen = (pushId: string, index: number) => (closedLater.get(pushId) ?? -1) < index;

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
  const shown = new Set(entries.flatMap((entry) => (entry.kind === 'shown' ? [entry.pushId] : [])));
  const isOpenPush = (entry: Entry, index: number): entry is Entry & { kind: 'push' } =>
    entry.kind === 'push' && isOpen(entry.order.pushId, index);
  newest(OPEN_PUSHES_MAX, isOpenPush);
  newest(OPEN_PUSHES_MAX, (entry, index) => isOpenPush(entry, index) && shown.has(entry.order.pushId));
  newest(OPEN_PUSHES_MAX, (entry, index) => entry.kind === 'shown' && isOpen(entry.pushId, index));
  newest(REMEMBERED_MAX, closesAPush);
  newest(REMEMBERED_MAX, (entry) => entry.kind === 'payment');
  newest(UNSENT_MAX, (entry) => entry.kind === 'ended' && !acked.has(entry.pushId));
  newest(UNSENT_MAX, (entry) => entry.kind === 'payment' && !acked.has(entry.payment.transactionId));

  const keptReports = new Set([...kept].map((index) => reportIdOf(entries[index])));
  entries.forEach((entry, index) => {
    if (entry.kind === 'acked' && entry.ids.some((id) => keptReports.has(id))) kept.add(index);
  });
  return kept;
}

function closesAPush(entry: Entry): boolean {
  return entry.kind === 'ended' || entry.kind === 'refused' || (entry.kind === 'payment' && entry.pushId !== null);
}

function reportIdOf(entry: Entry | undefined): string | undefined {
  if (entry?.kind === 'ended') return entry.pushId;
  return entry?.kind === 'payment' ? entry.payment.transactionId : undefined;
}
