import { describe, expect, it } from 'vitest';
import { entriesToKeep } from '../../src/device/agent/journal/compaction.ts';
import { entry } from '../../src/device/box/entry.ts';
import { statusView, view } from '../../src/device/box/view.ts';
import { connecting, dismiss, drawn, free, paidDrawn, payment, push, registered, tick } from './events.ts';
import { at, CONFIG, paymentOf, uuid, WALL_START_MS } from './samples.ts';
import { fresh, play, ready, revived, showing } from './support.ts';

const late = (n: number, pushId: string | null) => payment(n, { late: true, pushId });

describe('a late payment', () => {
  it('AGT-14 a late payment is written, listed and reported, but neither announced nor shown', () => {
    const step = play(ready(), [late(1, null)]);
    expect(step.writes).toMatchObject([{ kind: 'payment', payment: { amount: 50_000, late: true } }]);
    expect(step.sends).toMatchObject([{ type: 'paid', recorded: true }]);
    expect(step.announcements).toEqual([]);
    expect(view(step.state)).toMatchObject({ kind: 'idle' });
    expect(statusView(step.state).lastPayment).toMatchObject({ amount: 50_000, late: true });
    const listed = play(step.state, [{ type: 'key', key: 'history' }]).state;
    expect(view(listed)).toMatchObject({ kind: 'history', payments: [{ amount: 50_000 }] });
    expect(play(step.state, [late(1, null)])).toMatchObject({
      writes: [],
      announcements: [],
      sends: [{ type: 'paid' }],
    });
  });

  it('AGT-14 a late payment replaces neither the QR of another order nor another payment on the screen', () => {
    const during = play(showing(), [late(2, null), late(3, uuid(3))]);
    expect(view(during.state)).toMatchObject({ kind: 'payment', pushId: uuid(1) });
    const paid = play(showing(), [free(2), late(3, null)]);
    expect(view(paid.state)).toMatchObject({ kind: 'paid', transactionId: paymentOf(2).transactionId });
    expect(paid.announcements).toHaveLength(1);
  });

  it('AGT-14 a late payment removes the QR that it pays, and the list says why', () => {
    const step = play(showing(), [late(1, uuid(1))]);
    expect(view(step.state)).toMatchObject({ kind: 'history', payments: [{ amount: 50_000 }] });
    expect(step.announcements).toEqual([]);
    const covered = play(showing(), [free(2), late(1, uuid(1)), [9_000, tick]]);
    expect(view(covered.state)).toMatchObject({ kind: 'idle' });
  });

  it('AGT-14 a late payment is not shown after a restart either, and not announced when it comes again', () => {
    const { writes } = play(ready(), [late(1, null)]);
    const again = play(revived(writes, at(0)), [connecting, registered, late(1, null)]);
    expect(view(again.state)).toMatchObject({ kind: 'idle' });
    expect(again.announcements).toEqual([]);
    expect(statusView(again.state).lastPayment).toMatchObject({ late: true });
  });

  it('AGT-14 a late payment is recorded as late also when the disk fails', () => {
    const event = late(1, null);
    const step = play(ready(), [{ type: 'unrecorded', cause: event, reason: 'full' }]);
    expect(step.sends).toMatchObject([{ type: 'paid', recorded: false }]);
    expect(step.announcements).toEqual([]);
  });
});

describe('a payment of another amount than its order asked for', () => {
  it('AGT-5 a payment of another amount shows what is due on screen and in the status, and announces the amount that came', () => {
    const due = { amount: 50_000, paid: 30_000 };
    const step = play(showing(), [push(1), payment(1, { amount: 30_000, pushId: null, due })]);
    expect(view(step.state)).toMatchObject({ kind: 'paid', amount: 30_000, due });
    expect(statusView(step.state).lastPayment).toMatchObject({ due });
    expect(step.announcements).toMatchObject([{ amount: 30_000 }]);
    const back = play(step.state, [paidDrawn(1), [9_000, tick], drawn(1)]).state;
    expect(view(back)).toMatchObject({ kind: 'payment', pushId: uuid(1) });
  });

  it('AGT-5 what is due is known after a restart, and an entry of an earlier version has nothing due', () => {
    const { late: _late, due: _due, ...older } = play(ready(), [payment(1)]).announcements[0] ?? {};
    const read = entry.parse({ kind: 'payment', payment: older, pushId: null });
    expect(read).toMatchObject({ payment: { late: false, due: null } });
  });
});

describe('the mark of a sandbox', () => {
  const welcomed = (sandboxMark: boolean) => ({ ...registered, type: 'registered', sandboxMark }) as typeof registered;
  const marked = (state: Parameters<typeof view>[0]) => 'sandbox' in view(state);

  it('AGT-15 the mark of a sandbox is on every screen from the welcome that asks for it until one does not', () => {
    const before = play(fresh(), [connecting]).state;
    expect(marked(before)).toBe(false);
    const step = play(before, [welcomed(true)]);
    expect(step.writes).toMatchObject([{ kind: 'mark', shown: true }, { kind: 'account' }]);
    for (const events of [[], [push(1)], [payment(1)], [push(1), dismiss]]) {
      expect(marked(play(step.state, events).state)).toBe(true);
    }
    const again = play(step.state, [connecting, welcomed(true)]);
    expect(again.writes).toEqual([]);
    const live = play(step.state, [connecting, welcomed(false)]);
    expect(live.writes).toMatchObject([{ kind: 'mark', shown: false }]);
    expect(marked(live.state)).toBe(false);
  });

  it('AGT-15 the mark of a sandbox is there after a restart without the gateway, and gone after one that followed a live welcome', () => {
    const first = play(fresh(), [connecting, welcomed(true)]);
    expect(marked(revived(first.writes, at(0)))).toBe(true);
    const second = play(first.state, [connecting, welcomed(false)]);
    expect(marked(revived([...first.writes, ...second.writes], at(0)))).toBe(false);
  });

  it('AGT-15 the mark of a sandbox follows the newest welcome when the journal is read late', () => {
    const entries = play(fresh(), [connecting, welcomed(true)]).writes;
    const read = { type: 'journal-read', entries, intact: true } as const;
    expect(marked(play(fresh(), [read]).state)).toBe(true);
    const step = play(fresh(), [connecting, welcomed(false), read]);
    expect(marked(step.state)).toBe(false);
    expect(step.writes.at(-1)).toMatchObject({ kind: 'mark', shown: false });
  });

  it('AGT-15 the mark of a sandbox is off where the configuration of the box says so', () => {
    const off = { ...fresh(), config: { ...CONFIG, sandboxMark: false } };
    expect(marked(play(off, [connecting, welcomed(true)]).state)).toBe(false);
  });
});

it('AGT-14 an old late payment does not age the newer ones before it', () => {
  const fortyDaysMs = 40 * 86_400_000;
  const { writes } = play(ready(), [
    payment(1),
    payment(2, { late: true, pushId: null, paidAtMs: WALL_START_MS - fortyDaysMs }),
  ]);
  const acked = { kind: 'acked' as const, ids: [1, 2].map((n) => paymentOf(n).transactionId) };
  const kept = entriesToKeep([...writes, acked, ...many()], WALL_START_MS);
  expect(kept.has(0)).toBe(true);
});

/** More payments than the list shows, so that the first are kept only for what they prevent. */
function many() {
  return [3, 4, 5, 6, 7, 8, 9].flatMap((n) => play(ready(), [payment(n)]).writes);
}
