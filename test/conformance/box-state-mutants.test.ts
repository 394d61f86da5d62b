import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it, vi } from 'vitest';
import type { At, BoxEvent, BoxState, Step } from '../../src/box/state.ts';
import type { BoxNeed } from '../../src/conformance/box/subject.ts';
import { boxChecksNear, brokenClauses, judge } from './box-fixture.ts';
import { MUTANT_TIMEOUT_MS } from './nearby-checks.ts';

type Reduce = (before: BoxState, event: BoxEvent, at: At) => Step;

/** How a box decides otherwise than ours, which is given. */
type ReducerChange = (ours: Reduce) => Reduce;

const changes = vi.hoisted(() => ({ of: undefined as AsyncLocalStorage<ReducerChange> | undefined }));

vi.mock('../../src/box/reduce.ts', async (importOriginal) => {
  const { reduce } = await importOriginal<{ reduce: Reduce }>();
  return { reduce: (...given: Parameters<Reduce>) => (changes.of?.getStore()?.(reduce) ?? reduce)(...given) };
});

changes.of = new AsyncLocalStorage<ReducerChange>();

interface Mutant {
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

const MUTANTS: Record<string, Mutant> = {
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
    needs: ['slow'],
    change: (ours) => (before, event, at) => {
      const step = ours(before, event, at);
      const { stage, unconfirmedPayments } = step.state;
      const isLast = stage.kind === 'paid' && unconfirmedPayments.length === 0;
      if (!isLast || stage.resume !== undefined) return step;
      return { ...step, state: { ...step.state, stage: { ...stage, untilMs: at.monotonicMs + 3_600_000 } } };
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

describe.concurrent('a box that', () => {
  it.for(Object.entries(MUTANTS))(
    '%s is told so by its clause, and by no other',
    { timeout: MUTANT_TIMEOUT_MS },
    async ([, { breaks, change, needs = [] }]) => {
      const without = (['restart', 'slow'] as const).filter((need) => !needs.includes(need));
      const results = await changes.of?.run(change, () =>
        judge({ breaks }, { without, checks: boxChecksNear(breaks) }),
      );
      expect(brokenClauses(results ?? [])).toEqual(breaks);
    },
  );
});
