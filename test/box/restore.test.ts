import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { restore } from '../../src/box/restore.ts';
import { type BoxState, UNSENT_MAX } from '../../src/box/state.ts';
import { view } from '../../src/box/view.ts';
import { at, CONFIG, drawn, fresh, payment, play, push, registered, uuid } from './support.ts';

const start = () => play(fresh(), [{ type: 'connecting' }, registered]).state;

describe('a restart', () => {
  it('AGT-8 shows the order again that was on the screen, with the time that is left', () => {
    const before = play(start(), [push(1), drawn(1)]);
    const after = restore(CONFIG, before.writes, at(100_000));
    expect(view(after)).toMatchObject({ kind: 'payment', pushId: uuid(1), secondsLeft: 201 });
    expect(play(after, [drawn(1)]).sends).toEqual([]);
    const inThePast = restore(CONFIG, before.writes, { monotonicMs: 0, wallMs: 0 });
    expect(view(inThePast)).toMatchObject({ kind: 'payment', secondsLeft: 300 });
    const late = restore(CONFIG, before.writes, at(400_000));
    expect(play(late, [[400_000, { type: 'tick' }]]).writes).toMatchObject([{ kind: 'ended', how: 'expired' }]);
  });

  it('AGT-4 does not show a push that was never confirmed: its partner was told that it failed', () => {
    const after = restore(CONFIG, play(start(), [push(1)]).writes, at(10));
    expect(view(after).kind).toBe('starting');
  });

  it('AGT-5 announces nothing a second time', () => {
    const before = play(start(), [push(1), drawn(1), payment(1)]);
    const after = play(restore(CONFIG, before.writes, at(50)), [[50, registered], payment(1)]);
    expect(after.writes).toEqual([]);
    expect(view(after.state).kind).toBe('idle');
    expect(after.state.recentPayments[0]?.orderId).toBe('DH1');
  });

  it('MSG-6 still owes what was not acknowledged, and nothing else', () => {
    const before = play(start(), [push(1), drawn(1), { type: 'key', key: 'dismiss' }, payment(2, { pushId: null })]);
    const owed = restore(CONFIG, before.writes, at(50));
    expect(play(owed, [[50, registered]]).sends.map((send) => send.type)).toEqual(['ended', 'paid']);
    const acked = play(before.state, [{ type: 'acked', ids: [uuid(1), uuid(0xc002)] }]);
    const settled = restore(CONFIG, [...before.writes, ...acked.writes], at(50));
    expect(play(settled, [[50, registered]]).sends).toEqual([]);
  });

  it('keeps what is owed within the same limit as the living box', () => {
    const payments = Array.from({ length: UNSENT_MAX + 5 }, (_, n) => payment(n + 10, { pushId: null }));
    const before = play(start(), [push(1), drawn(1), { type: 'key', key: 'dismiss' }, ...payments]);
    expect(restore(CONFIG, before.writes, at(50)).unsent).toEqual(before.state.unsent);
  });

  it('remembers exactly what the living box knew, at every point of any history', () => {
    const events = fc.array(
      fc.oneof(
        fc.integer({ min: 1, max: 4 }).map((n) => push(n)),
        fc.integer({ min: 1, max: 4 }).map(drawn),
        fc.integer({ min: 1, max: 4 }).map((n) => payment(n)),
        fc.integer({ min: 1, max: 4 }).map((n) => ({ type: 'acked' as const, ids: [uuid(n), uuid(0xc000 + n)] })),
        fc.constant({ type: 'key' as const, key: 'dismiss' as const }),
      ),
      { maxLength: 30 },
    );
    fc.assert(
      fc.property(events, (history) => {
        const lived = play(start(), history);
        const revived = restore(CONFIG, lived.writes, at(lived.state.nowMs));
        const known = ({ announced, unsent, recentPayments }: BoxState) => ({ announced, unsent, recentPayments });
        expect(known(revived)).toEqual(known(lived.state));
      }),
      { numRuns: 1_000 },
    );
  });
});
