import { randomUUID } from 'node:crypto';
import { ANNOUNCEMENT_MUTANTS } from './announcements.ts';
import { CARELESS_STATE_MUTANTS } from './careless.ts';
import { activeId, after, isNew, onStage, type StateMutant } from './reducer.ts';

const AN_HOUR_MS = 3_600_000;

/** Boxes that decide otherwise. */
export const STATE_MUTANTS: Record<string, StateMutant> = {
  'says that a push is on the screen when it is told again': {
    breaks: ['AGT-2'],
    change: after('push', (step, event, before) => {
      const again = event.type === 'push' && activeId(before) === event.push.pushId ? event.push.pushId : undefined;
      return again === undefined ? step : { ...step, sends: [{ type: 'shown', pushId: again }] };
    }),
  },
  'takes a push that is told again anew': {
    breaks: ['AGT-2'],
    change: (ours) => (before, event, at) => {
      const isAgain = event.type === 'push' && activeId(before) === event.push.pushId;
      return ours(isAgain ? { ...before, stage: { kind: 'idle' } } : before, event, at);
    },
  },
  'announces each payment twice, aloud only': {
    breaks: ['AGT-5'],
    change: after('payment', (step) => ({ ...step, announcements: step.announcements.flatMap((it) => [it, it]) })),
  },
  'announces a payment again that is sent again, aloud only': {
    breaks: ['AGT-5'],
    change: after('payment', (step, event, before) =>
      event.type === 'payment' && before.announced.includes(event.payment.transactionId)
        ? { ...step, announcements: [event.payment] }
        : step,
    ),
  },
  'announces a payment again that is sent again after a reconnect': {
    breaks: ['AGT-5'],
    change: (ours) => {
      const before = new Set<string>();
      const now = new Set<string>();
      return (state, event, at) => {
        const step = ours(state, event, at);
        if (event.type === 'registered') for (const id of now) before.add(id);
        if (event.type !== 'payment') return step;
        const { transactionId } = event.payment;
        const isAgain = before.has(transactionId);
        now.add(transactionId);
        return isAgain ? { ...step, announcements: [event.payment] } : step;
      };
    },
  },
  'announces a payment again that is sent again after a restart': {
    breaks: ['AGT-5'],
    needs: ['restart'],
    change: (ours) => {
      const own = new Set<string>();
      return (state, event, at) => {
        if (isNew(state)) own.clear();
        const step = ours(state, event, at);
        if (event.type !== 'payment' || own.has(event.payment.transactionId)) return step;
        own.add(event.payment.transactionId);
        return state.announced.includes(event.payment.transactionId)
          ? { ...step, announcements: [event.payment] }
          : step;
      };
    },
  },
  'asks for ten times the amount on the screen': {
    breaks: ['AGT-2'],
    change: onStage((stage) => {
      if (stage.kind !== 'order') return stage;
      const { active } = stage;
      return { ...stage, active: { ...active, order: { ...active.order, amount: 10 * active.order.amount } } };
    }),
  },
  'says ten times the amount of a payment on the screen': {
    breaks: ['AGT-5'],
    change: onStage((stage) =>
      stage.kind === 'paid' ? { ...stage, payment: { ...stage.payment, amount: 10 * stage.payment.amount } } : stage,
    ),
  },
  'stays on the screen of an order that is over': {
    breaks: ['AGT-6'],
    change: onStage((stage) => (stage.kind === 'ended' ? { ...stage, untilMs: stage.untilMs + AN_HOUR_MS } : stage)),
  },
  'forgets the order on the screen in a restart': {
    breaks: ['AGT-8'],
    needs: ['restart', 'slow'],
    change: (ours) => (before, event, at) => {
      // On the screen, or waiting for the gateway's time.
      const isOrder = isNew(before) && (before.stage.kind === 'order' || before.undatedOrder !== undefined);
      const forgotten = { ...before, stage: { kind: 'idle' as const }, undatedOrder: undefined };
      return ours(isOrder ? forgotten : before, event, at);
    },
  },
  'gives the report of the same payment another id': {
    breaks: ['MSG-7'],
    change: after('payment', (step, event, before) => {
      const isAgain = event.type === 'payment' && before.announced.includes(event.payment.transactionId);
      if (!isAgain) return step;
      return { ...step, sends: step.sends.map((it) => (it.type === 'paid' ? { ...it, id: randomUUID() } : it)) };
    }),
  },
  'answers the withdrawal of an unknown push once': {
    breaks: ['MSG-9'],
    change: after('withdraw', (step, event, before) =>
      event.type === 'withdraw' && before.closedPushIds.includes(event.pushId) ? { ...step, sends: [] } : step,
    ),
  },
  'keeps an order that the welcome does not name': {
    breaks: ['MSG-10'],
    change: (ours) => (before, event, at) => {
      const pushId = activeId(before);
      const isOdd = event.type === 'registered' && pushId !== undefined && !event.openPushIds.includes(pushId);
      return ours(before, isOdd ? { ...event, openPushIds: [...event.openPushIds, pushId] } : event, at);
    },
  },
  'remembers three payments': {
    breaks: ['AGT-5'],
    needs: ['slow'],
    change: (ours) => (before, event, at) => ours({ ...before, announced: before.announced.slice(-3) }, event, at),
  },
  'remembers three pushes': {
    breaks: ['AGT-4'],
    change: (ours) => (before, event, at) =>
      ours({ ...before, closedPushIds: before.closedPushIds.slice(-3) }, event, at),
  },
  'keeps a QR past its end while it has no session': {
    breaks: ['AGT-3'],
    change: (ours) => (before, event, at) => {
      const { stage, connection } = before;
      if (stage.kind !== 'order' || connection === 'registered' || event.type === 'registered')
        return ours(before, event, at);
      const active = { ...stage.active, deadlineMs: Number.POSITIVE_INFINITY };
      const step = ours({ ...before, stage: { ...stage, active } }, event, at);
      const kept = step.state.stage.kind === 'order' ? stage : step.state.stage;
      return { ...step, state: { ...step.state, stage: kept }, wakeAtMs: undefined };
    },
  },
  'says of every payment that it is recorded': {
    breaks: ['AGT-5'],
    change: (ours) => (before, event, at) => {
      const step = ours(before, event, at);
      const recorded = <T extends { type: string }>(it: T): T => (it.type === 'paid' ? { ...it, recorded: true } : it);
      const unsent = step.state.unsent.map(recorded);
      return { ...step, state: { ...step.state, unsent }, sends: step.sends.map(recorded) };
    },
  },
  'shows no payment while its disk fails': {
    breaks: ['AGT-5'],
    change: after('unrecorded', (step, event, before) =>
      event.type === 'unrecorded' && event.cause.type === 'payment'
        ? { ...step, state: { ...step.state, stage: before.stage, unconfirmedPayments: before.unconfirmedPayments } }
        : step,
    ),
  },
  'takes a push while its disk fails': {
    breaks: ['AGT-2'],
    change: (ours) => (before, event, at) =>
      event.type === 'unrecorded' && event.cause.type === 'push'
        ? ours(before, event.cause, at)
        : ours(before, event, at),
  },
  'ends the order on the screen for any acknowledgement': {
    breaks: ['AGT-7'],
    change: (ours) => (before, event, at) => {
      const pushId = activeId(before);
      const isOdd = event.type === 'acked' && pushId !== undefined && event.ids.includes(pushId);
      return isOdd ? ours(before, { type: 'withdraw', pushId, why: 'timeout' }, at) : ours(before, event, at);
    },
  },
  'ends the order on the screen for any withdrawal that somebody cancelled': {
    breaks: ['AGT-7'],
    change: (ours) => (before, event, at) => {
      const pushId = activeId(before);
      const isOdd = event.type === 'withdraw' && event.why === 'cancelled' && pushId !== undefined;
      return ours(before, isOdd ? { ...event, pushId } : event, at);
    },
  },
  'keeps a QR that a person took away': {
    breaks: ['AGT-3'],
    change: after('key', (step, _event, before) =>
      before.stage.kind === 'order' ? { ...step, state: { ...step.state, stage: before.stage } } : step,
    ),
  },
  'ignores the key while it tells of a payment': {
    breaks: ['AGT-6'],
    change: (ours) => (before, event, at) => {
      const isPaid = before.stage.kind === 'paid';
      return ours(before, event.type === 'key' && isPaid ? { type: 'tick' } : event, at);
    },
  },
  'tells of a payment until something else happens': {
    breaks: ['AGT-6'],
    change: (ours) => (before, event, at) => {
      const step = ours(before, event, at);
      const { stage, unconfirmedPayments } = step.state;
      const isLast = stage.kind === 'paid' && unconfirmedPayments.length === 0;
      if (!isLast || stage.resume !== undefined) return step;
      return { ...step, state: { ...step.state, stage: { ...stage, untilMs: at.monotonicMs + AN_HOUR_MS } } };
    },
  },
  ...ANNOUNCEMENT_MUTANTS,
  ...CARELESS_STATE_MUTANTS,
};
