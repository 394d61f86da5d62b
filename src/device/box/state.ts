import type { BoxRefusal, Code } from '../../protocol/codes.ts';
import type { DownOf, DurableReport, LinkedAccount, UpBody } from '../../protocol/messages.ts';
import type { Holder } from '../scene.ts';
import type { ClockEntry, Entry, Order, Payment } from './entry.ts';

/** Holds settings that stay constant while the box runs. Durations are milliseconds. */
export interface BoxConfig {
  terminalCode: string;
  serialNumber: string;
  version: string;
  paidHoldMs: number;
  endedHoldMs: number;
  /** The connection to the gateway is not encrypted. */
  plainLink: boolean;
  /** False if this box's own configuration switches off the mark of a sandbox. */
  sandboxMark: boolean;
  /** The boot of the machine, and its age at monotonic time 0. It is undefined where the system does not name boots. */
  boot?: { id: string; offsetMs: number } | undefined;
}

/** The box remembers this many transaction ids and push ids to detect repetitions, and drops the oldest. */
export const REMEMBERED_MAX = 1000;
/** A person can look back on this many payments. */
export const RECENT_MAX = 5;
/** At most this many payments wait for their screen. The box never shows the oldest beyond it. */
export const UNCONFIRMED_MAX = 100;
/** The key for a repetition shows an older payment without announcing it (PROTOCOL.md, clause AGT-17). */
export const REPEAT_AGE_MAX_MS = 300_000;
/**
 * This many reports may wait for an acknowledgement. Beyond it the box drops the oldest `ended`, and `paid` only when
 * no `ended` is left.
 */
export const UNSENT_MAX = 1000;
/** The box sends at most this many reports before an acknowledgement. The others follow in order. */
export const IN_FLIGHT_MAX = 100;
/** The box sends a report again after this time without an acknowledgement (PROTOCOL.md, clause MSG-6). */
export const RESEND_MS = 10_000;

/** An order that has the screen, or returns to it after a payment. Times are monotonic milliseconds. */
export interface ActiveOrder {
  order: Order;
  deadlineMs: number;
  /** The display has confirmed this order's picture. */
  displayed: boolean;
  /** After a restart the deadline comes from this box's calendar clock, until the gateway's time corrects it. */
  restored: boolean;
}

/** A one-time code by which this box receives its secret from a gateway. */
export interface Enrolment {
  code: string;
  /** The content of the code's QR. */
  url: string;
  /** The code expires at this monotonic time, and at `expiresAtMs` by the box's calendar clock. */
  deadlineMs: number;
  expiresAtMs: number;
}

/** QRs that the gateway sends with a link, or because a link is missing. */
export interface LinkPictures {
  /** The merchant scans it to link an account to this box. */
  certificate?: string | undefined;
  /** A QR of the linked account. The payer chooses the amount. */
  staticQr?: string | undefined;
}

/** Says what has the screen. Only `machine.ts` changes it. Times are monotonic milliseconds. */
export type Stage =
  /** Nothing has the screen. The box shows the state of its connection. */
  | { kind: 'idle' }
  /** A display first confirmed this QR at `drawnAtMs` since the order has the screen, or has it back. */
  | { kind: 'order'; active: ActiveOrder; drawnAtMs: number | undefined }
  /** The order `resume` follows this payment. */
  | {
      kind: 'paid';
      payment: Payment;
      holder: LinkedAccount | null;
      sinceMs: number;
      untilMs: number;
      resume: ActiveOrder | undefined;
    }
  | { kind: 'ended'; how: 'expired' | 'cancelled'; order: Order; untilMs: number }
  /** This display cannot show the order's QR scannably, so it shows the text. */
  | { kind: 'too-dense'; order: Order; untilMs: number }
  /** The display has confirmed the change if `drawn`. */
  | { kind: 'account'; holder: LinkedAccount; previous: LinkedAccount; drawn: boolean; untilMs: number }
  | { kind: 'history'; untilMs: number }
  /**
   * A person asked for this payment again. `resume` has the screen afterwards; `silent` says why the box does not
   * announce it.
   */
  | {
      kind: 'repeat';
      payment: Payment;
      silent: WhySilent | undefined;
      untilMs: number;
      resume: ActiveOrder | undefined;
    };

