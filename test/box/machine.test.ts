import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { INVARIANTS, illegal, move, STAGES, type StageEvent, TABLE } from '../../src/device/box/machine.ts';
import type { BoxState, Stage } from '../../src/device/box/state.ts';
import { LINK, OTHER, uuid } from './samples.ts';
import { activeOf, boxIn, NOW_MS, orderOf, paymentOf, SAMPLES } from './stages.ts';

const EVENTS: { [T in StageEvent['type']]: StageEvent & { type: T } } = {
  restart: { type: 'restart', active: activeOf(2) },
  accept: { type: 'accept', active: activeOf(2) },
  date: { type: 'date', active: activeOf(2) },
  drawn: { type: 'drawn', pushId: uuid(1) },
  unreadable: { type: 'unreadable', pushId: uuid(1) },
  'draw-failed': { type: 'draw-failed', pushId: uuid(1) },
  'order-over': { type: 'order-over', as: 'cancelled' },
  'too-dense': { type: 'too-dense', order: orderOf(2), untilMs: NOW_MS + 1_000 },
  withdraw: { type: 'withdraw', pushId: uuid(4) },
  payment: { type: 'payment', payment: paymentOf(8), pushId: null },
  late: { type: 'late', pushId: uuid(1) },
  finish: { type: 'finish' },
  welcome: { type: 'welcome' },
  'account-drawn': { type: 'account-drawn', account: LINK },
  settle: { type: 'settle' },
  history: { type: 'history' },
  repeat: { type: 'repeat', payment: paymentOf(7), silent: undefined },
};

/** What each stage becomes. `same`: the event is legal, but changes nothing here. */
const same = 'same';
const never = 'illegal';
// biome-ignore format: a table is read by its columns
const EXPECTED: { [T in StageEvent['type']]: { [K in Stage['kind']]: Stage['kind'] | 'same' | 'illegal' } } = {
  restart:         { idle: 'order',     order: never,   paid: never,  ended: never,   'too-dense': never,   account: never,   history: never, repeat: never },
  accept:          { idle: 'order',     order: 'order', paid: 'order', ended: 'order', 'too-dense': 'order', account: 'order', history: 'order', repeat: 'order' },
  date:            { idle: 'order',     order: 'order', paid: 'paid', ended: 'order', 'too-dense': 'order', account: 'order', history: 'order', repeat: 'repeat' },
  drawn:           { idle: same,        order: 'order', paid: same,   ended: same,    'too-dense': same,    account: same,    history: same, repeat: same },
  unreadable:      { idle: same,        order: 'too-dense', paid: same, ended: same,  'too-dense': same,    account: same,    history: same, repeat: same },
  'draw-failed':   { idle: same,        order: 'idle',  paid: same,   ended: same,    'too-dense': same,    account: same,    history: same, repeat: same },
  'order-over':    { idle: never,       order: 'ended', paid: 'paid', ended: never,   'too-dense': never,   account: never,   history: never, repeat: 'repeat' },
  'too-dense':     { idle: 'too-dense', order: same,    paid: same,   ended: 'too-dense', 'too-dense': 'too-dense', account: 'too-dense', history: 'too-dense', repeat: same },
  withdraw:        { idle: same,        order: same,    paid: same,   ended: same,    'too-dense': 'idle',  account: same,    history: same, repeat: same },
  payment:         { idle: 'paid',      order: 'paid',  paid: 'paid', ended: 'paid',  'too-dense': 'paid',  account: 'paid',  history: 'paid', repeat: 'paid' },
  late:            { idle: same,        order: 'history', paid: 'paid', ended: same,  'too-dense': same,    account: same,    history: same, repeat: 'repeat' },
  finish:          { idle: never,       order: never,   paid: 'order', ended: 'idle', 'too-dense': 'idle',  account: 'account', history: 'idle', repeat: 'order' },
  welcome:         { idle: same,        order: same,    paid: same,   ended: same,    'too-dense': same,    account: same,    history: same, repeat: same },
  'account-drawn': { idle: same,        order: same,    paid: same,   ended: same,    'too-dense': same,    account: 'account', history: same, repeat: same },
  settle:          { idle: same,        order: same,    paid: same,   ended: same,    'too-dense': same,    account: same,    history: same, repeat: same },
  history:         { idle: 'history',   order: same,    paid: same,   ended: same,    'too-dense': same,    account: same,    history: same, repeat: same },
  repeat:          { idle: 'repeat',    order: same,    paid: same,   ended: 'repeat', 'too-dense': same,   account: same,    history: 'repeat', repeat: 'repeat' },
};

