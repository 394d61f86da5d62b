import { expect, it } from 'vitest';
import { Changes } from '../../src/gateway/common/changes.ts';
import { type Hint, type Place, placeAlone } from '../../src/gateway/common/place.ts';
import { shareChanges } from '../../src/gateway/common/shared-changes.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';

/** The lists that change at one gateway, and what it sends to `others`. */
function gatewayBeside(others: string[]) {
  const clock = new VirtualClock();
  const changes = new Changes();
  const hints: Hint[] = [];
  const place: Place = { ...placeAlone('a'), others: () => others, hint: (hint) => void hints.push(hint) };
  return { clock, changes, hints, shared: shareChanges(changes, place, clock) };
}

it('SHA-6 changes at a gateway are sent to the others together, each list once, and those of others are not sent back', async () => {
  const { clock, changes, hints } = gatewayBeside(['b']);
  const seen: string[] = [];
  changes.watch((topic) => seen.push(topic));
  changes.publish('orders', 'payments');
  changes.publish('orders');
  changes.publishElsewhere('boxes');
  expect([hints, seen]).toEqual([[], ['orders', 'payments', 'orders', 'boxes']]);
  await clock.advance(250);
  expect(hints).toEqual([{ about: 'lists', topics: ['orders', 'payments'] }]);
  changes.publish('faults');
  // Each hint wakes all gateways, so the next one waits until a second has passed.
  await clock.advance(999);
  expect(hints).toHaveLength(1);
  await clock.advance(1);
  expect(hints.slice(1)).toEqual([{ about: 'lists', topics: ['faults'] }]);
});

it('SHA-6 a gateway that is alone or closes sends no changes', async () => {
  const alone = gatewayBeside([]);
  alone.changes.publish('orders');
  const closing = gatewayBeside(['b']);
  closing.changes.publish('orders');
  closing.shared.close();
  closing.changes.publish('payments');
  for (const { clock } of [alone, closing]) await clock.advance(1_000);
  expect([alone.hints, closing.hints]).toEqual([[], []]);
});
