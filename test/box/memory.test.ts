import { describe, expect, it } from 'vitest';
import type { Entry } from '../../src/device/box/entry.ts';
import { replay } from '../../src/device/box/memory.ts';
import { REMEMBERED_MAX } from '../../src/device/box/state.ts';
import { drawn, fresh, payment, play, push, registered, uuid } from './support.ts';

const start = () => play(fresh(), [{ type: 'connecting' }, registered]).state;
const pushed = (n: number) => play(start(), [push(n), drawn(n)]).writes;
const many = (count: number) => Array.from({ length: count }, (_, n) => payment(n, { pushId: null }));

it('AGT-5 a payment that was written twice happened once', () => {
  const { writes } = play(start(), [payment(1), payment(2)]);
  const { recentPayments, announced } = replay([...writes, ...writes]);
  expect(recentPayments.map(({ orderId }) => orderId)).toEqual(['DH2', 'DH1']);
  expect(announced).toEqual([uuid(0xc001), uuid(0xc002)]);
});

it('AGT-8 does not bring back an order whose end the gateway has acknowledged, although that was not written down', () => {
  const over: Entry[] = [
    { kind: 'acked', ids: [uuid(1)] },
    { kind: 'ended', pushId: uuid(2), orderId: 'DH2', how: 'dismissed' },
  ];
  const { shown, unsent, closedPushIds } = replay([...pushed(1), ...pushed(2), ...over]);
  expect(shown).toBeUndefined();
  expect(unsent.map(({ id }) => id)).toEqual([uuid(2)]);
  expect(closedPushIds).toContain(uuid(1));
});

describe('of more than can be remembered', () => {
  it('AGT-5 the newest payment is still announced once', () => {
    const { state } = play(start(), many(REMEMBERED_MAX + 1));
    expect(state.announced).toHaveLength(REMEMBERED_MAX);
    expect(play(state, [payment(REMEMBERED_MAX, { pushId: null })]).announcements).toEqual([]);
  });

  it('AGT-5 what this life has announced is not announced again when the journal of an earlier one comes late', () => {
    const earlier = play(start(), many(REMEMBERED_MAX)).writes;
    const living = play(start(), [payment(0xfff, { pushId: null })]).state;
    const { state } = play(living, [{ type: 'journal-read', entries: earlier, intact: true }]);
    expect(play(state, [payment(0xfff, { pushId: null })]).announcements).toEqual([]);
  });
});
