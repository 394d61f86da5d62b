import type { Holder } from '../scene.ts';
import type { Order, Payment } from './entry.ts';
import {
  accountOrIdle,
  accountUntilMs,
  listOf,
  nextScreen,
  paidOver,
  QR_BEFORE_REPEAT_MS,
  repeatOf,
  textOf,
  WAITED_FOR_HOLD_MS,
} from './next-screen.ts';
import {
  type ActiveOrder,
  activeOrder,
  type BoxState,
  isSameAccount,
  isUnseen,
  type Stage,
  type StageOf,
  type WhySilent,
} from './state.ts';

/*
 * This file owns every change of what has the screen (`BoxState.stage`). Other files change the stage only by `move`.
 *
 * Theory: a table of event × stage, one pure function a cell. The screen goes to the newest payment or order, then to
 * payments that no display has confirmed, then to an account that people do not know yet, else to nobody. A payment that
 * covers an order keeps it in `resume`. The invariants are in `INVARIANTS`; a test checks it after every event.
 *
 * Tried and failed: a payment that waited covered a QR just reported as shown, although SUCCESS promises a QR to scan.
 * The key that repeats a payment took away a paid screen or a QR. So both now wait until people have read or scanned it.
 */

/** Lists everything that can change what has the screen. */
export type StageEvent =
  /** The box starts. `active` had the screen before, if the calendar clock can date it (clause AGT-8). */
  | { type: 'restart'; active: ActiveOrder | undefined }
  /** A push has passed every check. */
  | { type: 'accept'; active: ActiveOrder }
  /** The gateway's clock has dated an order from before a restart. */
  | { type: 'date'; active: ActiveOrder }
  /** The display shows the QR of this push. It draws the QR again later if a payment has covered it since. */
  | { type: 'drawn'; pushId: string }
  /** The display drew the scene of this push, but its QR is not scannable. */
  | { type: 'unreadable'; pushId: string }
  | { type: 'draw-failed'; pushId: string }
  /** The active order is over. With `as` the screen says how it ended. */
  | { type: 'order-over'; as: 'expired' | 'cancelled' | undefined }
  /** The box refused a push because its QR is too dense for this display. The text replaces the QR until `untilMs`. */
  | { type: 'too-dense'; order: Order; untilMs: number }
  | { type: 'withdraw'; pushId: string }
  /** The payment pays the push `pushId`. */
  | { type: 'payment'; payment: Payment; pushId: string | null }
  /** The payment is old news (clause AGT-14). Only the order that it pays loses the screen, to the list of payments. */
  | { type: 'late'; pushId: string | null }
  /** A temporary screen has had its time, or a person dismissed it. */
  | { type: 'finish' }
  /** The gateway has named the linked account. */
  | { type: 'welcome' }
  /** The display shows the change to this account. */
  | { type: 'account-drawn'; account: Holder }
  /** The display has drawn everything, or a late journal was read. Now waiting payments may use a free screen. */
  | { type: 'settle' }
  /** A person asks for the last payments. */
  | { type: 'history' }
  /** A person asks for the last payment again. */
  | { type: 'repeat'; payment: Payment; silent: WhySilent | undefined };

type EventOf<T extends StageEvent['type']> = StageEvent & { type: T };
type Cell<S extends Stage, E extends StageEvent> = (stage: S, event: E, state: BoxState) => Stage;

export const STAGES = ['idle', 'order', 'paid', 'ended', 'too-dense', 'account', 'history', 'repeat'] as const;

type Row<T extends StageEvent['type'], Stages extends readonly Stage['kind'][] = typeof STAGES> = {
  readonly [I in keyof Stages]: Cell<StageOf<Stages[I]>, EventOf<T>>;
};

/** Keeps the stage: the event is legal, but does not concern this stage or must wait. */
const stay = (stage: Stage) => stage;
/** Marks an event that cannot happen in this stage. It changes nothing. */
export const illegal = (stage: Stage) => stage;

