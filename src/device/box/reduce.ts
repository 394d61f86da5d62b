import type { DownOf } from '../../protocol/messages.ts';
import { Draft, withId, withNewest } from './draft.ts';
import type { Payment } from './entry.ts';
import { acknowledge, resetInFlight } from './outbox.ts';
import { orderOf, refusalOf } from './push.ts';
import { onEnrolling, onLinked, onRefused, onRegistered } from './registration.ts';
import { repeatPayment } from './repeat.ts';
import { mergeJournal } from './restore.ts';
import {
  type At,
  activeOrder,
  type BoxEvent,
  type BoxState,
  type Refusal,
  type Step,
  UNCONFIRMED_MAX,
  type UnsentReport,
} from './state.ts';

/*
 * The effect of each event (PROTOCOL.md, clauses AGT and MSG). `machine.ts` decides what has the screen; this file decides
 * what is written, sent and announced. The rules:
 *
 *   push        checked, journaled, shown; `accepted` at once, `shown` when the display has confirmed it
 *   newer push  takes the screen; the older one is reported as `replaced`, or rejected if it never was on the screen
 *   payment     always shown, always reported, once a transactionId; another order's QR comes back after it
 *   late one    listed and reported, neither shown nor said; the QR that it paid goes
 *   repetition  the newest payment that was seen, as what it is: shown with its time, said only while it is fresh
 *   restart     the order is dated by the gateway's time, payments that no display confirmed are shown, nothing is announced twice
 *   time        ends an order at its deadline and other screens after their hold; sends again what is not acknowledged
 *   withdrawal  ends its push, also one that has not arrived yet
 *   account     a changed account is shown once no order and no payment has the screen, also after a restart
 *   enrolment   a code has the screen while nothing else has, until it expires
 *   faults      a dead display or disk refuses pushes by name, never a payment
 *
 * An event that does not fit the state changes nothing but the time.
 */

/** Applies one event. Pure: the time comes with the event, and the loop carries out writes and sends. */
export function reduce(before: BoxState, event: BoxEvent, at: At): Step {
  const draft = new Draft(endOverdue(before, at), at);
  apply(draft, event);
  resendOverdue(draft);
  return draft.step();
}

/** Ends an order or a code past its deadline, and a screen past its hold, before any event. */
function endOverdue(before: BoxState, at: At): Draft {
  const nowMs = Math.max(before.nowMs, at.monotonicMs);
  const start = { state: { ...before, nowMs }, writes: [], sends: [], announcements: [], repeats: [] };
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
  draft.state = resetInFlight(draft.state);
  draft.flush();
}

function apply(draft: Draft, event: BoxEvent): void {
  switch (event.type) {
    case 'enrolling':
      onEnrolling(draft, event);
      break;
    case 'connecting':
      draft.set({ ...resetInFlight(draft.state), connection: 'connecting', enrolment: undefined });
      break;
    case 'registered':
      onRegistered(draft, event);
      break;
    case 'linked':
      onLinked(draft, event);
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
      onKey(draft, event.key);
      break;
    case 'unrecorded':
      onUnrecorded(draft, event.cause, event.reason);
      break;
    case 'recorded':
      draft.set({ faults: { ...draft.state.faults, storage: undefined } });
      break;
    case 'journal-read':
      mergeJournal(draft, event.entries, event.intact);
      break;
    case 'tick':
      break;
  }
}

function onPush(draft: Draft, { push, bornAtMs, qrCheck }: BoxEvent & { type: 'push' }): void {
  const { state } = draft;
  const current = activeOrder(state.stage);
  if (current?.order.pushId === push.pushId) {
    if (current.displayed) draft.sends.push({ type: 'shown', pushId: push.pushId });
    return;
  }
  const refuse = (refusal: Refusal) => {
    draft.markClosed(push.pushId);
    draft.sends.push({ type: 'rejected', pushId: push.pushId, ...refusal });
  };
  if (state.closedPushIds.includes(push.pushId)) {
    refuse({ code: 'WITHDRAWN', reason: 'the push had ended before it arrived' });
    return;
  }
  const { account } = state;
  if (account === null || account === undefined) {
    refuse({ code: 'E36', reason: 'no account is linked to this box' });
    return;
  }
  const deadlineMs = Math.min(bornAtMs, state.nowMs) + push.expiresInMs;
  const refusal = refusalOf(push, deadlineMs - state.nowMs, account, qrCheck);
  if (refusal !== undefined) {
    refuse(refusal);
    if (refusal.code === 'QR_TOO_DENSE') {
      draft.move({ type: 'too-dense', order: orderOf(push, account), untilMs: deadlineMs });
    }
    return;
  }
  if (state.faults.display !== undefined) {
    refuse({ code: 'DISPLAY_FAULT', reason: state.faults.display });
    return;
  }
  if (current !== undefined) draft.reportEnd(current, 'replaced');
  const order = orderOf(push, account);
  draft.writes.push({ kind: 'push', order });
  if (push.confirm !== 'displayed') draft.sends.push({ type: 'accepted', pushId: order.pushId });
  draft.move({ type: 'accept', active: { order, deadlineMs, displayed: false, restored: false } });
}

function onOvertaken(draft: Draft, pushId: string): void {
  if (activeOrder(draft.state.stage)?.order.pushId === pushId) return;
  draft.markClosed(pushId);
  draft.sends.push({ type: 'rejected', pushId, code: 'REPLACED', reason: 'a newer push came before it was looked at' });
}

