import { describe, expect, it } from 'vitest';
import { entriesToKeep } from '../../src/device/agent/journal/compaction.ts';
import type { BoxEvent } from '../../src/device/box/state.ts';
import { statusView, view } from '../../src/device/box/view.ts';
import { connecting, dismiss, payment, push, registered, registeredAt, tick } from './events.ts';
import { at, LINK, paymentOf, uuid, WALL_START_MS } from './samples.ts';
import { fresh, play, revived } from './support.ts';

const SANDBOX: BoxEvent = { ...registered, sandbox: true, sandboxMark: true } as BoxEvent;
const OTHER = { ...LINK, bankAccount: 'SHOP2ACC' };
const free = (n: number) => payment(n, { pushId: null, orderId: '', content: `test ${n}` });
const drawn = (n: number): BoxEvent => ({ type: 'drawn', pushId: uuid(n), transactionId: undefined });
const transactionOf = (n: number) => paymentOf(n).transactionId;

/** Two payments, of which the second waits for the screen, behind the first and a QR. */
const played = (welcome: BoxEvent) => play(fresh(), [connecting, welcome, push(1), drawn(1), free(2), free(3)]);

describe.each([
  ['once the gateway is live', SANDBOX, registered, 'payment'],
  // Whoever has paid at this moment sees the end of it.
  ['once another account is linked', registered, registeredAt(0, OTHER), 'paid'],
])('AGT-16 payments of before, %s,', (_what, before, after, shown) => {
  it('payments of before are neither listed, in the status, on the screen nor shown later, also after a restart', () => {
    const first = played(before);
    expect(view(first.state)).toMatchObject({ kind: 'paid', transactionId: transactionOf(2) });
    const next = play(first.state, [connecting, after]);
    expect(view(next.state).kind).toBe(shown);
    expect(
      view(
        play(next.state, [
          [30_000, tick],
          [60_000, tick],
        ]).state,
      ).kind,
    ).not.toBe('paid');
    expect(next.writes.filter(({ kind }) => kind === 'payment-dropped')).toEqual(
      [3, 2].map((n) => ({ kind: 'payment-dropped', transactionId: transactionOf(n) })),
    );
    expect(next.announcements).toEqual([]);
    const writes = [...first.writes, ...next.writes];
    const kept = entriesToKeep(writes, WALL_START_MS);
    const states = [
      next.state,
      revived(writes, at(0)),
      revived(
        writes.filter((_, i) => kept.has(i)),
        at(0),
      ),
    ];
    for (const state of states) {
      expect(state.recentPayments).toEqual([]);
      expect(state.unconfirmedPayments).toEqual([]);
      expect(statusView(state).lastPayment).toBeNull();
      const listed = play({ ...state, stage: { kind: 'idle' } }, [{ type: 'key', key: 'history' }]).state;
      expect(view(listed).kind).not.toBe('history');
      expect(play(state, [free(2)])).toMatchObject({ announcements: [], sends: [{ type: 'paid' }] });
    }
  });

  it('payments of before leave the list that is on the screen', () => {
    const first = played(before).state;
    const listed = play(first, [[20_000, dismiss], dismiss, dismiss, dismiss, { type: 'key', key: 'history' }]).state;
    expect(view(listed)).toMatchObject({ kind: 'history', payments: [{}, {}] });
    expect(view(play(listed, [connecting, after]).state).kind).not.toBe('history');
  });

  it('payments of before are dropped as well when the journal is read late', () => {
    const read: BoxEvent = { type: 'journal-read', entries: played(before).writes, intact: true };
    const step = play(fresh(), [connecting, after, read]);
    expect(step.state.recentPayments).toEqual([]);
    expect(step.state.unconfirmedPayments).toEqual([]);
  });
});

describe('AGT-16 a box', () => {
  it('AGT-16 a box keeps its own payments: money at a live gateway, tests in a sandbox, entries of an earlier version', () => {
    for (const welcome of [SANDBOX, registered]) {
      const again = play(played(welcome).state, [connecting, welcome]);
      expect(again.state.recentPayments).toHaveLength(2);
      expect(again.writes).toEqual([]);
    }
    const older = played(registered).writes.map((it) =>
      it.kind === 'payment' ? { ...it, payment: { ...it.payment, bankAccount: undefined } } : it,
    );
    const step = play(revived(older, at(0)), [connecting, registeredAt(0, OTHER)]);
    expect(step.state.recentPayments).toHaveLength(2);
  });

  it('AGT-16 a box keeps money beside the tests that it drops, in its order', () => {
    const first = play(fresh(), [
      connecting,
      registered,
      free(2),
      connecting,
      SANDBOX,
      free(3),
      connecting,
      registered,
    ]);
    expect(first.state.recentPayments.map((it) => it.transactionId)).toEqual([transactionOf(2)]);
    expect(view(first.state)).toMatchObject({ kind: 'paid', transactionId: transactionOf(2) });
  });
});
