import { describe, expect, it } from 'vitest';
import { entriesToKeep } from '../../src/device/agent/journal/compaction.ts';
import { calendarMs, toldMs } from '../../src/device/box/calendar.ts';
import type { Entry } from '../../src/device/box/entry.ts';
import { initialState, restore } from '../../src/device/box/restore.ts';
import type { At, BoxEvent } from '../../src/device/box/state.ts';
import { view } from '../../src/device/box/view.ts';
import { connecting, drawn, free, push, registeredAt } from './events.ts';
import { at, CONFIG, uuid, WALL_START_MS } from './samples.ts';
import { play } from './support.ts';

/** How long the machine of these boxes had run when their agents started. */
const OFFSET_MS = 60_000;
const inBoot = (id: string, offsetMs = OFFSET_MS) => ({ ...CONFIG, boot: { id, offsetMs } });
const SAME = inBoot('one');
const OTHER = inBoot('two', 5_000);

/** A box of boot `one` that shows order 1. */
const showingOne = (welcome = registeredAt(0)) =>
  play(initialState(SAME, at(0)), [connecting, [1, welcome], push(1), drawn(1)]);
const revivedIn = (config: typeof SAME, entries: readonly Entry[], when: At, isTimeRight = false) =>
  restore(config, { entries, intact: true }, when, isTimeRight);
const shown = (state: Parameters<typeof view>[0]) => {
  const scene = view(state);
  return scene.kind === 'payment' ? scene.secondsLeft : scene.kind;
};
/** An agent in the same boot of the machine, which began `agentMs` after the first one; the clocks go on. */
const later = (agentMs: number, wallJumpMs = 0) => ({
  config: inBoot('one', OFFSET_MS + agentMs),
  when: { monotonicMs: 0, wallMs: WALL_START_MS + agentMs + wallJumpMs },
});
const ownTime = (ms: number): BoxEvent => ({ ...registeredAt(ms), isOwnTime: true }) as BoxEvent;

describe('a restart of the agent in the same boot of the machine', () => {
  it('AGT-8 shows the order at once after a restart of the agent, for what is left of its lifetime', () => {
    const { config, when } = later(100_001);
    expect(shown(revivedIn(config, showingOne().writes, when))).toBe(200);
  });

  it('AGT-8 counts on the time of the gateway after a restart of the agent, however wrong the calendar clock is', () => {
    const clockAheadMs = 3 * 3_600_000;
    const { config, when } = later(100_000, -clockAheadMs);
    const lived = play(initialState(SAME, at(0)), [[1, registeredAt(0)], push(1), drawn(1)]);
    const wrong = lived.writes.map((it) => (it.kind === 'clock' ? { ...it, wallMs: it.wallMs - clockAheadMs } : it));
    expect(shown(revivedIn(config, wrong, when))).toBe(201);
  });

  it.each([
    ['was set back meanwhile', later(100_001, -3_600_000), 200],
    ['was set forward meanwhile', later(100_001, 3_600_000), 'starting'],
    ['went on while the machine slept', { ...later(100_001, 250_000), config: SAME }, 'starting'],
  ])('AGT-8 goes by the clock that went further where the calendar clock %s', (_how, { config, when }, expected) => {
    expect(shown(revivedIn(config, showingOne().writes, when))).toBe(expected);
  });
});

