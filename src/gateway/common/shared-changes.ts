import type { Clock } from '../../lib/clock.ts';
import type { Changes, Topic } from './changes.ts';
import type { Place } from './place.ts';

/** Changes within this time are sent to the other gateways together. */
const TOGETHER_MS = 250;

/** Sends the changes of lists at this gateway to the others, whose consoles then read the lists again. */
export function shareChanges(changes: Changes, place: Place, clock: Clock): { close(): void } {
  const closing = new AbortController();
  const changed = new Set<Topic>();
  const send = () => {
    if (!closing.signal.aborted) place.hint({ about: 'lists', topics: [...changed] });
    changed.clear();
  };
  const unwatch = changes.watch((topic, isHere) => {
    if (!isHere || place.others().length === 0) return;
    if (changed.size === 0) void clock.sleep(TOGETHER_MS, closing.signal).then(send);
    changed.add(topic);
  });
  return {
    close: () => {
      unwatch();
      closing.abort();
    },
  };
}
