import { describe, expect, it } from 'vitest';
import { restore } from '../../src/device/box/restore.ts';
import { type BoxEvent, REPEAT_AGE_MAX_MS } from '../../src/device/box/state.ts';
import { statusView, view } from '../../src/device/box/view.ts';
import { connecting, dismiss, drawn, free, paidDrawn, push, registered, registeredAt, tick } from './events.ts';
import { at, CONFIG, LINK, uuid, WALL_START_MS } from './samples.ts';
import { fresh, play, showing } from './support.ts';

const repeat: BoxEvent = { type: 'key', key: 'repeat' };
/** Payment 1 was on the screen of this box, which is idle again. */
const paidOnce = () =>
  play(fresh(), [...[connecting, registered, free(1), paidDrawn(1), dismiss], { type: 'acked', ids: [uuid(0xc001)] }]);
const ids = (payments: readonly { transactionId: string }[]) => payments.map((it) => it.transactionId);

describe('AGT-17 the key that repeats', () => {
  it('AGT-17 the repeat key shows the last payment as an earlier one, with its time, and announces it; nothing is written or reported', () => {
    const step = play(paidOnce().state, [[60_000, repeat]]);
    expect(view(step.state)).toEqual({
      ...{ kind: 'repeat', transactionId: uuid(0xc001), amount: 50_000, content: 'DH1' },
      ...{ paidAtMs: WALL_START_MS, online: true },
    });
    expect([ids(step.repeats), step.announcements, step.writes, step.sends]).toEqual([[uuid(0xc001)], [], [], []]);
    expect(statusView(step.state)).toMatchObject({ state: 'idle', order: null });
    expect(view(play(step.state, [[70_000, tick]]).state).kind).toBe('idle');
    expect(view(play(step.state, [dismiss]).state).kind).toBe('idle');
  });

  // The welcome came at 1 ms and named the time 0.
  it.each([
    [0, REPEAT_AGE_MAX_MS + 1, undefined],
    [0, REPEAT_AGE_MAX_MS + 2, 'old'],
    [0, 7 * 86_400_000, 'old'],
    [-REPEAT_AGE_MAX_MS, 1_000, 'old'],
  ])('AGT-17 the repeat key for a payment of %i ms, at %i ms, is silent: %s', (paidMs, askedMs, silent) => {
    const paid = play(fresh(), [registered, free(1, { paidAtMs: WALL_START_MS + paidMs }), paidDrawn(1), dismiss]);
    const step = play(paid.state, [[askedMs, repeat]]);
    expect(view(step.state)).toMatchObject(silent === undefined ? { kind: 'repeat' } : { kind: 'repeat', silent });
    expect('silent' in view(step.state)).toBe(silent !== undefined);
    expect(step.repeats).toHaveLength(silent === undefined ? 1 : 0);
  });

  it('AGT-17 the repeat key announces nothing while the box does not know how old the payment is', () => {
    const entries = paidOnce().writes;
    const after = restore(CONFIG, { entries, intact: true }, at(1_000), false);
    const unknown = play(after, [repeat]);
    expect([view(unknown.state), unknown.repeats]).toMatchObject([{ kind: 'repeat', silent: 'undated' }, []]);
    const own = { ...registeredAt(2_000), isOwnTime: true } as BoxEvent;
    expect(play(after, [own, repeat]).repeats).toEqual([]);
    expect(ids(play(after, [registeredAt(2_000), repeat]).repeats)).toEqual([uuid(0xc001)]);
    expect(play(after, [registeredAt(REPEAT_AGE_MAX_MS + 1), repeat]).repeats).toEqual([]);
  });

  it('AGT-17 the repeat key hides a QR for 3 s, and none whose partner still waits for it', () => {
    const paid = play(showing(), [free(2), paidDrawn(2), [4_000, tick]]);
    expect(view(paid.state).kind).toBe('payment');
    const back = play(paid.state, [
      [4_500, drawn(1)],
      [9_499, repeat],
    ]);
    expect([view(back.state).kind, back.repeats]).toEqual(['payment', []]);
    const over = play(back.state, [[9_500, repeat]]);
    expect(view(over.state)).toMatchObject({ kind: 'repeat', transactionId: uuid(0xc002) });
    expect(view(play(over.state, [[12_500, tick]]).state)).toMatchObject({
      kind: 'payment',
      pushId: uuid(1),
    });
    expect(view(play(over.state, [dismiss]).state)).toMatchObject({ kind: 'payment', pushId: uuid(1) });
    const expired = play(over.state, [{ type: 'withdraw', pushId: uuid(1), why: 'cancelled' }]);
    expect(expired.sends).toMatchObject([{ type: 'ended', how: 'withdrawn' }]);
    expect(view(play(expired.state, [[12_500, tick]]).state).kind).toBe('idle');
    const waits = play(paidOnce().state, [push(3), repeat]);
    expect([view(waits.state).kind, waits.repeats]).toEqual(['payment', []]);
    expect(play(waits.state, [drawn(3)]).sends).toMatchObject([{ type: 'shown', pushId: uuid(3) }]);
  });

  it('AGT-17 a repetition gives way to whatever is new', () => {
    const asked = play(paidOnce().state, [[20_000, repeat]]).state;
    const news = play(asked, [free(4)]);
    expect(view(news.state)).toMatchObject({ kind: 'paid', transactionId: uuid(0xc004) });
    expect(ids(news.announcements)).toEqual([uuid(0xc004)]);
    expect(view(play(asked, [push(5)]).state)).toMatchObject({ kind: 'payment', pushId: uuid(5) });
    expect(view(play(asked, [{ type: 'key', key: 'history' }]).state).kind).toBe('history');
  });

  it('AGT-17 the repeat key leaves a new payment on the screen until a display has shown it', () => {
    const paid = play(fresh(), [registered, free(1)]);
    const early = play(paid.state, [repeat]);
    expect([view(early.state).kind, early.repeats]).toEqual(['paid', []]);
    const seen = play(paid.state, [paidDrawn(1), [5_000, repeat]]);
    expect([view(seen.state).kind, seen.repeats.length]).toEqual(['repeat', 1]);
  });

  it('AGT-12 AGT-17 the repeat key leaves a paid screen for 3 s, however soon a display has shown it, and announces nothing meanwhile', () => {
    const paid = play(fresh(), [registered, [1_000, free(1)], [1_100, paidDrawn(1)]]).state;
    const asked = play(paid, [
      [1_200, repeat],
      ...[1_400, 2_000, 3_999].map((ms) => [ms, repeat] as [number, BoxEvent]),
    ]);
    expect([view(asked.state).kind, asked.repeats]).toEqual(['paid', []]);
    const later = play(asked.state, [[4_000, repeat]]);
    expect([view(later.state).kind, later.repeats.length]).toEqual(['repeat', 1]);
    const short = { ...fresh(), config: { ...CONFIG, paidHoldMs: 1_000 } };
    const soon = play(short, [registered, [1_000, free(1)], [1_100, paidDrawn(1)], [2_000, repeat]]);
    expect(view(soon.state).kind).toBe('repeat');
  });

  it('AGT-12 AGT-17 the repeat key never shows a payment that nobody has seen as an earlier one: it comes first, as new', () => {
    const two = play(paidOnce().state, [
      [20_000, free(2)],
      [20_010, free(3)],
      [20_100, paidDrawn(2)],
    ]).state;
    for (const ms of [20_200, 22_000, 22_999]) {
      const asked = play(two, [[ms, repeat]]);
      expect([view(asked.state), asked.repeats]).toMatchObject([{ kind: 'paid', transactionId: uuid(0xc002) }, []]);
    }
    expect(view(play(two, [[23_100, repeat]]).state)).toMatchObject({ kind: 'paid', transactionId: uuid(0xc003) });
    const hidden = play(paidOnce().state, [free(2), push(4), [20_000, drawn(4)], [40_000, repeat]]);
    expect([view(hidden.state).kind, hidden.repeats]).toEqual(['payment', []]);
    const dark = { type: 'draw-failed', pushId: undefined, reason: 'cable out' } as const;
    const unplugged = play(paidOnce().state, [[20_000, dark], free(2), dismiss, repeat]);
    expect(ids(unplugged.repeats)).toEqual([uuid(0xc001)]);
  });

  it('AGT-17 the repeat key does not hold a QR back, however often it is pressed', () => {
    let state = play(paidOnce().state, [
      [20_000, push(3)],
      [20_500, drawn(3)],
    ]).state;
    const seen: string[] = [];
    for (let ms = 21_000; ms < 53_000; ms += 100) {
      const event: BoxEvent = view(state).kind === 'payment' ? drawn(3) : tick;
      state = play(state, [[ms, event], ...(ms % 700 === 0 ? [[ms, repeat] as [number, BoxEvent]] : [])]).state;
      seen.push(view(state).kind);
    }
    const runs =
      seen
        .join(' ')
        .match(/(payment ?)+|(repeat ?)+/g)
        ?.map((run) => run.trim().split(' ')) ?? [];
    expect(runs.length).toBeGreaterThan(6);
    for (const run of runs.slice(1, -1)) {
      if (run[0] === 'repeat') expect(run.length).toBeLessThanOrEqual(30);
      else expect(run.length).toBeGreaterThanOrEqual(50);
    }
  });

  it('AGT-17 a QR is reported once, however often a repetition has covered it', () => {
    const covered = play(paidOnce().state, [push(3), [20_000, drawn(3)], [26_000, repeat], [30_000, drawn(3)]]);
    expect(covered.sends.filter(({ type }) => type === 'shown')).toHaveLength(1);
  });

  it('AGT-17 a QR that the gateway has dated meanwhile has its screen after 3 s of a repetition', () => {
    const entries = play(showing(), [free(2), paidDrawn(2)]).writes;
    const orders = play(fresh(), [connecting, registered, push(1), drawn(1)]).writes;
    const after = restore(CONFIG, { entries: [...orders, ...entries], intact: true }, at(1_000), false);
    const dated = play(after, [
      [2_000, repeat],
      [2_500, registeredAt(2_500)],
    ]);
    expect(view(dated.state).kind).toBe('repeat');
    expect(view(play(dated.state, [[5_500, tick]]).state).kind).toBe('payment');
  });

  it('AGT-17 the repeat key skips late payments and, once the gateway goes live, tests', () => {
    const late = play(fresh(), [registered, free(1, { late: true }), repeat]);
    expect([view(late.state).kind, late.repeats]).toEqual(['idle', []]);
    const sandbox = { ...registered, sandbox: true } as BoxEvent;
    const test = play(fresh(), [sandbox, free(1), paidDrawn(1), dismiss, repeat]);
    expect(view(test.state).kind).toBe('repeat');
    const live = play(test.state, [connecting, registered]);
    expect(view(live.state).kind).toBe('idle');
    const linked = play(play(paidOnce().state, [repeat]).state, [registeredAt(0, { ...LINK, bankAccount: '99' })]);
    expect(view(linked.state).kind).not.toBe('repeat');
  });

  it('AGT-17 a repetition names what its order asked for where that is another amount', () => {
    const due = { amount: 50_000, paid: 30_000 };
    const paid = play(fresh(), [registered, free(1, { amount: 30_000, due }), paidDrawn(1), dismiss, repeat]);
    expect(view(paid.state)).toMatchObject({ kind: 'repeat', amount: 30_000, due });
  });
});