describe('a restart after a power cut', () => {
  const when = { monotonicMs: 0, wallMs: WALL_START_MS + 10_000 };

  it('AGT-8 shows no order after a power cut by a clock that stood still, until the gateway has dated it', () => {
    const state = revivedIn(OTHER, showingOne().writes, when);
    expect([shown(state), state.undatedOrder?.pushId]).toEqual(['starting', uuid(1)]);
    expect(shown(play(state, [[10, registeredAt(100_000)]]).state)).toBe(200);
    const tooLate = play(state, [[10, registeredAt(300_000)]]);
    expect(shown(tooLate.state)).toBe('idle');
    expect(tooLate.sends).toMatchObject([{ type: 'ended', pushId: uuid(1), how: 'expired' }]);
  });

  it('AGT-8 shows the order at once after a power cut where a time server has set the clock, or where this boot knows the time', () => {
    const { writes } = showingOne();
    expect(shown(revivedIn(OTHER, writes, when, true))).toBe(290);
    const welcomed = play(revivedIn(OTHER, writes, when), [[10, registeredAt(100_000)]]);
    const again = revivedIn(inBoot('two', 15_000), [...writes, ...welcomed.writes], {
      monotonicMs: 0,
      wallMs: WALL_START_MS + 10_000,
    });
    expect(shown(again)).toBe(191);
  });

  it("AGT-8 waits for the gateway's time after a restart where boots have no names", () => {
    const { boot: _none, ...nameless } = SAME;
    const lived = play(initialState(nameless, at(0)), [[1, registeredAt(0)], push(1), drawn(1)]);
    expect(lived.writes.some(({ kind }) => kind === 'clock')).toBe(false);
    expect(shown(restore(nameless, { entries: lived.writes, intact: true }, at(100), false))).toBe('starting');
  });

  it('DIA-5 ends the order at a service that names no time after a power cut: nobody can tell its end', () => {
    const lived = showingOne(ownTime(0));
    const { config, when: soon } = later(100_001);
    expect(shown(revivedIn(config, lived.writes, soon))).toBe(200);
    const state = revivedIn(OTHER, lived.writes, when);
    const welcomed = play(state, [[10, ownTime(10_000)]]);
    expect(shown(welcomed.state)).toBe('idle');
    expect(welcomed.writes).toMatchObject([
      { kind: 'clock', isOwn: true },
      { kind: 'ended', how: 'expired' },
    ]);
  });
});

describe('what a box knows of the time', () => {
  it('the time of a box is what the gateway sent, counted on', () => {
    const state = play(initialState(SAME, at(0)), [[1, registeredAt(50_000)]]).state;
    expect([calendarMs(state, 1_001), toldMs(state, 1_001)]).toEqual([WALL_START_MS + 51_000, WALL_START_MS + 51_000]);
    expect(calendarMs(initialState(SAME, at(0)), 1_001)).toBeUndefined();
    const own = play(initialState(SAME, at(0)), [[1, ownTime(50_000)]]).state;
    expect([calendarMs(own, 1_001), toldMs(own, 1_001)]).toEqual([WALL_START_MS + 51_000, undefined]);
  });

  it('the time of a box is written once, and again when one of the clocks was set', () => {
    const clocks = (...events: Parameters<typeof play>[1]) =>
      play(initialState(SAME, at(0)), events).writes.filter(({ kind }) => kind === 'clock');
    expect(clocks([1, registeredAt(0)], [5_000, registeredAt(5_500)], [90_000, registeredAt(90_500)])).toHaveLength(1);
    expect(clocks([1, registeredAt(0)], [5_000, registeredAt(6_000)])).toHaveLength(2);
    expect(clocks([1, ownTime(0)], [5_000, registeredAt(5_000)])).toHaveLength(2);
  });

  it('the newest time of a box stays in the journal when that is compacted', () => {
    const entries = [...showingOne().writes, ...play(revivedIn(OTHER, [], at(0)), [[9, registeredAt(9_000)]]).writes];
    const kept = [...entriesToKeep(entries, WALL_START_MS)].map((index) => entries[index]);
    expect(kept.filter((it) => it?.kind === 'clock')).toMatchObject([{ bootId: 'two' }]);
  });

  it('the time of a box dates no payment of before a power cut until the gateway names the time', () => {
    const { writes } = play(showingOne().state, [free(2)]);
    const entries = [...showingOne().writes, ...writes];
    const state = revivedIn(OTHER, entries, at(0));
    expect(state.undatedPaymentIds).toEqual([uuid(0xc002)]);
    const atService = play(state, [[5, ownTime(5)], free(3)]);
    expect(atService.state.undatedPaymentIds).toEqual([uuid(0xc002)]);
    const again = revivedIn(OTHER, [...entries, ...atService.writes], at(10));
    expect(again.undatedPaymentIds).toEqual([uuid(0xc002)]);
    expect(play(again, [[20, registeredAt(20)]]).state.undatedPaymentIds).toEqual([]);
    const { config, when } = later(10_000);
    expect(revivedIn(config, entries, when).undatedPaymentIds).toEqual([]);
    const late = play(play(initialState(OTHER, at(0)), [[1, ownTime(0)]]).state, [
      { type: 'journal-read', entries, intact: true },
    ]);
    expect(late.state.undatedPaymentIds).toEqual([uuid(0xc002)]);
  });
});
