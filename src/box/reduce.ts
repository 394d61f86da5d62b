import type { DownOf } from '../protocol/messages.ts';
import { Draft, recent, remembered } from './draft.ts';
import type { Payment } from './entry.ts';

import { delivered, unmail } from './outbox.ts';
import { orderOf, refusalOf } from './push.ts';
import { onEnrolling, onRefused, onRegistered } from './registration.ts';
import { remember } from './restore.ts';
import {
  type At,
  activeOrder,
  type BoxEvent,
  type BoxState,
  type Refusal,
  type Step,
  UNTOLD_MAX,
  type UnsentReport,
} from './state.ts';

/*
 * Every transition of a box (PROTOCOL.md, clauses AGT and MSG). The rules:
 *
 *   push        checked, journaled, shown; `accepted` at once, `shown` when the display has confirmed it
 *   newer push  takes the screen; the older one is told `replaced`, or rejected if it never was on the screen
 *   payment     always shown, always reported, once a transactionId; another order's QR comes back after the notice
 *   restart     the order is dated by the gateway's time, payments whose screen nobody saw are shown, nothing is said twice
 *   time        ends an order at its deadline and a notice after its hold; sends again what is not acknowledged
 *   withdrawal  ends its push, also one that has not arrived yet
 *   account     another one than people were told of last is told once nothing else has the screen, across restarts
 *   enrolment   a code has the screen while nothing else has, and not after its end
 *   faults      a dead display or disk refuses pushes by name, never a payment
 *
 * What does not fit the state changes nothing but the time.
 */

/** Applies one event. Pure: the time comes with the event, writes and sends are for the loop to carry out. */
export function reduce(before: BoxState, event: BoxEvent, at: At): Step {
  const draft = new Draft(endOverdue(before, at), at);
  apply(draft, event);
  resendOverdue(draft);
  return draft.step();
}

/** Time first: whatever the event is, an order or a code past its deadline and a notice past its hold are over. */
function endOverdue(before: BoxState, at: At): Omit<Step, 'wakeAtMs'> {
  const nowMs = Math.max(before.nowMs, at.monotonicMs);
  const start = { state: { ...before, nowMs }, writes: [], sends: [], announcements: [] };
  const draft = new Draft(start, { ...at, monotonicMs: nowMs });
  const active = activeOrder(before.stage);
  if (active !== undefined && nowMs >= active.deadlineMs) draft.endActive('expired', 'expired');
  const { stage, enrolment } = draft.state;
  if (enrolment !== undefined && nowMs >= enrolment.deadlineMs) draft.set({ enrolment: undefined });
  if ('untilMs' in stage && nowMs >= stage.untilMs) finish(draft);
  return draft;
}

function resendOverdue(draft: Draft): void {
  const { resendAtMs, nowMs } = draft.state;
  if (resendAtMs === undefined || nowMs < resendAtMs) return;
  draft.state = unmail(draft.state);
  draft.mail();
}

function apply(draft: Draft, event: BoxEvent): void {
  switch (event.type) {
    case 'enrolling':
      onEnrolling(draft, event);
      break;
    case 'connecting':
      draft.set({ ...unmail(draft.state), connection: 'connecting', enrolment: undefined });
      break;
    case 'registered':
      onRegistered(draft, event);
      break;
    case 'refused':
      onRefused(draft, event.code, event.reason);
      break;
    case 'push':
      onPush(draft, event);
      break;
    case 'overtaken':
      onOvertaken(draft, event.pushId);
      break;
    case 'withdraw':
      onWithdraw(draft, event.pushId, event.why);
      break;
    case 'payment':
      onPayment(draft, event, true);
      break;
    case 'acked':
      onAcked(draft, event.ids);
      break;
    case 'drawn':
      onDrawn(draft, event);
      break;
    case 'unreadable':
      onUnreadable(draft, event.pushId, event.reason);
      break;
    case 'draw-failed':
      onDrawFailed(draft, event.pushId, event.reason);
      break;
    case 'key':
      if (event.key === 'dismiss') onDismiss(draft);
      else draft.move({ type: 'history' });
      break;
    case 'unrecorded':
      onUnrecorded(draft, event.cause, event.reason);
      break;
    case 'recorded':
      draft.set({ faults: { ...draft.state.faults, storage: undefined } });
      break;
    case 'remembered':
      remember(draft, event.entries, event.whole);
      break;
    case 'tick':
      break;
  }
}

