import { randomUUID } from 'node:crypto';
import type { At, BoxEvent, BoxState, Step } from '../../../src/box/state.ts';
import type { BoxNeed } from '../../../src/conformance/box/subject.ts';

const AN_HOUR_MS = 3_600_000;

export type Reduce = (before: BoxState, event: BoxEvent, at: At) => Step;

/** How a box decides otherwise than ours, which is given. */
export type ReducerChange = (ours: Reduce) => Reduce;

export interface StateMutant {
  breaks: readonly string[];
  change: ReducerChange;
  /** What it takes to see it, of a restart and of what takes long. */
  needs?: readonly BoxNeed[];
}

/** Changes what comes out of each event of a type. */
function after(type: BoxEvent['type'], change: (step: Step, event: BoxEvent, before: BoxState) => Step): ReducerChange {
  return (ours) => (before, event, at) => {
    const step = ours(before, event, at);
    return event.type === type ? change(step, event, before) : step;
  };
}

/** Changes what has the screen, at each event that puts something else there. */
function onStage(change: (stage: BoxState['stage']) => BoxState['stage']): ReducerChange {
  return (ours) => (before, event, at) => {
    const step = ours(before, event, at);
    const { stage } = step.state;
    return stage.kind === before.stage.kind ? step : { ...step, state: { ...step.state, stage: change(stage) } };
  };
}

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
      const isOrder = isNew(before) && before.stage.kind === 'order';
      return ours(isOrder ? { ...before, stage: { kind: 'idle' } } : before, event, at);
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
  'forgets after a restart which payments nobody has seen': {
    breaks: ['AGT-10'],
    needs: ['restart', 'slow'],
    change: (ours) => (before, event, at) =>
      ours(isNew(before) ? { ...before, unconfirmedPayments: [], stage: quiet(before) } : before, event, at),
  },
  'keeps the two newest of the payments that nobody has seen': {
    breaks: ['AGT-10'],
    needs: ['restart', 'slow'],
    change: (ours) => (before, event, at) =>
      ours(
        isNew(before) ? { ...before, unconfirmedPayments: before.unconfirmedPayments.slice(-2) } : before,
        event,
        at,
      ),
  },
  'says payments aloud again after a restart': {
    breaks: ['AGT-10'],
    needs: ['restart', 'slow'],
    change: after('registered', (step, _event, before) =>
      before.firstWelcomeMs === undefined ? { ...step, announcements: [...before.recentPayments] } : step,
    ),
  },
  'forgets a payment that its display failed to show': {
    breaks: ['AGT-10'],
    needs: ['slow'],
    change: after('payment', (step, _event, before) =>
      before.faults.display === undefined
        ? step
        : { ...step, state: { ...step.state, unconfirmedPayments: before.unconfirmedPayments } },
    ),
  },
  'forgets a push that was not on the screen before a restart': {
    breaks: ['AGT-10'],
    needs: ['restart'],
    change: (ours) => (before, event, at) => {
      const isInterrupted = (it: BoxState['unsent'][number]) => it.type === 'ended' && it.how === 'interrupted';
      return ours({ ...before, unsent: before.unsent.filter((it) => !isInterrupted(it)) }, event, at);
    },
  },
  'says aloud what may have been said before': {
    breaks: ['AGT-11'],
    change: (ours) => (before, event, at) => ours({ ...before, journalIntact: true }, event, at),
  },
  'never says aloud what is told again': {
    breaks: ['AGT-11'],
    change: after('payment', (step, event) =>
      event.type === 'payment' && event.payment.repeated ? { ...step, announcements: [] } : step,
    ),
  },
  'shows each payment for a second where others wait': {
    breaks: ['AGT-12'],
    needs: ['slow'],
    change: (ours) => (before, event, at) => {
      const step = ours(before, event, at);
      const { stage, unconfirmedPayments } = step.state;
      const isWaitedFor = stage.kind === 'paid' && unconfirmedPayments.length > 1;
      if (!isWaitedFor) return step;
      const untilMs = Math.min(stage.untilMs, stage.sinceMs + 1_000);
      return { ...step, state: { ...step.state, stage: { ...stage, untilMs } }, wakeAtMs: untilMs };
    },
  },
  'shows the last of the payments that come at once only': {
    breaks: ['AGT-12'],
    needs: ['slow'],
    change: after('payment', (step) => {
      const last = step.state.unconfirmedPayments.slice(-1);
      return { ...step, state: { ...step.state, unconfirmedPayments: last } };
    }),
  },
  'keeps from the screen what a push came before': {
    breaks: ['AGT-12'],
    needs: ['slow'],
    change: after('push', (step, _event, before) =>
      step.state.stage === before.stage ? step : { ...step, state: { ...step.state, unconfirmedPayments: [] } },
    ),
  },
  'tells nobody of another account': {
    breaks: ['AGT-13'],
    needs: ['slow'],
    change: (ours) => (before, event, at) =>
      ours(
        event.type === 'registered' && event.account ? { ...before, announcedAccount: event.account } : before,
        event,
        at,
      ),
  },
  'tells of another account for a second': {
    breaks: ['AGT-13'],
    needs: ['slow'],
    change: (ours) => (before, event, at) => {
      const step = ours(before, event, at);
      const { stage } = step.state;
      if (stage.kind !== 'account' || stage === before.stage) return step;
      const untilMs = at.monotonicMs + 1_000;
      return { ...step, state: { ...step.state, stage: { ...stage, untilMs } }, wakeAtMs: untilMs };
    },
  },
  'tells of another account once, however short it was there': {
    breaks: ['AGT-13'],
    needs: ['restart', 'slow'],
    change: (ours) => (before, event, at) => {
      const step = ours(before, event, at);
      const { stage, account } = step.state;
      if (stage.kind !== 'account' || !account) return step;
      const isTold = before.announcedAccount?.bankAccount === account.bankAccount;
      const write = { kind: 'account', account, announcedAtMs: at.wallMs } as const;
      return {
        ...step,
        state: { ...step.state, announcedAccount: account },
        writes: isTold ? step.writes : [...step.writes, write],
      };
    },
  },
  'sends all its reports at once': {
    breaks: ['MSG-6'],
    needs: ['slow'],
    change: (ours) => (before, event, at) => {
      const step = ours(before, event, at);
      const said = new Set(step.state.inFlight);
      const more = step.state.unsent.filter(({ id }) => !said.has(id));
      if (step.state.inFlight.length < 100 || more.length === 0 || event.type === 'tick') return step;
      return { ...step, sends: [...step.sends, ...more.slice(-1)] };
    },
  },
};

function activeId({ stage }: BoxState): string | undefined {
  if (stage.kind === 'order') return stage.active.order.pushId;
  return stage.kind === 'paid' ? stage.resume?.order.pushId : undefined;
}

/** Whether the box has not been in a session since it started. */
function isNew({ firstWelcomeMs }: BoxState): boolean {
  return firstWelcomeMs === undefined;
}

function quiet({ stage }: BoxState): BoxState['stage'] {
  return stage.kind === 'paid' && stage.resume === undefined ? { kind: 'idle' } : stage;
}
