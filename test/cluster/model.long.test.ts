import { describe, expect, it } from 'vitest';
import { type Bounds, DESIGN, explore } from './model.ts';

const CALM: Bounds = {
  ...{ push: false, payment: false, callback: false },
  ...{ crashes: 0, freezes: 0, losses: 0, moves: 0 },
};

/** Each walk has up to a million states. */
const BOUNDS: [title: string, bounds: Bounds][] = [
  ['a push and two crashes', { ...CALM, push: true, crashes: 2 }],
  ['a push, a crash and a freeze', { ...CALM, push: true, crashes: 1, freezes: 1 }],
  ['a push, a crash, a loss and a move', { ...CALM, push: true, crashes: 1, losses: 1, moves: 1 }],
  ['a payment with its callback and two crashes', { ...CALM, payment: true, callback: true, crashes: 2 }],
  ['a payment, a crash and a freeze', { ...CALM, payment: true, crashes: 1, freezes: 1 }],
  ['a push that is paid and a crash', { ...CALM, push: true, payment: true, crashes: 1 }],
  ['a push that is paid and a freeze', { ...CALM, push: true, payment: true, freezes: 1 }],
];

describe('the model of gateways on one database', () => {
  it.for(BOUNDS)('breaks no rule and ends well after several faults, with %s', ([, bounds]) => {
    expect(explore(DESIGN, bounds).violation).toBeUndefined();
  });
});
