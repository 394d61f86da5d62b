import type { Clock } from '../../lib/clock.ts';
import type { Changes, Topic } from './changes.ts';
import type { Place } from './place.ts';

/** Changes within this time are sent to the other gateways together. */
const TOGETHER_MS = 250;
/** A gateway sends changes at most this often: each hint wakes the sessions of all gateways at the database. */
const SEND_EVERY_MS = 1_000;

/** Sends the changes of lists at this gateway to the others, whose consoles then read the lists again. */
export function shareChanges(changes: Changes, place: Place, clock: Clock): { close(): void } {
  const closing = new AbortController();
  const changed = new Set<Topic>();
  let nextSendMs = Number.NEGATIVE_INFINITY;
  const send = () => {
    nextSendMs = clock.monotonicMs() + SEND_EVERY_MS;
    if (!closing.signal.aborted) place.hint({ about: 'lists', topics: [...changed] });
    changed.clear();
  };
  const unwatch = changes.watch((topic, isHere) => {
    if (!isHere || place.others().length === 0) return;
    const waitMs = Math.max(TOGETHER_MS, nextSendMs - clock.monotonicMs());
    if (changed.size === 0) void clock.sleep(waitMs, closing.signal).then(send);
    changed.add(topic);
  });
  return {
    close: () => {
      unwatch();
      closing.abort();
    },
  };
}