function onPush(draft: Draft, { push, bornAtMs, verdict }: BoxEvent & { type: 'push' }): void {
  const { state } = draft;
  const current = activeOrder(state.stage);
  if (current?.order.pushId === push.pushId) {
    if (current.displayed) draft.sends.push({ type: 'shown', pushId: push.pushId });
    return;
  }
  const refuse = (refusal: Refusal) => {
    draft.forget(push.pushId);
    draft.sends.push({ type: 'rejected', pushId: push.pushId, ...refusal });
  };
  if (state.closedPushIds.includes(push.pushId)) {
    refuse({ code: 'WITHDRAWN', reason: 'the push had ended before it arrived' });
    return;
  }
  const { link } = state;
  if (link === null || link === undefined) {
    refuse({ code: 'E36', reason: 'no account is linked to this box' });
    return;
  }
  const deadlineMs = Math.min(bornAtMs, state.nowMs) + push.expiresInMs;
  const refusal = refusalOf(push, deadlineMs - state.nowMs, link, verdict);
  if (refusal !== undefined) {
    refuse(refusal);
    if (refusal.code === 'QR_TOO_DENSE') {
      draft.move({ type: 'too-dense', order: orderOf(push, link), untilMs: deadlineMs });
    }
    return;
  }
  if (state.faults.display !== undefined) {
    refuse({ code: 'DISPLAY_FAULT', reason: state.faults.display });
    return;
  }
  if (current !== undefined) draft.reportEnd(current, 'replaced');
  const order = orderOf(push, link);
  draft.writes.push({ kind: 'push', order });
  draft.sends.push({ type: 'accepted', pushId: order.pushId });
  draft.move({ type: 'accept', active: { order, deadlineMs, displayed: false, restored: false } });
}

function onOvertaken(draft: Draft, pushId: string): void {
  if (activeOrder(draft.state.stage)?.order.pushId === pushId) return;
  draft.forget(pushId);
  draft.sends.push({ type: 'rejected', pushId, code: 'REPLACED', reason: 'a newer push came before it was looked at' });
}

function onWithdraw(draft: Draft, pushId: string, why: DownOf<'withdraw'>['why']): void {
  const { stage, held } = draft.state;
  const active = activeOrder(stage);
  if (held?.pushId === pushId) {
    draft.close(held, 'withdrawn');
    draft.set({ held: undefined });
  } else if (active?.order.pushId === pushId) {
    draft.endActive('withdrawn', why === 'cancelled' ? 'cancelled' : undefined);
  } else {
    draft.forget(pushId);
    draft.sends.push({ type: 'rejected', pushId, code: 'WITHDRAWN', reason: 'it is not on the screen' });
    draft.move({ type: 'withdraw', pushId });
  }
}

function onPayment(draft: Draft, { payment: told }: BoxEvent & { type: 'payment' }, recorded: boolean): void {
  const { transactionId, orderId, amount, content, paidAtMs, pushId } = told;
  const report: UnsentReport = { type: 'paid', id: transactionId, transactionId, orderId, amount, recorded };
  const { announced, unsent } = draft.state;
  if (announced.includes(transactionId)) {
    draft.sends.push(unsent.find(({ id }) => id === transactionId) ?? report);
    return;
  }
  const payment: Payment = { transactionId, orderId, amount, content, paidAtMs };
  const active = activeOrder(draft.state.stage);
  const paysActive = active !== undefined && active.order.pushId === pushId;
  draft.writes.push({ kind: 'payment', payment, pushId });
  if (pushId !== null) draft.forget(pushId);
  const { recentPayments, untold, held } = draft.state;
  draft.set({
    announced: remembered(announced, transactionId),
    recentPayments: recent(recentPayments, payment),
    untold: [...untold, payment].slice(-UNTOLD_MAX),
    held: held?.pushId === pushId ? undefined : held,
  });
  if (!mayHaveBeenSaid(draft.state, told)) draft.announcements.push(payment);
  if (paysActive && !active.displayed) {
    const reason = 'paid before it was on the screen';
    draft.sends.push({ type: 'rejected', pushId: active.order.pushId, code: 'REPLACED', reason });
  }
  draft.move({ type: 'payment', payment, pushId });
  draft.owe(report);
}

