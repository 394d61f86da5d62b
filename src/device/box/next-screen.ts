import type { LinkedAccount } from '../../protocol/messages.ts';
import type { Order, Payment } from './entry.ts';
import {
  type ActiveOrder,
  type BoxState,
  IDLE,
  isSameAccount,
  RECENT_MAX,
  type Stage,
  type StageOf,
  type WhySilent,
} from './state.ts';

/* This file decides who has the screen next, and for how long. `machine.ts` decides when. */

/** A payment keeps the screen for this long when another payment or an order waits. */
export const WAITED_FOR_HOLD_MS = 3_000;
/** A QR that has just appeared or reappeared stays for this long before a repetition may cover it (clause AGT-17). */
export const QR_BEFORE_REPEAT_MS = 5_000;
/** A change of account stays for at least this long, whatever the configuration says about other screens. */
const ACCOUNT_HOLD_MIN_MS = 5_000;

/**
 * Returns what has the screen next (clause AGT-12). `seen` is the payment that had it until now. If no display has
 * confirmed it, only later ones follow, because otherwise it would return forever. `resume` is the order that follows
 * these payments. It gets the screen at once if the payments are many or its push waits for its QR. It also comes
 * before payments without an order, because no customer waits to see those.
 */
export function nextScreen(state: BoxState, seen?: Payment, resume?: ActiveOrder): Stage {
  const { unconfirmedPayments, faults, account } = state;
  const seenIndex = unconfirmedPayments.findIndex(({ transactionId }) => transactionId === seen?.transactionId);
  const payment = unconfirmedPayments
    .slice(seenIndex + 1)
    .find(({ orderId }) => resume === undefined || orderId !== '');
  const isOrderFirst = resume !== undefined && (!resume.displayed || unconfirmedPayments.length > RECENT_MAX);
  if (payment !== undefined && faults.display === undefined && !isOrderFirst) {
    return paid(state, payment, account ?? null, resume, unconfirmedPayments.length > 1);
  }
  return resume === undefined ? accountOrIdle(state) : { kind: 'order', active: resume, drawnAtMs: undefined };
}

/**
 * Returns the screen when neither order nor payment has it: a new account that people do not know yet, else idle
 * (clause AGT-13).
 */
export function accountOrIdle(state: BoxState): Stage {
  const { account, announcedAccount, faults } = state;
  if (!account || !announcedAccount || isSameAccount(account, announcedAccount) || faults.display !== undefined)
    return IDLE;
  return { kind: 'account', holder: account, previous: announcedAccount, drawn: false, untilMs: accountUntilMs(state) };
}

/** Returns until when a change of account must stay if it appears now, in monotonic milliseconds. */
export function accountUntilMs({ nowMs, config }: BoxState): number {
  return nowMs + Math.max(config.endedHoldMs, ACCOUNT_HOLD_MIN_MS);
}

/** Returns the screen of a payment. If it does not pay the order on the screen, that order follows. */
export function paidOver(
  state: BoxState,
  { payment, pushId }: { payment: Payment; pushId: string | null },
  active: ActiveOrder | undefined,
): StageOf<'paid'> {
  const isPaid = active !== undefined && active.order.pushId === pushId;
  return isPaid ? paid(state, payment, active.order.holder) : paid(state, payment, state.account ?? null, active);
}

function paid(
  { nowMs, config }: BoxState,
  payment: Payment,
  holder: LinkedAccount | null,
  resume?: ActiveOrder,
  isWaitedFor = false,
): StageOf<'paid'> {
  const isShort = isWaitedFor || resume !== undefined;
  const holdMs = isShort ? Math.min(config.paidHoldMs, WAITED_FOR_HOLD_MS) : config.paidHoldMs;
  return { kind: 'paid', payment, holder, sinceMs: nowMs, untilMs: nowMs + holdMs, resume };
}

/** Returns the text that replaces a QR that cannot be scanned. It stays as long as the QR would have (clause AGT-9). */
export function textOf(order: Order, untilMs: number): Stage {
  return { kind: 'too-dense', order, untilMs };
}

/** Returns the screen of a payment that a person has asked for again. It covers a QR for a short time only. */
export function repeatOf(
  { nowMs, config }: BoxState,
  { payment, silent }: { payment: Payment; silent: WhySilent | undefined },
  resume: ActiveOrder | undefined,
): StageOf<'repeat'> {
  const holdMs = resume === undefined ? config.paidHoldMs : Math.min(config.paidHoldMs, WAITED_FOR_HOLD_MS);
  return { kind: 'repeat', payment, silent, untilMs: nowMs + holdMs, resume };
}

/** Returns the screen with the list of the last payments. */
export function listOf({ nowMs, config }: BoxState): Stage {
  return { kind: 'history', untilMs: nowMs + config.endedHoldMs };
}
