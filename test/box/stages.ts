import type { Order, Payment } from '../../src/device/box/entry.ts';
import { type ActiveOrder, type BoxState, IDLE, type Stage } from '../../src/device/box/state.ts';
import { LINK, OTHER, uuid, WALL_START_MS } from './samples.ts';
import { fresh } from './support.ts';

export const NOW_MS = 10_000;

export function orderOf(n: number): Order {
  const what = { pushId: uuid(n), orderId: `DH${n}`, amount: 50_000, content: `DH${n}`, qrCode: 'QR' };
  return { ...what, holder: LINK, expiresAtMs: WALL_START_MS + 300_000, lifetimeMs: 300_000 };
}

export function activeOf(n: number, change: Partial<ActiveOrder> = {}): ActiveOrder {
  return { order: orderOf(n), deadlineMs: 300_000, displayed: false, restored: false, ...change };
}

export function paymentOf(n: number): Payment {
  const transactionId = uuid(0xc000 + n);
  const paid = { transactionId, orderId: `DH${n}`, amount: 50_000, content: `DH${n}`, paidAtMs: WALL_START_MS };
  return { ...paid, late: false, due: null };
}

/** One of each stage, 2 s old where that counts. Order 1 has the screen, or has it back after payment 7. */
export const SAMPLES: { [K in Stage['kind']]: Stage & { kind: K } } = {
  idle: IDLE,
  order: { kind: 'order', active: activeOf(1), drawnAtMs: undefined },
  paid: {
    kind: 'paid',
    payment: paymentOf(7),
    holder: LINK,
    sinceMs: NOW_MS - 2_000,
    untilMs: NOW_MS + 8_000,
    resume: activeOf(1),
  },
  ended: { kind: 'ended', how: 'expired', order: orderOf(3), untilMs: NOW_MS + 3_000 },
  'too-dense': { kind: 'too-dense', order: orderOf(4), untilMs: NOW_MS + 90_000 },
  account: { kind: 'account', holder: LINK, previous: OTHER, drawn: false, untilMs: NOW_MS + 3_000 },
  history: { kind: 'history', untilMs: NOW_MS + 3_000 },
  repeat: {
    kind: 'repeat',
    payment: paymentOf(7),
    silent: undefined,
    untilMs: NOW_MS + 3_000,
    resume: activeOf(1, { displayed: true }),
  },
};

/** A box in this stage, linked unless `change` says otherwise. */
export function boxIn(stage: Stage, change: Partial<BoxState> = {}): BoxState {
  const announcedAccount = stage.kind === 'account' ? OTHER : LINK;
  const announced = [7, 8, 9].map((n) => paymentOf(n).transactionId);
  return {
    ...fresh(),
    nowMs: NOW_MS,
    account: LINK,
    announcedAccount,
    announced,
    recentPayments: [paymentOf(7)],
    stage,
    ...change,
  };
}
