import { describe, expect, it } from 'vitest';
import { activeOrder, type BoxState, UNSENT_MAX } from '../../src/device/box/state.ts';
import { view } from '../../src/device/box/view.ts';
import { fc } from '../support/properties.ts';
import {
  accountDrawn,
  connecting,
  dismiss,
  drawn,
  free,
  paidDrawn,
  payment,
  push,
  registered,
  registeredAt,
  tick,
} from './events.ts';
import { at, LINK, OTHER, uuid, WALL_START_MS } from './samples.ts';
import { fresh, play, ready, revived } from './support.ts';

describe('a restart', () => {
  it('AGT-8 shows the order again that was on the screen, with the time that is left', () => {
    const before = play(ready(), [push(1), drawn(1)]);
    const after = revived(before.writes, at(100_000));
    expect(view(after)).toMatchObject({ kind: 'payment', pushId: uuid(1), secondsLeft: 200 });
    expect(play(after, [drawn(1)]).sends).toEqual([]);
    const welcomed = play(after, [[100_000, registeredAt(100_000)]]);
    expect(view(welcomed.state)).toMatchObject({ kind: 'payment', secondsLeft: 200 });
    expect(welcomed.sends).toEqual([]);
  });

  it.each([
    ['lost', -WALL_START_MS],
    ['set back by hours', -3 * 3_600_000],
    ['set forward by hours', 3 * 3_600_000],
  ])('AGT-8 waits for the gateway to date the order after a restart when the calendar clock was %s', (_how, jumpMs) => {
    const { writes } = play(ready(), [push(1), drawn(1)]);
    const on = (monotonicMs: number) => ({ monotonicMs, wallMs: WALL_START_MS + monotonicMs + jumpMs });
    const after = revived(writes, on(10));
    expect(view(after).kind).toBe('starting');
    const inTime = play(after, [[20, registeredAt(100_000)]]);
    expect(view(inTime.state)).toMatchObject({ kind: 'payment', pushId: uuid(1), secondsLeft: 200 });
    const tooLate = play(after, [[20, registeredAt(300_000)]]);
    expect(view(tooLate.state).kind).toBe('idle');
    expect(tooLate.sends).toMatchObject([{ type: 'ended', pushId: uuid(1), how: 'expired' }]);
    const replaced = play(after, [[20, connecting], push(2)]);
    expect(replaced.state.undatedOrder?.pushId).toBe(uuid(1));
    const ended = play(after, [{ type: 'withdraw', pushId: uuid(1), why: 'cancelled' }, registeredAt(0)]);
    expect(ended.sends).toMatchObject([{ type: 'ended', how: 'withdrawn' }]);
    expect(view(play(after, [payment(1), registeredAt(100_000)]).state).kind).toBe('paid');
    const unknown = play(after, [registeredAt(100_000, LINK, [])]);
    expect(view(unknown.state).kind).toBe('idle');
    expect(unknown.sends).toMatchObject([{ type: 'ended', pushId: uuid(1), how: 'withdrawn' }]);
  });

  it('AGT-8 shows the order after a restart no longer than the gateway says, although the calendar clock is behind', () => {
    const { writes } = play(ready(), [push(1), drawn(1)]);
    const after = revived(writes, at(10_000));
    const welcomed = play(after, [[10_001, registeredAt(290_000)]]);
    expect(view(welcomed.state)).toMatchObject({ kind: 'payment', secondsLeft: 10 });
    const over = play(after, [[10_001, registeredAt(300_000)]]);
    expect(view(over.state).kind).toBe('expired');
    expect(over.sends).toMatchObject([{ type: 'ended', how: 'expired' }]);
    // Later welcomes do not date it again: from the first one on the monotonic clock counts.
    const again = play(welcomed.state, [connecting, registeredAt(900_000)]);
    expect(view(again.state).kind).toBe('payment');
  });

  it('AGT-4 AGT-10 ends a push that was never confirmed after a restart: nobody waits for its QR', () => {
    const { writes } = play(ready(), [push(1)]);
    const after = revived(writes, at(10));
    expect(view(after).kind).toBe('starting');
    const welcomed = play(after, [registered]);
    expect(welcomed.sends).toMatchObject([{ type: 'ended', pushId: uuid(1), how: 'interrupted' }]);
    const acked = play(welcomed.state, [{ type: 'acked', ids: [uuid(1)] }]);
    expect(revived([...writes, ...acked.writes], at(20)).unsent).toEqual([]);
    expect(play(after, [registered, push(1)]).sends.at(-1)).toMatchObject({ code: 'WITHDRAWN' });
  });

  it('AGT-5 announces nothing a second time after a restart', () => {
    const before = play(ready(), [push(1), drawn(1), payment(1), paidDrawn(1)]);
    const after = play(revived(before.writes, at(50)), [[50, registered], payment(1)]);
    expect(after.writes.map(({ kind }) => kind)).toEqual(['account']);
    expect(after.announcements).toEqual([]);
    expect(view(after.state).kind).toBe('idle');
    expect(after.state.recentPayments[0]?.orderId).toBe('DH1');
  });

  it('AGT-5 AGT-10 shows the payments whose screen was not seen after a restart, one after the other, silently', () => {
    const { writes } = play(ready(), [payment(1, { amount: 1_000 }), paidDrawn(1), payment(2), payment(3)]);
    const after = revived(writes, at(50));
    expect(view(after)).toMatchObject({ kind: 'paid', transactionId: uuid(0xc002) });
    const drawnOnce = play(after, [paidDrawn(2)]);
    expect(drawnOnce.writes).toEqual([{ kind: 'payment-displayed', transactionId: uuid(0xc002) }]);
    const next = play(drawnOnce.state, [[10_050, tick]]);
    expect(view(next.state)).toMatchObject({ kind: 'paid', transactionId: uuid(0xc003) });
    const last = play(next.state, [paidDrawn(3), [30_000, tick]]);
    expect(view(last.state).kind).toBe('starting');
    expect([...drawnOnce.announcements, ...next.announcements, ...last.announcements]).toEqual([]);
    const all = [...writes, ...drawnOnce.writes, ...last.writes];
    expect(view(revived(all, at(60))).kind).toBe('starting');
  });

  it('AGT-10 shows a payment that is owed its screen before the order that has it', () => {
    const { writes } = play(ready(), [push(1), drawn(1), free(2)]);
    const after = revived(writes, at(50));
    expect(view(after)).toMatchObject({ kind: 'paid', transactionId: uuid(0xc002) });
    expect(view(play(after, [[10_050, tick]]).state)).toMatchObject({ kind: 'payment', pushId: uuid(1) });
  });

  it('MSG-6 still reports after a restart what was not acknowledged, and nothing else', () => {
    const before = play(ready(), [push(1), drawn(1), dismiss, free(2)]);
    const owed = revived(before.writes, at(50));
    expect(play(owed, [[50, registered]]).sends.map((send) => send.type)).toEqual(['ended', 'paid']);
    const acked = play(before.state, [{ type: 'acked', ids: [uuid(1), uuid(0xc002)] }]);
    const settled = revived([...before.writes, ...acked.writes], at(50));
    expect(play(settled, [[50, registered]]).sends).toEqual([]);
  });

  it('keeps unsent reports of a restart within the same limit as the living box', () => {
    const payments = Array.from({ length: UNSENT_MAX + 5 }, (_, n) => payment(n + 10, { pushId: null }));
    const before = play(ready(), [push(1), drawn(1), dismiss, ...payments]);
    expect(revived(before.writes, at(50)).unsent).toEqual(before.state.unsent);
  });

  it('remembers exactly what the living box knew, at every point of any history', () => {
    const events = fc.array(
      fc.oneof(
        fc.integer({ min: 1, max: 4 }).map((n) => push(n)),
        fc.integer({ min: 1, max: 4 }).map(drawn),
        fc.integer({ min: 1, max: 4 }).map((n) => payment(n)),
        fc.integer({ min: 1, max: 4 }).map((n) => ({ type: 'acked' as const, ids: [uuid(n), uuid(0xc000 + n)] })),
        fc.integer({ min: 1, max: 4 }).map(paidDrawn),
        fc.constantFrom(LINK, OTHER, null).map((link) => registeredAt(0, link)),
        fc.constantFrom(LINK, OTHER).map(accountDrawn),
        fc.constant({ type: 'key' as const, key: 'dismiss' as const }),
      ),
      { maxLength: 30 },
    );
    fc.assert(
      fc.property(events, (history) => {
        const lived = play(fresh(), [connecting, registered, ...history]);
        const after = revived(lived.writes, at(lived.state.nowMs));
        const { stage } = lived.state;
        const active = activeOrder(stage);
        const unconfirmed = active?.displayed === false ? [active.order.pushId] : [];
        const known = ({
          announced,
          unsent,
          recentPayments,
          unconfirmedPayments: untold,
          announcedAccount: toldLink,
        }: BoxState) => ({
          announced,
          unsent: unsent.filter(({ id }) => !unconfirmed.includes(id)),
          recentPayments,
          untold,
          toldLink,
        });
        expect(known(after)).toEqual(known(lived.state));
        expect(activeOrder(after.stage)?.order).toEqual(active?.displayed ? active.order : undefined);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('a journal that comes late', () => {
  const before = () => play(ready(), [push(1), drawn(1), free(2), payment(3), paidDrawn(3)]);
  const late = () => ({ type: 'journal-read' as const, entries: before().writes, intact: true });

  it('AGT-5 AGT-10 a journal that comes late restores what was announced, what is unsent, and the screens that nobody saw', () => {
    const after = play(fresh(), [connecting, registered, late()]);
    expect(after.announcements).toEqual([]);
    expect(after.sends.map((send) => send.type)).toEqual(['paid', 'paid', 'ended']);
    expect(after.sends[2]).toMatchObject({ pushId: uuid(1), how: 'interrupted' });
    expect(view(after.state)).toMatchObject({ kind: 'paid', transactionId: uuid(0xc002) });
    const told = play(after.state, [free(2), payment(3)]);
    expect(told.announcements).toEqual([]);
  });

  it('a journal that comes late removes nothing that this run of the box knows', () => {
    const living = play(fresh(), [registered, payment(3), paidDrawn(3), push(4), drawn(4)]);
    const after = play(living.state, [late()]);
    expect(view(after.state)).toMatchObject({ kind: 'payment', pushId: uuid(4) });
    expect(after.state.announced).toEqual([uuid(0xc002), uuid(0xc003)]);
    expect(after.state.recentPayments.map((it) => it.orderId)).toEqual(['DH3', 'DH2']);
    expect(after.state.unsent.map(({ id }) => id)).toEqual([uuid(0xc002), uuid(0xc003), uuid(1)]);
  });
});
