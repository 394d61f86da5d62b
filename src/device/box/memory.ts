import type { LinkedAccount } from '../../protocol/messages.ts';
import { withNewest } from './draft.ts';
import type { Entry, Order, Payment } from './entry.ts';
import { withinLimit } from './outbox.ts';
import { REMEMBERED_MAX, UNCONFIRMED_MAX, type UnsentReport } from './state.ts';

/** The state that a journal holds. */
export interface JournalState {
  /** The newest order that was on the screen and has not ended. */
  shown: Order | undefined;
  announced: string[];
  closedPushIds: string[];
  unsent: readonly UnsentReport[];
  recentPayments: readonly Payment[];
  unconfirmedPayments: readonly Payment[];
  announcedAccount: LinkedAccount | undefined;
  sandboxMark: boolean;
}

/**
 * Reads a journal (PROTOCOL.md, clauses AGT-5, AGT-8, AGT-10, AGT-13 and MSG-6): reports without an acknowledgement are
 * sent again, and announced payments are not announced again. A push that was accepted but never on the screen, or that
 * lost the screen to a newer one without a record, is reported as ended: nobody may wait for a QR that does not come.
 */
export function replay(entries: readonly Entry[]): JournalState {
  const open = new Map<string, { order: Order; displayed: boolean }>();
  const reports = new Map<string, UnsentReport>();
  const acked = new Set<string>();
  const unconfirmedPayments = new Map<string, Payment>();
  const announced = new Set<string>();
  const closed: string[] = [];
  let recentPayments: readonly Payment[] = [];
  let announcedAccount: LinkedAccount | undefined;
  let sandboxMark = false;
  const close = (pushId: string) => {
    open.delete(pushId);
    closed.push(pushId);
  };
  const end = (pushId: string, orderId: string, how: (Entry & { kind: 'ended' })['how']) => {
    close(pushId);
    reports.set(pushId, { type: 'ended', id: pushId, pushId, orderId, how });
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
        // Written twice when the disk failed and works again.
        if (announced.has(transactionId)) break;
        announced.add(transactionId);
        recentPayments = withNewest(recentPayments, entry.payment);
        if (!entry.payment.late) unconfirmedPayments.set(transactionId, entry.payment);
        reports.set(transactionId, { type: 'paid', id: transactionId, transactionId, orderId, amount, recorded: true });
        break;
      }
      case 'payment-displayed':
        unconfirmedPayments.delete(entry.transactionId);
        break;
      case 'payment-dropped':
        unconfirmedPayments.delete(entry.transactionId);
        recentPayments = recentPayments.filter(({ transactionId }) => transactionId !== entry.transactionId);
        break;
      case 'account':
        announcedAccount = entry.account;
        break;
      case 'mark':
        sandboxMark = entry.shown;
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
    unsent: withinLimit([...reports.values()].filter((report) => !acked.has(report.id))),
    recentPayments,
    unconfirmedPayments: [...unconfirmedPayments.values()].slice(-UNCONFIRMED_MAX),
    announcedAccount,
    sandboxMark,
  };
}
