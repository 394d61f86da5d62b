import { expect, it } from 'vitest';
import { IN_FLIGHT_MAX, RESEND_MS, UNSENT_MAX } from '../../src/device/box/state.ts';
import { connecting, dismiss, drawn, free, paidDrawn, push, registeredAt, tick } from './events.ts';
import { uuid } from './samples.ts';
import { fresh, play } from './support.ts';

/** Orders that each were on the screen and have ended: as many reports of it are owed. */
const ended = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => [push(from + n), drawn(from + n), dismiss]).flat();
const online = () => play(fresh(), [connecting, registeredAt(0)]).state;
const owed = (state: { unsent: readonly { id: string }[] }) => state.unsent.map(({ id }) => id);

it('MSG-6 never drops a payment for ended orders, however old it is', () => {
  const paid = play(online(), [free(1), paidDrawn(1), dismiss, connecting]);
  const { state } = play(paid.state, ended(10, UNSENT_MAX + 3));
  expect(owed(state)).toHaveLength(UNSENT_MAX);
  expect(owed(state)[0]).toBe(uuid(0xc001));
  expect(owed(state)[1]).toBe(uuid(10 + 4));
});

it('MSG-6 gives reports in flight their whole time again after each acknowledgement', () => {
  const two = play(online(), [free(1), free(2)]);
  const sentMs = two.state.nowMs - 1;
  const late = play(two.state, [[sentMs + 9_000, { type: 'acked', ids: [uuid(0xc001)] }]]);
  expect(play(late.state, [[sentMs + RESEND_MS, tick]]).sends).toEqual([]);
  const again = play(late.state, [[sentMs + 9_000 + RESEND_MS, tick]]);
  expect(again.sends).toMatchObject([{ type: 'paid', transactionId: uuid(0xc002) }]);
});

it('MSG-6 sends others in the place of reports that were dropped in flight', () => {
  const { state } = play(online(), ended(10, UNSENT_MAX + IN_FLIGHT_MAX));
  expect(state.inFlight).toEqual(owed(state).slice(0, IN_FLIGHT_MAX));
});