// biome-ignore format: a table is read by its columns
export const TABLE: { readonly [T in StageEvent['type']]: Row<T> } = {
  //                idle         order           paid           ended        too-dense    account         history      repeat
  'restart':       [restart,     illegal,        illegal,       illegal,     illegal,     illegal,        illegal,     illegal],
  'accept':        [toOrder,     toOrder,        toOrder,       toOrder,     toOrder,     toOrder,        toOrder,     toOrder],
  'date':          [toOrder,     toOrder,        setResume,     toOrder,     toOrder,     toOrder,        toOrder,     resumeRepeat],
  'drawn':         [stay,        confirmOrder,   stay,          stay,        stay,        stay,           stay,        stay],
  'unreadable':    [stay,        orderToText,    stay,          stay,        stay,        stay,           stay,        stay],
  'draw-failed':   [stay,        dropOrder,      stay,          stay,        stay,        stay,           stay,        stay],
  'order-over':    [illegal,     endOrder,       dropResume,    illegal,     illegal,     illegal,        illegal,     dropResume],
  'too-dense':     [toText,      stay,           stay,          toText,      toText,      toText,         toText,      textIfFree],
  'withdraw':      [stay,        stay,           stay,          stay,        dropText,    stay,           stay,        stay],
  'payment':       [toPaid,      coverOrder,     queuePaid,     toPaid,      toPaid,      toPaid,         toPaid,      paidInstead],
  'late':          [stay,        listOverOrder,  dropPaid,      stay,        listOverText, stay,          stay,        dropPaid],
  'finish':        [illegal,     illegal,        afterPaid,     next,        next,        next,           next,        afterRepeat],
  'welcome':       [toAccount,   stay,           stay,          stay,        stay,        updateAccount,  stay,        stay],
  'account-drawn': [stay,        stay,           stay,          stay,        stay,        confirmAccount, stay,        stay],
  'settle':        [next,        stay,           stay,          stay,        stay,        stay,           stay,        stay],
  'history':       [toHistory,   stay,           stay,          stay,        stay,        stay,           stay,        listIfFree],
  'repeat':        [toRepeat,    repeatOverOrder, repeatOverPaid, toRepeat,  stay,        stay,           toRepeat,    repeatAgain],
};

/** These conditions hold after every event. */
export const INVARIANTS: Record<string, (state: BoxState) => boolean> = {
  'an active order is not over': ({ stage, nowMs, closedPushIds }) => {
    const active = activeOrder(stage);
    return active === undefined || (active.deadlineMs > nowMs && !closedPushIds.includes(active.order.pushId));
  },
  'an active order pays into the linked account': ({ stage, account }) => {
    const active = activeOrder(stage);
    return active === undefined || account === undefined || isSameAccount(active.order.holder, account);
  },
  'no order waits for its date beside an active one': ({ stage, undatedOrder }) =>
    undatedOrder === undefined || activeOrder(stage) === undefined,
  'a screen that stays for a while has time left': ({ stage, nowMs }) =>
    !('untilMs' in stage) || (stage.untilMs >= nowMs && stage.untilMs < Number.POSITIVE_INFINITY),
  'a payment on the screen is known': ({ stage, announced }) =>
    (stage.kind !== 'paid' && stage.kind !== 'repeat') || announced.includes(stage.payment.transactionId),
  'a payment that is shown again was seen before': (state) =>
    state.stage.kind !== 'repeat' || !isUnseen(state, state.stage.payment),
  'a repetition covers a QR for a short time': ({ stage, nowMs }) =>
    stage.kind !== 'repeat' || stage.resume === undefined || stage.untilMs <= nowMs + WAITED_FOR_HOLD_MS,
  'a change of account is from the one that people know to the linked one': ({ stage, account, announcedAccount }) =>
    stage.kind !== 'account' ||
    (isSameAccount(stage.holder, account) &&
      isSameAccount(stage.previous, announcedAccount) &&
      !isSameAccount(account, announcedAccount)),
};

