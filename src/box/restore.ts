import { recent, withinLimit } from './draft.ts';
import type { Entry, Order } from './entry.ts';
import { type At, type BoxConfig, type BoxState, REMEMBERED_MAX, type UnsentReport } from './state.ts';

/** A box that has just been switched on and remembers nothing. */
export function initialState(config: BoxConfig, at: At): BoxState {
  return {
    config,
    nowMs: at.monotonicMs,
    connection: 'none',
    link: undefined,
    stage: { kind: 'quiet' },
    refusal: undefined,
    faults: { display: undefined, storage: undefined },
    recentPayments: [],
    announced: [],
    closedPushIds: [],
    unsent: [],
  };
}

/**
 * The state that the journal tells of (PROTOCOL.md, clauses AGT-5, AGT-8 and MSG-6): what is owed is still owed, what
 * was announced stays announced, and an order that was on the screen and has not expired is there again. A push that was
 * never confirmed stays away: its partner was told that it failed. Deadlines are counted from calendar time, the only
 * time that a restart leaves.
 */
export function restore(config: BoxConfig, entries: readonly Entry[], at: At): BoxState {
  const fresh = initialState(config, at);
  const open = new Map<string, { order: Order; displayed: boolean }>();
  const unsent = new Map<string, UnsentReport>();
  const closed: string[] = [];
  const announced: string[] = [];
  let recentPayments = fresh.recentPayments;
  const close = (pushId: string) => {
    open.delete(pushId);
    closed.push(pushId);
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
        close(entry.pushId);
        unsent.set(entry.pushId, {
          type: 'ended',
          id: entry.pushId,
          pushId: entry.pushId,
          orderId: entry.orderId,
          how: entry.how,
        });
        break;
      case 'payment': {
        const { transactionId, orderId, amount } = entry.payment;
        if (entry.pushId !== null) close(entry.pushId);
        announced.push(transactionId);
        recentPayments = recent(recentPayments, entry.payment);
        unsent.set(transactionId, { type: 'paid', id: transactionId, transactionId, orderId, amount, recorded: true });
        break;
      }
      case 'acked':
        for (const id of entry.ids) unsent.delete(id);
        break;
    }
  }
  const newest = [...open.values()].filter((push) => push.displayed).at(-1);
  return {
    ...fresh,
    recentPayments,
    announced: announced.slice(-REMEMBERED_MAX),
    closedPushIds: closed.slice(-REMEMBERED_MAX),
    unsent: withinLimit([...unsent.values()]),
    stage:
      newest === undefined
        ? fresh.stage
        : {
            kind: 'order',
            active: {
              ...newest,
              // A device whose clock has lost its battery starts in the past: never longer than the push came with.
              deadlineMs:
                at.monotonicMs + Math.min(newest.order.lifetimeMs, Math.max(0, newest.order.expiresAtMs - at.wallMs)),
            },
          },
  };
}
