import { calendarMs } from './calendar.ts';
import type { Draft } from './draft.ts';
import type { Payment } from './entry.ts';
import { type BoxState, REPEAT_AGE_MAX_MS, type WhySilent } from './state.ts';

/**
 * Shows the last payment again because a person asks for it (PROTOCOL.md, clause AGT-17). The screen says which one it is
 * and when it was paid. The box says it aloud only while it is fresh: whoever hears a payment may take it for his own.
 */
export function repeatPayment(draft: Draft): void {
  const payment = draft.state.recentPayments.find(({ late }) => !late);
  if (payment === undefined) return;
  const silent = whySilent(draft.state, payment);
  if (draft.move({ type: 'repeat', payment, silent }) && silent === undefined) draft.repeats.push(payment);
}

function whySilent(state: BoxState, { transactionId, paidAtMs }: Payment): WhySilent | undefined {
  const nowMs = calendarMs(state, state.nowMs);
  if (nowMs === undefined || state.undatedPaymentIds.includes(transactionId)) return 'undated';
  return nowMs - paidAtMs > REPEAT_AGE_MAX_MS ? 'old' : undefined;
}