/** Returns the state after the event. Only its `stage` may differ, and an unchanged state is the same object. */
export function move(state: BoxState, event: StageEvent): BoxState {
  const cell = TABLE[event.type][STAGES.indexOf(state.stage.kind)] as Cell<Stage, StageEvent>;
  const stage = cell(state.stage, event, state);
  return stage === state.stage ? state : { ...state, stage };
}

/**
 * Payments that nobody has seen come before the order, for their whole time, because the display has not started yet.
 */
function restart(
  stage: Stage,
  { active }: EventOf<'restart'>,
  { unconfirmedPayments, config, nowMs }: BoxState,
): Stage {
  const [payment] = unconfirmedPayments;
  if (payment === undefined) return active === undefined ? stage : toOrder(stage, { active });
  const holder = active?.order.holder ?? null;
  return { kind: 'paid', payment, holder, sinceMs: nowMs, untilMs: nowMs + config.paidHoldMs, resume: active };
}

function toOrder(_stage: Stage, { active }: { active: ActiveOrder }): Stage {
  return { kind: 'order', active, drawnAtMs: undefined };
}

function setResume(stage: StageOf<'paid'>, { active }: EventOf<'date'>): Stage {
  return { ...stage, resume: active };
}

function resumeRepeat(stage: StageOf<'repeat'>, { active }: EventOf<'date'>, { nowMs }: BoxState): Stage {
  return { ...stage, untilMs: Math.min(stage.untilMs, nowMs + WAITED_FOR_HOLD_MS), resume: active };
}

/** Confirms the order. Nothing that waits may cover it now, because its partner learns that customers can scan the QR (clause AGT-12). */
function confirmOrder(stage: StageOf<'order'>, { pushId }: EventOf<'drawn'>, { nowMs }: BoxState): Stage {
  const { active, drawnAtMs } = stage;
  if (active.order.pushId !== pushId || drawnAtMs !== undefined) return stage;
  return { ...stage, active: { ...active, displayed: true }, drawnAtMs: nowMs };
}

/** Replaces the QR by text. A QR that was scannable before its display became smaller stays, because its partner knows that it is there. */
function orderToText(stage: StageOf<'order'>, { pushId }: EventOf<'unreadable'>): Stage {
  const { order, deadlineMs, displayed } = stage.active;
  return order.pushId !== pushId || displayed ? stage : textOf(order, deadlineMs);
}

function dropOrder(stage: StageOf<'order'>, { pushId }: EventOf<'draw-failed'>, state: BoxState): Stage {
  const { order, displayed } = stage.active;
  return order.pushId !== pushId || displayed ? stage : nextScreen(state);
}

function endOrder({ active }: StageOf<'order'>, { as }: EventOf<'order-over'>, state: BoxState): Stage {
  if (as === undefined) return nextScreen(state);
  return { kind: 'ended', how: as, order: active.order, untilMs: state.nowMs + state.config.endedHoldMs };
}

function dropResume(stage: StageOf<'paid' | 'repeat'>): Stage {
  return { ...stage, resume: undefined };
}

function toText(_stage: Stage, { order, untilMs }: EventOf<'too-dense'>): Stage {
  return textOf(order, untilMs);
}

function dropText(stage: StageOf<'too-dense'>, { pushId }: EventOf<'withdraw'>, state: BoxState): Stage {
  return stage.order.pushId === pushId ? nextScreen(state) : stage;
}

function toPaid(_stage: Stage, event: EventOf<'payment'>, state: BoxState): Stage {
  return paidOver(state, event, undefined);
}

function coverOrder({ active }: StageOf<'order'>, event: EventOf<'payment'>, state: BoxState): Stage {
  return paidOver(state, event, active);
}

/** Queues a payment. The one on the screen stays until people can have read it, so this one waits for its turn (clause AGT-12). */
function queuePaid(stage: StageOf<'paid'>, event: EventOf<'payment'>, state: BoxState): Stage {
  const readMs = stage.sinceMs + WAITED_FOR_HOLD_MS;
  const later = paidOver(state, event, stage.resume);
  if (readMs <= state.nowMs) return later;
  return { ...stage, untilMs: Math.min(stage.untilMs, readMs), resume: later.resume };
}

