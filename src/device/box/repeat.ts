import { calendarMs } from './calendar.ts';
import type { Draft } from './draft.ts';
import type { Payment } from './entry.ts';
import { type BoxState, isUnseen, REPEAT_AGE_MAX_MS, type WhySilent } from './state.ts';

/**
 * Shows the last payment again because a person asks for it (PROTOCOL.md, clause AGT-17). The screen says which one it
 * is and when it was paid. The box announces it only while it is fresh, because a listener may think that it is his own
 * payment. Payments that no display has shown come first, as new ones. While they wait for a working display, the key
 * does nothing.
 */
export function repeatPayment(draft: Draft): void {
  const { state } = draft;
  if (state.unconfirmedPayments.length > 0 && state.faults.display === undefined) return;
  const payment = state.recentPayments.find((it) => !it.late && !isUnseen(state, it));
  if (payment === undefined) return;
  const silent = whySilent(state, payment);
  if (draft.move({ type: 'repeat', payment, silent }) && silent === undefined) draft.repeats.push(payment);
}

function whySilent(state: BoxState, { transactionId, paidAtMs }: Payment): WhySilent | undefined {
  const nowMs = calendarMs(state, state.nowMs);
  if (nowMs === undefined || state.undatedPaymentIds.includes(transactionId)) return 'undated';
  return nowMs - paidAtMs > REPEAT_AGE_MAX_MS ? 'old' : undefined;
}
