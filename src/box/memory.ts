import type { Link } from '../protocol/messages.ts';
import { recent } from './draft.ts';
import type { Entry, Order, Payment } from './entry.ts';
import { withinLimit } from './outbox.ts';
import { REMEMBERED_MAX, UNTOLD_MAX, type UnsentReport } from './state.ts';

/** What a journal tells of the time before. */
export interface Memory {
  /** The newest order that was on the screen and has not ended. */
  shown: Order | undefined;
  announced: string[];
  closedPushIds: string[];
  unsent: readonly UnsentReport[];
  recentPayments: readonly Payment[];
  untold: readonly Payment[];
  toldLink: Link | undefined;
}

/**
 * Reads a journal (PROTOCOL.md, clauses AGT-5, AGT-8, AGT-10, AGT-13 and MSG-6): what is owed is still owed, and what was
 * announced stays announced. A push that was taken but never was on the screen, or lost it to a newer one unrecorded,
 * is owed an end: nobody may wait for a QR that does not come.
 */
export function recall(entries: readonly Entry[]): Memory {
  const open = new Map<string, { order: Order; displayed: boolean }>();
  const owed = new Map<string, UnsentReport>();
  const acked = new Set<string>();
  const untold = new Map<string, Payment>();
  const announced = new Set<string>();
  const closed: string[] = [];
  let recentPayments: readonly Payment[] = [];
  let toldLink: Link | undefined;
  const close = (pushId: string) => {
    open.delete(pushId);
    closed.push(pushId);
  };
  const end = (pushId: string, orderId: string, how: (Entry & { kind: 'ended' })['how']) => {
    close(pushId);
    owed.set(pushId, { type: 'ended', id: pushId, pushId, orderId, how });
  };
  for (const entry of entries) {
    switch (entry.kind) {
      case 'push':
        open.set(entry.order.pushId, { order: entry.order, displayed: false });
        break;
      case 'shown': {
        const shown = open.get(entry.pushId);
        if (shown !== undefined) shown.displayed = true;
        break;
      }
      case 'refused':
        close(entry.pushId);
        break;
      case 'ended':
        end(entry.pushId, entry.orderId, entry.how);
        break;
      case 'payment': {
        const { transactionId, orderId, amount } = entry.payment;
        if (entry.pushId !== null) close(entry.pushId);
        // Written twice when the disk came back after the box had announced it without one.
        if (announced.has(transactionId)) break;
        announced.add(transactionId);
        recentPayments = recent(recentPayments, entry.payment);
        untold.set(transactionId, entry.payment);
        owed.set(transactionId, { type: 'paid', id: transactionId, transactionId, orderId, amount, recorded: true });
        break;
      }
      case 'told':
        untold.delete(entry.transactionId);
        break;
      case 'link':
        toldLink = entry.link;
        break;
      case 'acked':
        for (const id of entry.ids) acked.add(id);
        break;
    }
  }
  const shown = [...open.values()].filter((push) => push.displayed && !acked.has(push.order.pushId)).at(-1)?.order;
  for (const { order } of [...open.values()]) {
    if (order.pushId !== shown?.pushId) end(order.pushId, order.orderId, 'interrupted');
  }
  return {
    shown,
    announced: [...announced].slice(-REMEMBERED_MAX),
    closedPushIds: closed.slice(-REMEMBERED_MAX),
    unsent: withinLimit([...owed.values()].filter((report) => !acked.has(report.id))),
    recentPayments,
    untold: [...untold.values()].slice(-UNTOLD_MAX),
    toldLink,
  };
}