/** By an earlier life of this box, whose journal cannot be read: then it is shown and reported, but not said (AGT-11). */
function mayHaveBeenSaid({ whole, firstWelcomeMs = 0 }: BoxState, { repeated, paidAtMs }: DownOf<'payment'>): boolean {
  return !whole && repeated && paidAtMs < firstWelcomeMs;
}

function onAcked(draft: Draft, ids: string[]): void {
  const known = ids.filter((id) => draft.state.unsent.some((report) => report.id === id));
  if (known.length === 0) return;
  draft.writes.push({ kind: 'acked', ids: known });
  draft.state = delivered(draft.state, known);
  draft.mail();
}

function displayWorks(draft: Draft): void {
  const { faults } = draft.state;
  if (faults.display !== undefined) draft.set({ faults: { ...faults, display: undefined } });
}

function onDrawn(draft: Draft, { pushId, transactionId, account }: Omit<BoxEvent & { type: 'drawn' }, 'type'>): void {
  const { untold } = draft.state;
  if (transactionId !== undefined && untold.some((payment) => payment.transactionId === transactionId)) {
    draft.writes.push({ kind: 'told', transactionId });
    draft.set({ untold: untold.filter((payment) => payment.transactionId !== transactionId) });
  }
  displayWorks(draft);
  if (account !== undefined) draft.move({ type: 'account-drawn', account });
  // The display is through with all that came before: a payment that it has not confirmed by then, it has not shown.
  if (pushId === undefined && transactionId === undefined) draft.move({ type: 'settle' });
  if (pushId === undefined || !draft.move({ type: 'drawn', pushId })) return;
  draft.writes.push({ kind: 'shown', pushId });
  draft.sends.push({ type: 'shown', pushId });
}

function onUnreadable(draft: Draft, pushId: string, reason: string): void {
  displayWorks(draft);
  const active = activeOrder(draft.state.stage);
  if (active === undefined || !draft.move({ type: 'unreadable', pushId })) return;
  draft.reject(active.order, { code: 'QR_TOO_DENSE', reason });
}

function onDrawFailed(draft: Draft, pushId: string | undefined, reason: string): void {
  const { stage, faults } = draft.state;
  draft.set({ faults: { ...faults, display: reason } });
  const active = activeOrder(stage);
  if (active === undefined || pushId === undefined || !draft.move({ type: 'draw-failed', pushId })) return;
  draft.reject(active.order, { code: 'DISPLAY_FAULT', reason });
}

function onDismiss(draft: Draft): void {
  const { stage } = draft.state;
  if ('untilMs' in stage) finish(draft);
  if (stage.kind === 'order') draft.endActive('dismissed');
}

/** The disk failed: a push is refused by name, a payment is shown and reported all the same (house rule 2). */
function onUnrecorded(draft: Draft, cause: BoxEvent, reason: string): void {
  draft.set({ faults: { ...draft.state.faults, storage: reason } });
  const activePushId = activeOrder(draft.state.stage)?.order.pushId;
  if (cause.type === 'push' && cause.push.pushId !== activePushId) {
    draft.forget(cause.push.pushId);
    draft.sends.push({ type: 'rejected', pushId: cause.push.pushId, code: 'STORAGE_FAULT', reason });
  } else if (cause.type === 'payment') {
    onPayment(draft, cause, false);
  } else {
    apply(draft, cause);
  }
}

/** A screen that stays for a while is over: people know an account that a display has shown for its time (AGT-13). */
function finish(draft: Draft): void {
  const { stage } = draft.state;
  if (stage.kind === 'account' && stage.drawn) draft.accountTold(stage.holder);
  draft.move({ type: 'finish' });
}
