import { describe, expect, it } from 'vitest';
import { type Bounds, DESIGN, type Design, explore } from './model.ts';

const CALM: Bounds = {
  ...{ push: false, payment: false, callback: false },
  ...{ crashes: 0, freezes: 0, losses: 0, moves: 0 },
};
const PUSH = { ...CALM, push: true };
const PAYMENT = { ...CALM, payment: true, callback: true };
const BOTH = { ...CALM, push: true, payment: true };

const DESIGNED: [title: string, bounds: Bounds][] = [
  ['the box alone, a crash, a freeze, a loss and a move', { ...CALM, crashes: 1, freezes: 1, losses: 1, moves: 1 }],
  ['a push and a crash', { ...PUSH, crashes: 1 }],
  ['a push and a freeze', { ...PUSH, freezes: 1 }],
  ['a push, a loss and a move', { ...PUSH, losses: 1, moves: 1 }],
  ['a payment with its callback and a crash', { ...PAYMENT, crashes: 1 }],
  ['a payment with its callback and a freeze', { ...PAYMENT, freezes: 1 }],
  ['a payment with its callback, a loss and a move', { ...PAYMENT, losses: 1, moves: 1 }],
  ['a push that is paid, and a move', { ...BOTH, moves: 1 }],
  ['a push that is paid, and a loss', { ...BOTH, losses: 1 }],
];

/** What each part of the design is for: without it, this breaks within these bounds. */
const WITHOUT: [part: keyof Design, broken: string, bounds: Bounds][] = [
  ['checksItsRow', 'a write of a run that was buried', { ...PUSH, freezes: 1 }],
  ['endsSessions', 'a write of a run that was buried', { ...PUSH, crashes: 1 }],
  ['claimsAtOnce', 'two gateways have the lease of one box', { ...CALM, moves: 1 }],
  ['polls', 'it never ends well', { ...CALM, moves: 1 }],
  ['polls', 'it never ends well', PAYMENT],
  ['storesBeforeAnswer', 'SUCCESS, and the row does not say shown', PUSH],
  ['failsOnlyUnfinished', 'SUCCESS, and the row does not say shown', PUSH],
  ['hasUniqueKeys', 'two rows of one payment', PAYMENT],
  ['recordsAfterSending', 'a callback is recorded and was not received', PAYMENT],
];

describe('the model of gateways on one database', () => {
  it.for(DESIGNED)('breaks no rule and ends well, with %s', ([, bounds]) => {
    const walk = explore(DESIGN, bounds);
    expect(walk.violation).toBeUndefined();
    expect(walk.states).toBeGreaterThan(1_000);
  });

  it.for(WITHOUT)('sees what a design without "%s" breaks: %s', ([part, broken, bounds]) => {
    const { violation } = explore({ ...DESIGN, [part]: false }, bounds);
    expect(violation?.broken).toBe(broken);
    expect(violation?.path).not.toHaveLength(0);
  });
});
