import { describe, expect, it } from 'vitest';
import { restore } from '../../src/box/restore.ts';
import { type BoxEvent, REPEAT_AGE_MAX_MS } from '../../src/box/state.ts';
import { statusView, view } from '../../src/box/view.ts';
import {
  at,
  CONFIG,
  drawn,
  fresh,
  LINK,
  paidDrawn,
  payment,
  play,
  push,
  registered,
  registeredAt,
  showing,
  uuid,
  WALL_START_MS,
} from './support.ts';

const repeat: BoxEvent = { type: 'key', key: 'repeat' };
const dismiss: BoxEvent = { type: 'key', key: 'dismiss' };
const free = (n: number, change = {}) => payment(n, { pushId: null, ...change });
/** Payment 1 was on the screen of this box, which is idle again. */
const paidOnce = () =>
  play(fresh(), [
    ...[{ type: 'connecting' } as const, registered, free(1), paidDrawn(1), dismiss],
    { type: 'acked', ids: [uuid(0xc001)] },
  ]);
const ids = (payments: readonly { transactionId: string }[]) => payments.map((it) => it.transactionId);

describe('AGT-17 the key that repeats', () => {
  it('AGT-17 shows the last payment as one of before, with its time, and says it; nothing of it is written or reported', () => {
    const step = play(paidOnce().state, [[60_000, repeat]]);
    expect(view(step.state)).toEqual({
      ...{ kind: 'repeat', transactionId: uuid(0xc001), amount: 50_000, content: 'DH1' },
      ...{ paidAtMs: WALL_START_MS, online: true },
    });
    expect([ids(step.repeats), step.announcements, step.writes, step.sends]).toEqual([[uuid(0xc001)], [], [], []]);
    expect(statusView(step.state)).toMatchObject({ state: 'idle', order: null });
    expect(view(play(step.state, [[70_000, { type: 'tick' }]]).state).kind).toBe('idle');
    expect(view(play(step.state, [dismiss]).state).kind).toBe('idle');
  });

  // The welcome came at 1 ms and named the time 0.
  it.each([
    [0, REPEAT_AGE_MAX_MS + 1, undefined],
    [0, REPEAT_AGE_MAX_MS + 2, 'old'],
    [0, 7 * 86_400_000, 'old'],
    [-REPEAT_AGE_MAX_MS, 1_000, 'old'],
  ])('AGT-17 of a payment of %i ms, at %i ms, is silent: %s', (paidMs, askedMs, silent) => {
    const paid = play(fresh(), [registered, free(1, { paidAtMs: WALL_START_MS + paidMs }), paidDrawn(1), dismiss]);
    const step = play(paid.state, [[askedMs, repeat]]);
    expect(view(step.state)).toMatchObject(silent === undefined ? { kind: 'repeat' } : { kind: 'repeat', silent });
    expect('silent' in view(step.state)).toBe(silent !== undefined);
    expect(step.repeats).toHaveLength(silent === undefined ? 1 : 0);
  });

  it('AGT-17 says nothing while the box does not know how old the payment is', () => {
    const entries = paidOnce().writes;
    const after = restore(CONFIG, { entries, intact: true }, at(1_000), false);
    const unknown = play(after, [repeat]);
    expect([view(unknown.state), unknown.repeats]).toMatchObject([{ kind: 'repeat', silent: 'undated' }, []]);
    const own = { ...registeredAt(2_000), isOwnTime: true } as BoxEvent;
    expect(play(after, [own, repeat]).repeats).toEqual([]);
    expect(ids(play(after, [registeredAt(2_000), repeat]).repeats)).toEqual([uuid(0xc001)]);
    expect(play(after, [registeredAt(REPEAT_AGE_MAX_MS + 1), repeat]).repeats).toEqual([]);
  });

  it('AGT-17 hides a QR for 3 s, and none whose partner still waits for it', () => {
    const paid = play(showing(), [free(2), paidDrawn(2), [4_000, { type: 'tick' }]]);
    expect(view(paid.state).kind).toBe('payment');
    const over = play(paid.state, [[5_000, repeat]]);
    expect(view(over.state)).toMatchObject({ kind: 'repeat', transactionId: uuid(0xc002) });
    expect(view(play(over.state, [[8_000, { type: 'tick' }]]).state)).toMatchObject({
      kind: 'payment',
      pushId: uuid(1),
    });
    expect(view(play(over.state, [dismiss]).state)).toMatchObject({ kind: 'payment', pushId: uuid(1) });
    const expired = play(over.state, [{ type: 'withdraw', pushId: uuid(1), why: 'cancelled' }]);
    expect(expired.sends).toMatchObject([{ type: 'ended', how: 'withdrawn' }]);
    expect(view(play(expired.state, [[8_000, { type: 'tick' }]]).state).kind).toBe('idle');
    const waits = play(paidOnce().state, [push(3), repeat]);
    expect([view(waits.state).kind, waits.repeats]).toEqual(['payment', []]);
    expect(play(waits.state, [drawn(3)]).sends).toMatchObject([{ type: 'shown', pushId: uuid(3) }]);
  });

  it('AGT-17 gives way to whatever is new', () => {
    const asked = play(paidOnce().state, [[20_000, repeat]]).state;
    const news = play(asked, [free(4)]);
    expect(view(news.state)).toMatchObject({ kind: 'paid', transactionId: uuid(0xc004) });
    expect(ids(news.announcements)).toEqual([uuid(0xc004)]);
    expect(view(play(asked, [push(5)]).state)).toMatchObject({ kind: 'payment', pushId: uuid(5) });
    expect(view(play(asked, [{ type: 'key', key: 'history' }]).state).kind).toBe('history');
  });

  it('AGT-17 leaves a payment on the screen as the new one that it is until a display has shown it', () => {
    const paid = play(fresh(), [registered, free(1)]);
    const early = play(paid.state, [repeat]);
    expect([view(early.state).kind, early.repeats]).toEqual(['paid', []]);
    const seen = play(paid.state, [paidDrawn(1), repeat]);
    expect([view(seen.state).kind, seen.repeats.length]).toEqual(['repeat', 1]);
  });

  it('AGT-17 knows neither late payments nor, once the gateway goes live, tests', () => {
    const late = play(fresh(), [registered, free(1, { late: true }), repeat]);
    expect([view(late.state).kind, late.repeats]).toEqual(['idle', []]);
    const sandbox = { ...registered, sandbox: true } as BoxEvent;
    const test = play(fresh(), [sandbox, free(1), paidDrawn(1), dismiss, repeat]);
    expect(view(test.state).kind).toBe('repeat');
    const live = play(test.state, [{ type: 'connecting' }, registered]);
    expect(view(live.state).kind).toBe('idle');
    const linked = play(play(paidOnce().state, [repeat]).state, [registeredAt(0, { ...LINK, bankAccount: '99' })]);
    expect(view(linked.state).kind).not.toBe('repeat');
  });

  it('AGT-17 names what its order asked for where that is another amount', () => {
    const due = { amount: 50_000, paid: 30_000 };
    const paid = play(fresh(), [registered, free(1, { amount: 30_000, due }), paidDrawn(1), dismiss, repeat]);
    expect(view(paid.state)).toMatchObject({ kind: 'repeat', amount: 30_000, due });
  });
});
