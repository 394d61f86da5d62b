import { type Draft, united } from './draft.ts';
import type { Entry } from './entry.ts';
import { recall } from './memory.ts';
import { leftMs } from './order.ts';
import { withinLimit } from './outbox.ts';
import { activeOrder, isSameAccount, RECENT_MAX, UNTOLD_MAX } from './state.ts';

/** Dates an order from before a restart by the gateway's calendar clock, which also set its end (clause AGT-8). */
export function redate(draft: Draft, gatewayMs: number): void {
  const { held, stage, nowMs } = draft.state;
  const active = activeOrder(stage);
  const order = held ?? (active?.restored === true ? active.order : undefined);
  if (order === undefined) return;
  const left = leftMs(order, gatewayMs);
  if (left === undefined) {
    draft.close(order, 'expired');
    draft.set({ held: undefined });
    if (active?.order.pushId === order.pushId) draft.move({ type: 'order-over', as: 'expired' });
    return;
  }
  const deadlineMs = Math.min(active?.deadlineMs ?? Number.POSITIVE_INFINITY, nowMs + left);
  draft.set({ held: undefined });
  draft.move({ type: 'date', active: { order, deadlineMs, displayed: true, restored: false } });
}

/** What this life of the box knows is newer; an order that was on the screen before it is over. */
export function remember(draft: Draft, entries: Entry[], whole: boolean): void {
  const { shown, ...before } = recall(entries);
  const { announced, closedPushIds, unsent, recentPayments, untold, toldLink } = draft.state;
  const known = new Set([...announced, ...unsent.map(({ id }) => id)]);
  draft.set({
    whole,
    announced: united(before.announced, announced),
    closedPushIds: united(before.closedPushIds, closedPushIds),
    unsent: withinLimit([...before.unsent.filter(({ id }) => !known.has(id)), ...unsent]),
    recentPayments: [...recentPayments, ...before.recentPayments.filter((it) => !known.has(it.transactionId))].slice(
      0,
      RECENT_MAX,
    ),
    untold: [...before.untold.filter((it) => !known.has(it.transactionId)), ...untold].slice(-UNTOLD_MAX),
  });
  // Written anew, behind what this life took for the first account while it could not know better.
  if (before.toldLink !== undefined && !isSameAccount(before.toldLink, toldLink)) draft.accountTold(before.toldLink);
  if (shown !== undefined && !closedPushIds.includes(shown.pushId)) draft.close(shown, 'interrupted');
  draft.mail();
  draft.move({ type: 'settle' });
}