function listOverOrder(stage: StageOf<'order'>, { pushId }: EventOf<'late'>, state: BoxState): Stage {
  return stage.active.order.pushId === pushId ? listOf(state) : stage;
}

function listOverText(stage: StageOf<'too-dense'>, { pushId }: EventOf<'late'>, state: BoxState): Stage {
  return stage.order.pushId === pushId ? listOf(state) : stage;
}

function dropPaid(stage: StageOf<'paid' | 'repeat'>, { pushId }: EventOf<'late'>): Stage {
  return stage.resume?.order.pushId === pushId ? dropResume(stage) : stage;
}

function afterPaid({ payment, resume }: StageOf<'paid'>, _event: StageEvent, state: BoxState): Stage {
  return nextScreen(state, payment, resume);
}

function next(_stage: Stage, _event: StageEvent, state: BoxState): Stage {
  return nextScreen(state);
}

function toAccount(_stage: Stage, _event: StageEvent, state: BoxState): Stage {
  return accountOrIdle(state);
}

function updateAccount(stage: StageOf<'account'>, _event: StageEvent, state: BoxState): Stage {
  return isSameAccount(stage.holder, state.account) ? stage : accountOrIdle(state);
}

/** Confirms the account. Its time starts when the display shows it, however slow the display is. */
function confirmAccount(stage: StageOf<'account'>, { account }: EventOf<'account-drawn'>, state: BoxState): Stage {
  if (stage.drawn || !isSameAccount(stage.holder, account)) return stage;
  return { ...stage, drawn: true, untilMs: accountUntilMs(state) };
}

function toHistory(stage: Stage, _event: StageEvent, state: BoxState): Stage {
  return state.recentPayments.length === 0 ? stage : listOf(state);
}

function textIfFree(stage: StageOf<'repeat'>, event: EventOf<'too-dense'>): Stage {
  return stage.resume === undefined ? toText(stage, event) : stage;
}

function listIfFree(stage: StageOf<'repeat'>, _event: StageEvent, state: BoxState): Stage {
  return stage.resume === undefined ? listOf(state) : stage;
}

/** Shows a new payment at once, because people have seen the repeated one. */
function paidInstead({ resume }: StageOf<'repeat'>, event: EventOf<'payment'>, state: BoxState): Stage {
  return paidOver(state, event, resume);
}

function afterRepeat({ resume }: StageOf<'repeat'>, _event: StageEvent, state: BoxState): Stage {
  return nextScreen(state, undefined, resume);
}

function toRepeat(_stage: Stage, event: EventOf<'repeat'>, state: BoxState): Stage {
  return repeatOf(state, event, undefined);
}

/** Shows a repetition, but never over a QR before its partner knows about it and people had time to scan it. */
function repeatOverOrder(stage: StageOf<'order'>, event: EventOf<'repeat'>, state: BoxState): Stage {
  const { active, drawnAtMs } = stage;
  const isSeen = drawnAtMs !== undefined && state.nowMs >= drawnAtMs + QR_BEFORE_REPEAT_MS;
  return isSeen ? repeatOf(state, event, active) : stage;
}

/** Shows a repetition. The payment stays until a display has confirmed it and people can have read it as a new one. */
function repeatOverPaid(stage: StageOf<'paid'>, event: EventOf<'repeat'>, state: BoxState): Stage {
  const isUnread = isUnseen(state, stage.payment) || state.nowMs < stage.sinceMs + WAITED_FOR_HOLD_MS;
  return isUnread ? stage : repeatOf(state, event, stage.resume);
}

/** Shows the next repetition. Repeated presses of the key must not hide the QR for longer. */
function repeatAgain(stage: StageOf<'repeat'>, event: EventOf<'repeat'>, state: BoxState): Stage {
  const again = repeatOf(state, event, stage.resume);
  return stage.resume === undefined ? again : { ...again, untilMs: stage.untilMs };
}
