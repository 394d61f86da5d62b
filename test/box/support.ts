import type { Entry } from '../../src/device/box/entry.ts';
import { reduce } from '../../src/device/box/reduce.ts';
import { initialState, restore } from '../../src/device/box/restore.ts';
import type { At, BoxConfig, BoxEvent, BoxState, Step } from '../../src/device/box/state.ts';
import type { DownOf, LinkedAccount } from '../../src/protocol/messages.ts';
import { encodeVietQr } from '../../src/protocol/vietqr.ts';

export const CONFIG: BoxConfig = {
  terminalCode: 'VVB000001',
  serialNumber: 'VVB900001',
  version: '0.0.0',
  paidHoldMs: 10_000,
  endedHoldMs: 5_000,
  sandboxMark: true,
  plainLink: false,
};

export const LINK: LinkedAccount = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' };

export const SESSION_ID = '0a3c1d52-8d6b-4b7e-8f0e-5d2f1c7b9a02';
export const WALL_START_MS = Date.UTC(2026, 0, 2, 3, 4, 5);

/** A UUID that is the same for the same number. */
export const uuid = (n: number) => `00000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;

export const at = (monotonicMs: number): At => ({ monotonicMs, wallMs: WALL_START_MS + monotonicMs });

export function pushOf(n: number, change: Partial<DownOf<'show'>> = {}): DownOf<'show'> {
  const amount = change.amount ?? 50_000;
  return {
    v: 1,
    id: uuid(0xa000 + n),
    sentAtMs: WALL_START_MS,
    sessionId: SESSION_ID,
    type: 'show',
    pushId: uuid(n),
    orderId: `DH${n}`,
    content: `DH${n}`,
    ...LINK,
    qrCode: encodeVietQr({
      bin: '970422',
      account: LINK.bankAccount,
      service: 'account',
      initiation: 'dynamic',
      amount,
      purpose: `DH${n}`,
    }),
    expiresAtMs: WALL_START_MS + 300_000,
    expiresInMs: 300_000,
    sessionMs: 0,
    ...change,
    amount,
  };
}

export function paymentOf(n: number, change: Partial<DownOf<'payment'>> = {}): DownOf<'payment'> {
  return {
    v: 1,
    id: uuid(0xb000 + n),
    sentAtMs: WALL_START_MS,
    sessionId: SESSION_ID,
    type: 'payment',
    transactionId: uuid(0xc000 + n),
    pushId: uuid(n),
    orderId: `DH${n}`,
    amount: 50_000,
    content: `DH${n}`,
    bankAccount: LINK.bankAccount,
    bankCode: LINK.bankCode,
    paidAtMs: WALL_START_MS,
    repeated: false,
    late: false,
    due: null,
    ...change,
  };
}

/** Events that play one after another, a millisecond apart unless a time is named. */
export function play(start: BoxState, events: readonly (BoxEvent | [number, BoxEvent])[]): Step {
  const all: Omit<Step, 'state' | 'wakeAtMs'> = { writes: [], sends: [], announcements: [], repeats: [] };
  let step: Step = { state: start, ...all, wakeAtMs: undefined };
  for (const item of events) {
    const [time, event] = Array.isArray(item) ? item : [step.state.nowMs + 1, item];
    step = reduce(step.state, event, at(time));
    all.writes.push(...step.writes);
    all.sends.push(...step.sends);
    all.announcements.push(...step.announcements);
    all.repeats.push(...step.repeats);
  }
  return { ...step, ...all };
}

export const fresh = () => initialState(CONFIG, at(0));
/** The gateway takes each of these for open unless a test says otherwise. */
const OPEN_PUSH_IDS = Array.from({ length: 9 }, (_, n) => uuid(n + 1));
/** The welcome of a gateway whose clock says so many milliseconds after `WALL_START_MS`. */
export const registeredAt = (
  ms: number,
  account: LinkedAccount | null = LINK,
  openPushIds = OPEN_PUSH_IDS,
): BoxEvent => ({
  type: 'registered',
  account,
  gatewayMs: WALL_START_MS + ms,
  openPushIds,
  sandboxMark: false,
});
export const registered = registeredAt(0);
/** A push that took no time from the gateway to the box, unless told when its lifetime began. */
export const push = (n: number, change?: Partial<DownOf<'show'>>, bornAtMs = Number.POSITIVE_INFINITY): BoxEvent => ({
  type: 'push',
  push: pushOf(n, change),
  bornAtMs,
  qrCheck: { ok: true },
});
export const drawn = (n: number): BoxEvent => ({ type: 'drawn', pushId: uuid(n), transactionId: undefined });
/** The paid screen of payment `n` is on the display. */
export const paidDrawn = (n: number): BoxEvent => ({
  type: 'drawn',
  pushId: undefined,
  transactionId: uuid(0xc000 + n),
});
export const payment = (n: number, change?: Partial<DownOf<'payment'>>): BoxEvent => ({
  type: 'payment',
  payment: paymentOf(n, change),
});

/** A registered box with push 1 confirmed on its screen. */
export const showing = () => play(fresh(), [{ type: 'connecting' }, registered, push(1), drawn(1)]).state;

/** The box after a restart whose journal could be read whole. Its calendar clock is right by a time server. */
export const revived = (entries: readonly Entry[], when: At) => restore(CONFIG, { entries, intact: true }, when, true);