function onWithdraw(draft: Draft, pushId: string, why: DownOf<'withdraw'>['why']): void {
  const { stage, undatedOrder } = draft.state;
  const active = activeOrder(stage);
  if (undatedOrder?.pushId === pushId) {
    draft.endPush(undatedOrder, 'withdrawn');
    draft.set({ undatedOrder: undefined });
  } else if (active?.order.pushId === pushId) {
    draft.endActive('withdrawn', why === 'cancelled' ? 'cancelled' : undefined);
  } else {
    draft.markClosed(pushId);
    draft.sends.push({ type: 'rejected', pushId, code: 'WITHDRAWN', reason: 'it is not on the screen' });
    draft.move({ type: 'withdraw', pushId });
  }
}

function onPayment(draft: Draft, { payment: message }: BoxEvent & { type: 'payment' }, recorded: boolean): void {
  const { transactionId, orderId, amount, content, paidAtMs, pushId, late, due, bankAccount } = message;
  const report: UnsentReport = { type: 'paid', id: transactionId, transactionId, orderId, amount, recorded };
  const { announced, unsent } = draft.state;
  if (announced.includes(transactionId)) {
    draft.sends.push(unsent.find(({ id }) => id === transactionId) ?? report);
    return;
  }
  const test = draft.state.sandbox ? { test: true } : {};
  const payment: Payment = { transactionId, orderId, amount, content, paidAtMs, late, due, bankAccount, ...test };
  const active = activeOrder(draft.state.stage);
  const paysActive = active !== undefined && active.order.pushId === pushId;
  draft.writes.push({ kind: 'payment', payment, pushId });
  if (pushId !== null) draft.markClosed(pushId);
  const { recentPayments, unconfirmedPayments, undatedOrder } = draft.state;
  draft.set({
    announced: withId(announced, transactionId),
    recentPayments: withNewest(recentPayments, payment),
    unconfirmedPayments: late ? unconfirmedPayments : [...unconfirmedPayments, payment].slice(-UNCONFIRMED_MAX),
    undatedOrder: undatedOrder?.pushId === pushId ? undefined : undatedOrder,
  });
  if (!late && !mayHaveBeenAnnounced(draft.state, message)) draft.announcements.push(payment);
  if (paysActive && !active.displayed) {
    const reason = 'paid before it was on the screen';
    draft.sends.push({ type: 'rejected', pushId: active.order.pushId, code: 'REPLACED', reason });
  }
  draft.move(late ? { type: 'late', pushId } : { type: 'payment', payment, pushId });
  draft.enqueue(report);
}

/** Returns whether an unreadable journal may contain the announcement of this payment (clause AGT-11). */
function mayHaveBeenAnnounced(
  { journalIntact, firstWelcomeMs = 0 }: BoxState,
  { repeated, paidAtMs }: DownOf<'payment'>,
): boolean {
  return !journalIntact && repeated && paidAtMs < firstWelcomeMs;
}

function onAcked(draft: Draft, ids: string[]): void {
  const known = ids.filter((id) => draft.state.unsent.some((report) => report.id === id));
  if (known.length === 0) return;
  draft.writes.push({ kind: 'acked', ids: known });
  draft.state = acknowledge(draft.state, known);
  draft.flush();
}

function displayWorks(draft: Draft): void {
  const { faults } = draft.state;
  if (faults.display !== undefined) draft.set({ faults: { ...faults, display: undefined } });
}

function onDrawn(draft: Draft, { pushId, transactionId, account }: BoxEvent & { type: 'drawn' }): void {
  const { unconfirmedPayments } = draft.state;
  if (transactionId !== undefined && unconfirmedPayments.some((payment) => payment.transactionId === transactionId)) {
    draft.writes.push({ kind: 'payment-displayed', transactionId });
    draft.set({
      unconfirmedPayments: unconfirmedPayments.filter((payment) => payment.transactionId !== transactionId),
    });
  }
  displayWorks(draft);
  if (account !== undefined) draft.move({ type: 'account-drawn', account });
  // The display has drawn all earlier pictures. A payment that it has not confirmed by now was not shown.
  if (pushId === undefined && transactionId === undefined) draft.move({ type: 'settle' });
  const active = activeOrder(draft.state.stage);
  if (pushId === undefined || !draft.move({ type: 'drawn', pushId }) || active?.displayed) return;
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

function onKey(draft: Draft, key: (BoxEvent & { type: 'key' })['key']): void {
  if (key === 'dismiss') onDismiss(draft);
  else if (key === 'repeat') repeatPayment(draft);
  else draft.move({ type: 'history' });
}

function onDismiss(draft: Draft): void {
  const { stage } = draft.state;
  if ('untilMs' in stage) finish(draft);
  if (stage.kind === 'order') draft.endActive('dismissed');
}

/** Handles a failed write. The box refuses a push by name, but still shows and reports a payment (house rule 2). */
function onUnrecorded(draft: Draft, cause: BoxEvent, reason: string): void {
  draft.set({ faults: { ...draft.state.faults, storage: reason } });
  if (cause.type === 'push' && cause.push.pushId !== activeOrder(draft.state.stage)?.order.pushId) {
    draft.markClosed(cause.push.pushId);
    draft.sends.push({ type: 'rejected', pushId: cause.push.pushId, code: 'STORAGE_FAULT', reason });
  } else if (cause.type === 'payment') {
    onPayment(draft, cause, false);
  } else {
    apply(draft, cause);
  }
}

/** Ends a temporary screen. An account that a display has shown for its time now counts as known (clause AGT-13). */
function finish(draft: Draft): void {
  const { stage } = draft.state;
  if (stage.kind === 'account' && stage.drawn) draft.announceAccount(stage.holder);
  draft.move({ type: 'finish' });
}
