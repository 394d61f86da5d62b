import type { LinkedAccount } from '../protocol/messages.ts';
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

/** A payment is shown for this long when another one, or an order, waits for the screen. */
export const WAITED_FOR_HOLD_MS = 3_000;
/** A QR that has just come, or come back, is there for this long before a repetition covers it (clause AGT-17). */
export const QR_BEFORE_REPEAT_MS = 5_000;
/** People see another account for this long at least, whatever the configuration says of other screens. */
const ACCOUNT_HOLD_MIN_MS = 5_000;

/**
 * Returns who has the screen next (clause AGT-12). `seen` is the payment that had it until now: where no display has
 * confirmed that one, only later ones follow, or it would come back for ever. `resume` is the order that has the screen
 * after these payments. It has the screen at once where they are many or its push waits for its QR, and before payments
 * of no order, because nobody else waits to see those.
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

/** Returns the screen where no order and no payment has it: an account that people do not know yet takes it (clause AGT-13). */
export function accountOrIdle(state: BoxState): Stage {
  const { account, announcedAccount, faults } = state;
  if (!account || !announcedAccount || isSameAccount(account, announcedAccount) || faults.display !== undefined)
    return IDLE;
  return { kind: 'account', holder: account, previous: announcedAccount, drawn: false, untilMs: accountUntilMs(state) };
}

/** Returns when a change of account that is shown from now on has been there for long enough, in monotonic milliseconds. */
export function accountUntilMs({ nowMs, config }: BoxState): number {
  return nowMs + Math.max(config.endedHoldMs, ACCOUNT_HOLD_MIN_MS);
}

/** Returns the screen of a payment. An order that it does not pay has the screen back afterwards. */
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

/** Returns the text in place of a QR that cannot be scanned. It stays for as long as the QR would have (clause AGT-9). */
export function textOf(order: Order, untilMs: number): Stage {
  return { kind: 'too-dense', order, untilMs };
}

/** Returns the screen of a payment that a person has asked for again. A QR is covered for a short time only. */
export function repeatOf(
  { nowMs, config }: BoxState,
  { payment, silent }: { payment: Payment; silent: WhySilent | undefined },
  resume: ActiveOrder | undefined,
): StageOf<'repeat'> {
  const holdMs = resume === undefined ? config.paidHoldMs : Math.min(config.paidHoldMs, WAITED_FOR_HOLD_MS);
  return { kind: 'repeat', payment, silent, untilMs: nowMs + holdMs, resume };
}

/** Returns the list of the last payments. */
export function listOf({ nowMs, config }: BoxState): Stage {
  return { kind: 'history', untilMs: nowMs + config.endedHoldMs };
}
