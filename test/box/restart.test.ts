import { expect, it } from 'vitest';
import { activeOrder } from '../../src/device/box/state.ts';
import { view } from '../../src/device/box/view.ts';
import { connecting, dismiss, drawn, payment, push, registered, registeredAt } from './events.ts';
import { at, uuid, WALL_START_MS } from './samples.ts';
import { fresh, play, revived } from './support.ts';

const shownOnce = () => play(fresh(), [connecting, registered, push(1), drawn(1)]).writes;
/** A box that cannot date its order, because its calendar clock was lost. */
const undated = () => revived(shownOnce(), { monotonicMs: 10, wallMs: 0 });

it('AGT-8 an order counts the moment in which its lifetime begins', () => {
  const after = revived(shownOnce(), at(0));
  expect(view(after)).toMatchObject({ kind: 'payment', secondsLeft: 300 });
  expect(revived(shownOnce(), at(-1)).undatedOrder?.pushId).toBe(uuid(1));
});

it('AGT-8 an order keeps an end that the calendar clock makes too early: nobody waits longer in front of a QR', () => {
  const after = revived(shownOnce(), at(200_000));
  const welcomed = play(after, [[200_010, registeredAt(50_000)]]);
  expect(view(welcomed.state)).toMatchObject({ kind: 'payment', secondsLeft: 100 });
});

it('AGT-8 a payment ends the order that waits for the time of the gateway', () => {
  const paid = play(undated(), [payment(1), registeredAt(100_000), dismiss]);
  expect(activeOrder(paid.state.stage)).toBeUndefined();
  expect(view(paid.state).kind).toBe('idle');
});

it('MSG-8 a refusal ends the order that waits for the time of the gateway, and its end is owed', () => {
  const refused = play(undated(), [{ type: 'refused', code: 'NOT_REGISTERED', reason: 'no such box' }]);
  expect(refused.writes).toEqual([{ kind: 'ended', pushId: uuid(1), orderId: 'DH1', how: 'withdrawn' }]);
  expect(play(refused.state, [registeredAt(0)]).sends).toMatchObject([{ type: 'ended', pushId: uuid(1) }]);
});

it('reports no second end of an order that this life has ended before the journal came', () => {
  const living = play(fresh(), [registered, { type: 'withdraw', pushId: uuid(1), why: 'cancelled' }]);
  const late = play(living.state, [{ type: 'journal-read', entries: shownOnce(), intact: true }]);
  expect(late.sends).toEqual([]);
  expect(late.writes).toEqual([]);
});

it('AGT-11 counts as said before only what was paid before the first welcome of this life', () => {
  const living = play(fresh(), [registeredAt(1_000), connecting, registeredAt(9_000)]).state;
  const paidAt = (ms: number) => payment(1, { pushId: null, repeated: true, paidAtMs: WALL_START_MS + ms });
  expect(play(living, [paidAt(999)]).announcements).toHaveLength(0);
  expect(play(living, [paidAt(1_000)]).announcements).toHaveLength(1);
});
