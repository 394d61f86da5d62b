import type { Mutant } from '../box-fixture.ts';
import { onShow, qrIn } from './payloads.ts';
import { activeId, after, type StateMutant } from './reducer.ts';

/** An amount of nine digits or more, which a careless box handles otherwise. */
const LARGE = 100_000_000;
const MINUTE_MS = 60_000;
/** When the older QR is back for a moment, after the newer one was drawn first. */
const FLASH_MS = [300, 550] as const;

const tenthOf = (amount: number) => (amount >= LARGE ? Math.trunc(amount / 10) : amount);

/** Boxes that are wrong in few cases only: what they show. */
export const CARELESS_WIRE_MUTANTS: Record<string, Mutant> = {
  'does not look at the amount in the QR where it is large': {
    breaks: ['AGT-1'],
    wire: onShow((show) => (show.amount < LARGE ? show : { ...show, amount: qrIn(show)?.amount ?? show.amount })),
  },
  'shows the older QR for a moment after the newer one': {
    breaks: ['AGT-3'],
    panel: (drawn, nowMs) => {
      const last = drawn.at(-1);
      const older = drawn.findLast(({ qr }) => qr !== undefined && qr !== last?.qr);
      const sinceMs = nowMs - (drawn.find(({ qr }) => qr === last?.qr)?.atMs ?? 0);
      const isBack = last?.qr !== undefined && sinceMs >= FLASH_MS[0] && sinceMs < FLASH_MS[1];
      return isBack ? (older ?? last) : last;
    },
  },
  'says a tenth of a large amount aloud': {
    breaks: ['AGT-5'],
    voice: (voice) => ({ ...voice, words: voice.words?.replace(/một trăm hai mươi triệu/i, 'Mười hai triệu') ?? null }),
  },
};

/** As above: what they decide. */
export const CARELESS_STATE_MUTANTS: Record<string, StateMutant> = {
  'asks for a tenth of a large amount on the screen': {
    breaks: ['AGT-2'],
    change: after('push', (step) => {
      const { stage } = step.state;
      if (stage.kind !== 'order') return step;
      const { active } = stage;
      const order = { ...active.order, amount: tenthOf(active.order.amount) };
      return { ...step, state: { ...step.state, stage: { ...stage, active: { ...active, order } } } };
    }),
  },
  'says a tenth of a large payment on the screen': {
    breaks: ['AGT-5'],
    change: (ours) => (before, event, at) => {
      const step = ours(before, event, at);
      const { stage } = step.state;
      const idOf = (it: typeof stage) => (it.kind === 'paid' ? it.payment.transactionId : undefined);
      if (stage.kind !== 'paid' || idOf(before.stage) === idOf(stage)) return step;
      const payment = { ...stage.payment, amount: tenthOf(stage.payment.amount) };
      return { ...step, state: { ...step.state, stage: { ...stage, payment } } };
    },
  },
  'says on the screen what the order asked for, whatever was paid': {
    breaks: ['AGT-5'],
    change: after('payment', (step, event, before) => {
      const { stage } = step.state;
      const isOfActive = event.type === 'payment' && event.payment.pushId === activeId(before);
      if (!isOfActive || before.stage.kind !== 'order' || stage.kind !== 'paid') return step;
      const { amount } = before.stage.active.order;
      return { ...step, state: { ...step.state, stage: { ...stage, payment: { ...stage.payment, amount } } } };
    }),
  },
  'names the holder that a push names': {
    breaks: ['AGT-1'],
    change: after('push', (step, event) => {
      const { stage } = step.state;
      if (event.type !== 'push' || stage.kind !== 'order') return step;
      const { active } = stage;
      const holder = { ...active.order.holder, userBankName: event.push.userBankName };
      const order = { ...active.order, holder };
      return { ...step, state: { ...step.state, stage: { ...stage, active: { ...active, order } } } };
    }),
  },
  'takes a payment of the same amount for that of the order on the screen': {
    breaks: ['AGT-6'],
    change: (ours) => (before, event, at) => {
      const pushId = activeId(before);
      const isAlike =
        event.type === 'payment' &&
        before.stage.kind === 'order' &&
        before.stage.active.order.amount === event.payment.amount;
      if (!isAlike || pushId === undefined) return ours(before, event, at);
      return ours(before, { ...event, payment: { ...event.payment, pushId } }, at);
    },
  },
  'keeps an order that is withdrawn because it was paid': {
    breaks: ['AGT-3'],
    change: (ours) => (before, event, at) => {
      if (event.type !== 'withdraw' || event.why !== 'paid' || event.pushId !== activeId(before))
        return ours(before, event, at);
      const step = ours(before, { type: 'tick' }, at);
      const rejected = { type: 'rejected', pushId: event.pushId, code: 'WITHDRAWN', reason: 'a mutant' } as const;
      return { ...step, sends: [...step.sends, rejected] };
    },
  },
  'keeps an order of more than a minute for ten times as long': {
    breaks: ['AGT-3'],
    needs: ['slow'],
    change: (ours) => (before, event, at) => {
      const isLong = event.type === 'push' && event.push.expiresInMs >= MINUTE_MS;
      if (!isLong) return ours(before, event, at);
      return ours(before, { ...event, push: { ...event.push, expiresInMs: 10 * event.push.expiresInMs } }, at);
    },
  },
  'remembers twenty payments': {
    breaks: ['AGT-5'],
    needs: ['slow'],
    change: (ours) => (before, event, at) => ours({ ...before, announced: before.announced.slice(-20) }, event, at),
  },
};
