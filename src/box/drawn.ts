import type { Draft } from './draft.ts';
import { activeOrder, type BoxEvent } from './state.ts';

/* What follows from what the display did with a scene (PROTOCOL.md, clauses AGT-2, AGT-9, AGT-10 and AGT-13). */

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
  if (account !== undefined) draft.move({ type: 'account-drawn', account });
  // The display is through with all that came before: a payment that it has not confirmed by then, it has not shown.
  if (pushId === undefined && transactionId === undefined) draft.move({ type: 'settle' });
  if (pushId === undefined || !draft.move({ type: 'drawn', pushId })) return;
  draft.writes.push({ kind: 'shown', pushId });
  draft.sends.push({ type: 'shown', pushId });
}

export function onUnreadable(draft: Draft, pushId: string, reason: string): void {
  displayWorks(draft);
  const active = activeOrder(draft.state.stage);
  if (active === undefined || !draft.move({ type: 'unreadable', pushId })) return;
  draft.reject(active.order, { code: 'QR_TOO_DENSE', reason });
}

export function onDrawFailed(draft: Draft, pushId: string | undefined, reason: string): void {
  const { stage, faults } = draft.state;
  draft.set({ faults: { ...faults, display: reason } });
  const active = activeOrder(stage);
  if (active === undefined || pushId === undefined || !draft.move({ type: 'draw-failed', pushId })) return;
  draft.reject(active.order, { code: 'DISPLAY_FAULT', reason });
}
