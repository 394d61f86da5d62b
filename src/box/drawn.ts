import type { Holder } from '../scene.ts';
import type { Draft } from './draft.ts';
import type { Order } from './entry.ts';
import { activeOrder, type BoxEvent, isSameAccount } from './state.ts';

/* What follows from what the display did with a scene (PROTOCOL.md, clauses AGT-2, AGT-9, AGT-10 and AGT-13). */

/** Words in place of a QR that could not be read, for as long as the QR would have been there. */
export function tellTooDense(draft: Draft, { pushId, amount, content, holder }: Order, holdMs: number): void {
  draft.tell({ kind: 'too-dense', pushId, amount, content, holder }, holdMs);
}

function displayWorks(draft: Draft): void {
  const { faults } = draft.state;
  if (faults.display !== undefined) draft.set({ faults: { ...faults, display: undefined } });
}

export function onDrawn(
  draft: Draft,
  { pushId, transactionId, account }: Omit<BoxEvent & { type: 'drawn' }, 'type'>,
): void {
  const { untold } = draft.state;
  if (transactionId !== undefined && untold.some((payment) => payment.transactionId === transactionId)) {
    draft.writes.push({ kind: 'told', transactionId });
    draft.set({ untold: untold.filter((payment) => payment.transactionId !== transactionId) });
  }
  displayWorks(draft);
  if (account !== undefined) onAccountDrawn(draft, account);
  const { stage } = draft.state;
  // The display is through with all that came before: a payment that it has not confirmed by then, it has not shown.
  if (stage.kind === 'quiet' && pushId === undefined && transactionId === undefined) draft.rest();
  const active = activeOrder(stage);
  if (active === undefined || active.order.pushId !== pushId || active.displayed) return;
  const displayed = { ...active, displayed: true };
  draft.writes.push({ kind: 'shown', pushId });
  draft.sends.push({ type: 'shown', pushId });
  draft.set({
    stage: stage.kind === 'notice' ? { ...stage, resume: displayed } : { kind: 'order', active: displayed },
  });
  // Payments whose turn this push took come over it: they must not wait for as long as its QR lives.
  if (stage.kind === 'order' && draft.state.untold.length > 0) draft.rest(undefined, displayed);
}

/** People have its whole time from here, however slow the display is. */
function onAccountDrawn(draft: Draft, account: Holder): void {
  const { stage } = draft.state;
  if (stage.kind !== 'notice' || stage.notice.kind !== 'account' || stage.notice.drawn) return;
  if (isSameAccount(stage.notice.holder, account)) draft.notice({ ...stage.notice, drawn: true });
}

/** A QR that was readable once, before its display became smaller, stays: its partner has been told that it is there. */
export function onUnreadable(draft: Draft, pushId: string, reason: string): void {
  displayWorks(draft);
  const { stage, nowMs } = draft.state;
  if (stage.kind !== 'order' || stage.active.order.pushId !== pushId || stage.active.displayed) return;
  const { order, deadlineMs } = stage.active;
  draft.reject(order, { code: 'QR_TOO_DENSE', reason });
  tellTooDense(draft, order, deadlineMs - nowMs);
}

export function onDrawFailed(draft: Draft, pushId: string | undefined, reason: string): void {
  const { stage, faults } = draft.state;
  draft.set({ faults: { ...faults, display: reason } });
  if (stage.kind !== 'order' || stage.active.order.pushId !== pushId || stage.active.displayed) return;
  draft.reject(stage.active.order, { code: 'DISPLAY_FAULT', reason });
  draft.set({ stage: { kind: 'quiet' } });
}