export type StageOf<K extends Stage['kind']> = Stage & { kind: K };

/** Nothing has the screen, as on a box that has just started. */
export const IDLE = { kind: 'idle' } as const satisfies Stage;

/**
 * A repeated payment is shown without sound if it is older than `REPEAT_AGE_MAX_MS`, or the box does not know its age.
 */
export type WhySilent = 'old' | 'undated';

/** Gives calendar time, counted on the monotonic clock. */
export interface Calendar {
  /** Calendar time minus monotonic time. */
  aheadMs: number;
  /** True if nobody sent the time. Then it comes from the box's own calendar clock, which may be wrong. */
  isOwn: boolean;
}

export interface BoxState {
  readonly config: BoxConfig;
  /** Monotonic time of the newest event. */
  readonly nowMs: number;
  readonly connection: 'none' | 'connecting' | 'registered';
  readonly pictures: LinkPictures;
  /** The linked account; null when the gateway said there is none, undefined before it has said anything. */
  readonly account: LinkedAccount | null | undefined;
  /** The linked account that people know; undefined when the box knows of none. */
  readonly announcedAccount: LinkedAccount | undefined;
  /** Set while the box waits for its enrolment. */
  readonly enrolment: Enrolment | undefined;
  readonly stage: Stage;
  /** The gateway's reason for refusing this box. */
  readonly refusal: { code: Code; reason: string } | undefined;
  readonly faults: { readonly display: string | undefined; readonly storage: string | undefined };
  /** The newest first, at most `RECENT_MAX`. */
  readonly recentPayments: readonly Payment[];
  readonly announced: readonly string[];
  readonly closedPushIds: readonly string[];
  /** True if `announced` holds all payments that were announced before the restart. */
  readonly journalIntact: boolean;
  /** The gateway's calendar time at the first welcome since the start. */
  readonly firstWelcomeMs: number | undefined;
  /** True if the payments of the gateway are tests, as the last welcome said. */
  readonly sandbox: boolean;
  /**
   * True if every screen must say that the gateway is a sandbox, as the last welcome asked (PROTOCOL.md, clause
   * AGT-15).
   */
  readonly sandboxMark: boolean;
  /** The reports in the order of their events. */
  readonly unsent: readonly UnsentReport[];
  /** The ids of the reports at the head of `unsent` that the box has sent in this session. */
  readonly inFlight: readonly string[];
  readonly resendAtMs: number | undefined;
  /** Payments whose screen no display has confirmed yet, the oldest first, at most `UNCONFIRMED_MAX`. */
  readonly unconfirmedPayments: readonly Payment[];
  /** An order from before a restart whose end the box cannot date. The gateway's welcome can. */
  readonly undatedOrder: Order | undefined;
  /** Undefined while the box does not know the time. */
  readonly calendar: Calendar | undefined;
  /** The newest journal entry about the time. */
  readonly clock: ClockEntry | undefined;
  /** Recent payments from before a restart whose age the box does not know. */
  readonly undatedPaymentIds: readonly string[];
}

type Bare<T> = T extends unknown ? Omit<T, 'v' | 'sentAtMs' | 'sessionId'> : never;
export type UnsentReport = Bare<DurableReport>;

/** A message to the gateway. Durable reports carry their id; the sender gives ids to the others. */
export type Send = UpBody & { id?: string };

/** The time of an event: monotonic time for deadlines, calendar time for people. */
export interface At {
  monotonicMs: number;
  wallMs: number;
}

/** Says whether the display can show a QR string. The loop computes it, because it needs the size of the QR. */
export type QrCheck = { ok: true } | { ok: false; code: 'QR_TOO_DENSE' | 'DISPLAY_FAULT'; reason: string };

