import { describe, expect, it } from 'vitest';
import type { Entry } from '../../src/device/box/entry.ts';
import { replay } from '../../src/device/box/memory.ts';
import { REMEMBERED_MAX } from '../../src/device/box/state.ts';
import { drawn, free, payment, push } from './events.ts';
import { uuid } from './samples.ts';
import { play, ready } from './support.ts';

const pushed = (n: number) => play(ready(), [push(n), drawn(n)]).writes;
const many = (count: number) => Array.from({ length: count }, (_, n) => free(n));

it('AGT-5 a payment that was written twice happened once', () => {
  const { writes } = play(ready(), [payment(1), payment(2)]);
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
  it('AGT-5 the newest of more payments than can be remembered is still announced once', () => {
    const { state } = play(ready(), many(REMEMBERED_MAX + 1));
    expect(state.announced).toHaveLength(REMEMBERED_MAX);
    expect(play(state, [free(REMEMBERED_MAX)]).announcements).toEqual([]);
  });

  it('AGT-5 what this run has announced is not announced again when a long journal of an earlier one comes late', () => {
    const earlier = play(ready(), many(REMEMBERED_MAX)).writes;
    const living = play(ready(), [free(0xfff)]).state;
    const { state } = play(living, [{ type: 'journal-read', entries: earlier, intact: true }]);
    expect(play(state, [free(0xfff)]).announcements).toEqual([]);
  });
});