const CELLS = Object.values(EVENTS).flatMap((event) => STAGES.map((kind) => ({ kind, event, type: event.type })));

describe('what has the screen', () => {
  it('the table of the screen has a row for each event, and a cell for each stage', () => {
    expect(Object.keys(TABLE).toSorted()).toEqual(Object.keys(EVENTS).toSorted());
    expect(STAGES.toSorted()).toEqual(Object.keys(SAMPLES).toSorted());
    for (const [type, row] of Object.entries(TABLE)) expect(row, type).toHaveLength(STAGES.length);
  });

  it.each(CELLS)('$type, while it is $kind', ({ kind, event }) => {
    const before = boxIn(SAMPLES[kind]);
    const after = move(before, event);
    const expected = EXPECTED[event.type][kind];
    const cell = TABLE[event.type][STAGES.indexOf(kind)];
    expect(cell === illegal).toBe(expected === 'illegal');
    if (expected === 'same' || expected === 'illegal') expect(after).toBe(before);
    else expect(after.stage.kind).toBe(expected);
    if (expected !== 'same' && expected !== 'illegal' && event.type !== 'finish') expect(after).not.toBe(before);
    expect(broken(after)).toEqual([]);
    expect({ ...after, stage: before.stage }).toEqual(before);
  });

  it('the screen goes to payments that nobody has seen, then to the order, then to an account that people do not know', () => {
    const untold = [paymentOf(8), paymentOf(9)];
    const seen = (stage: Stage, change: Partial<BoxState> = {}) =>
      move(boxIn(stage, { unconfirmedPayments: untold, account: OTHER, ...change }), { type: 'finish' }).stage;
    expect(seen(SAMPLES.ended)).toMatchObject({ kind: 'paid', payment: paymentOf(8), untilMs: NOW_MS + 3_000 });
    const seenBefore = { ...SAMPLES.paid, payment: paymentOf(8), resume: activeOf(1, { displayed: true }) };
    expect(seen(seenBefore)).toMatchObject({ payment: paymentOf(9) });
    expect(seen({ ...seenBefore, resume: activeOf(1) })).toMatchObject({ kind: 'order' });
    const last: Stage = { ...SAMPLES.paid, payment: paymentOf(9) };
    expect(seen(last)).toMatchObject({ kind: 'order' });
    expect(seen({ ...last, resume: undefined })).toMatchObject({ kind: 'account', holder: OTHER, previous: LINK });
    expect(seen({ ...last, resume: undefined }, { account: LINK })).toEqual({ kind: 'idle' });
    const dark = { faults: { display: 'unplugged', storage: undefined } };
    expect(seen(SAMPLES.ended, dark)).toEqual({ kind: 'idle' });
  });

  it('the screen does not change by an event that names another push, or the same a second time', () => {
    const order = boxIn({ kind: 'order', active: activeOf(1, { displayed: true }), drawnAtMs: NOW_MS });
    const paid = boxIn({ ...SAMPLES.paid, resume: activeOf(1, { displayed: true }) });
    for (const before of [order, paid, boxIn(SAMPLES.order), boxIn(SAMPLES.paid)]) {
      for (const type of ['drawn', 'unreadable', 'draw-failed'] as const) {
        expect(move(before, { type, pushId: uuid(2) })).toBe(before);
        if (before === order || before === paid) expect(move(before, { type, pushId: uuid(1) })).toBe(before);
      }
    }
    const dense = boxIn(SAMPLES['too-dense']);
    expect(move(dense, { type: 'withdraw', pushId: uuid(1) })).toBe(dense);
  });

  it('one file only changes what has the screen', () => {
    const box = `${import.meta.dirname}/../../src/device/box`;
    const others = readdirSync(box).filter((name) => !['machine.ts', 'state.ts'].includes(name));
    const writes = others.filter((name) => /\bstage: (?!IDLE)/.test(readFileSync(`${box}/${name}`, 'utf8')));
    expect(others.length).toBeGreaterThan(3);
    expect(writes).toEqual([]);
  });
});

function broken(state: BoxState): string[] {
  return Object.entries(INVARIANTS).flatMap(([name, holds]) => (holds(state) ? [] : [name]));
}
