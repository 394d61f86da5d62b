import type { BoxState } from '../../../src/device/box/state.ts';
import { after, isNew, quiet, type StateMutant } from './reducer.ts';

/** Boxes that show or announce otherwise what waits: payments after a restart, other accounts, reports. */
export const ANNOUNCEMENT_MUTANTS: Record<string, StateMutant> = {
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
  'covers the QR of a push with a payment that waited': {
    breaks: ['AGT-12'],
    needs: ['slow'],
    change: after('drawn', (step, _event, before) => {
      const { stage, nowMs, unconfirmedPayments } = step.state;
      const [payment] = unconfirmedPayments;
      const isNewQr = before.stage.kind === 'order' && !before.stage.active.displayed;
      if (!isNewQr || stage.kind !== 'order' || payment === undefined) return step;
      const untilMs = nowMs + 3_000;
      const paid = { kind: 'paid' as const, payment, holder: null, sinceMs: nowMs, untilMs, resume: stage.active };
      return { ...step, state: { ...step.state, stage: paid }, wakeAtMs: untilMs };
    }),
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