/** Lists everything that can happen to a box. */
export type BoxEvent =
  /** The box has no secret and shows a code. A newer code replaces an older one. The event `connecting` removes the code. */
  | { type: 'enrolling'; code: string; url: string; expiresInMs: number }
  /** The box tries to connect to its gateway, at first or again. */
  | { type: 'connecting' }
  /**
   * `gatewayMs` is the latest time that the gateway's calendar clock may show; with `isOwnTime`, the box's own clock.
   */
  | {
      type: 'registered';
      account: LinkedAccount | null;
      gatewayMs: number;
      isOwnTime?: boolean | undefined;
      openPushIds: readonly string[];
      sandboxMark: boolean;
      sandbox?: boolean | undefined;
      pictures?: LinkPictures | undefined;
    }
  /** The gateway named the account, or the QRs that lead to one, while the box is registered. */
  | { type: 'linked'; account: LinkedAccount | null; pictures: LinkPictures }
  | { type: 'refused'; code: Code; reason: string }
  /** The push's lifetime began at `bornAtMs` or earlier, in this box's monotonic milliseconds. */
  | { type: 'push'; push: DownOf<'show'>; bornAtMs: number; qrCheck: QrCheck }
  /** A newer push arrived before the loop handled this one. */
  | { type: 'overtaken'; pushId: string }
  | { type: 'withdraw'; pushId: string; why: DownOf<'withdraw'>['why'] }
  | { type: 'payment'; payment: DownOf<'payment'> }
  | { type: 'acked'; ids: string[] }
  /** The screen shows the QR of a push, a payment, a change of account, or none of them. */
  | { type: 'drawn'; pushId: string | undefined; transactionId: string | undefined; account?: Holder }
  /** The display drew the scene of this push, but could not show its QR scannably. */
  | { type: 'unreadable'; pushId: string; reason: string }
  | { type: 'draw-failed'; pushId: string | undefined; reason: string }
  | { type: 'key'; key: 'dismiss' | 'history' | 'repeat' }
  | { type: 'tick' }
  /** The disk could not store the writes of a step that `cause` led to. The loop undid that step. */
  | { type: 'unrecorded'; cause: BoxEvent; reason: string }
  | { type: 'recorded' }
  /** A journal that was unreadable at the start is readable now. */
  | { type: 'journal-read'; entries: Entry[]; intact: boolean };

/** The changes of one event. The loop obeys the fields in this order. */
export interface Changes {
  state: BoxState;
  writes: Entry[];
  sends: Send[];
  /** The box announces each of these payments once. */
  announcements: Payment[];
  /** The box announces these as earlier payments, because a person has asked for them. */
  repeats: Payment[];
}

/** The result of one event. */
export interface Step extends Changes {
  /** The box wants a `tick` at this time, in monotonic milliseconds. */
  wakeAtMs: number | undefined;
}

export type Refusal = { code: BoxRefusal; reason: string };

/**
 * Returns the push that the box shows, shows again after a payment, or would show if it could date it; null without
 * one.
 */
export function shownPushId({ stage, undatedOrder }: BoxState): string | null {
  return (activeOrder(stage)?.order ?? undatedOrder)?.pushId ?? null;
}

/** Returns the order that has the screen, or returns to it after a payment or its repetition. */
export function activeOrder(stage: Stage): ActiveOrder | undefined {
  if (stage.kind === 'order') return stage.active;
  return stage.kind === 'paid' || stage.kind === 'repeat' ? stage.resume : undefined;
}

/** Returns whether no display has confirmed the screen of this payment yet. */
export function isUnseen({ unconfirmedPayments }: BoxState, { transactionId }: Payment): boolean {
  return unconfirmedPayments.some((it) => it.transactionId === transactionId);
}

/** Returns whether both name the same bank account. */
export function isSameAccount(a: Holder | null | undefined, b: Holder | null | undefined): boolean {
  return a?.bankAccount === b?.bankAccount && a?.bankCode === b?.bankCode;
}
