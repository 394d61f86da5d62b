import type { BoxRefusal, Code } from '../protocol/codes.ts';
import type { DownOf, DurableReport, LinkedAccount, UpBody } from '../protocol/messages.ts';
import type { Holder } from '../scene.ts';
import type { ClockEntry, Entry, Order, Payment } from './entry.ts';

/** Constant while the box runs. Durations are milliseconds. */
export interface BoxConfig {
  terminalCode: string;
  serialNumber: string;
  version: string;
  paidHoldMs: number;
  endedHoldMs: number;
  /** Whether the connection to the gateway is not encrypted. */
  plainLink: boolean;
  /** False where the mark of a sandbox is off by this box's own configuration. */
  sandboxMark: boolean;
  /** The boot of the machine, and how long it had lasted at monotonic time 0; undefined where boots have no names. */
  boot?: { id: string; offsetMs: number } | undefined;
}

/** Transaction ids and push ids kept to detect repetitions; the oldest of more are dropped. */
export const REMEMBERED_MAX = 1000;
/** Payments that a person can look back on. */
export const RECENT_MAX = 5;
/** Payments that wait for their screen; the oldest of more are not shown. */
export const UNCONFIRMED_MAX = 100;
/** A payment that is older than this is not said again by the key for it: it is shown (PROTOCOL.md, clause AGT-17). */
export const REPEAT_AGE_MAX_MS = 300_000;
/** Reports that wait for an acknowledgement. Of more, the oldest `ended` is dropped first, `paid` only when no `ended` is left. */
export const UNSENT_MAX = 1000;
/** Reports under way to the gateway at the same time; the others follow as these are acknowledged, in their order. */
export const IN_FLIGHT_MAX = 100;
/** A report without an acknowledgement is sent again after this (PROTOCOL.md, clause MSG-6). */
export const RESEND_MS = 10_000;

/** An order that has the screen, or has it back after a payment. Times are monotonic milliseconds. */
export interface ActiveOrder {
  order: Order;
  deadlineMs: number;
  /** Whether the display has confirmed this order's picture. */
  displayed: boolean;
  /** Whether the deadline comes from this box's calendar clock, after a restart, until the gateway's time corrects it. */
  restored: boolean;
}

/** A one-time code by which this box gets its secret from a gateway. */
export interface Enrolment {
  code: string;
  /** The content of its QR. */
  url: string;
  /** The code expires at this monotonic time, and at `expiresAtMs` by the box's calendar clock. */
  deadlineMs: number;
  expiresAtMs: number;
}

/** The QRs that come with a link, or with the want of one. */
export interface LinkPictures {
  /** By scanning it the merchant links an account to this box. */
  certificate?: string | undefined;
  /** A QR of the linked account that leaves the amount to the payer. */
  staticQr?: string | undefined;
}

/** Who has the screen, moved by `machine.ts` only. Times are monotonic milliseconds. */
export type Stage =
  /** Nothing: what is shown follows from the connection. */
  | { kind: 'idle' }
  /** `drawnAtMs`: when a display first confirmed its QR since it has the screen, or has it back. */
  | { kind: 'order'; active: ActiveOrder; drawnAtMs: number | undefined }
  /** `resume`: the order that has the screen after this payment. */
  | {
      kind: 'paid';
      payment: Payment;
      holder: LinkedAccount | null;
      sinceMs: number;
      untilMs: number;
      resume: ActiveOrder | undefined;
    }
  | { kind: 'ended'; how: 'expired' | 'cancelled'; order: Order; untilMs: number }
  /** The text of an order whose QR this display cannot show scannably. */
  | { kind: 'too-dense'; order: Order; untilMs: number }
  /** `drawn`: whether the display has confirmed it. */
  | { kind: 'account'; holder: LinkedAccount; previous: LinkedAccount; drawn: boolean; untilMs: number }
  | { kind: 'history'; untilMs: number }
  /** A person asked for this payment again. `resume` has the screen afterwards; `silent` says why the box does not say it. */
  | {
      kind: 'repeat';
      payment: Payment;
      silent: WhySilent | undefined;
      untilMs: number;
      resume: ActiveOrder | undefined;
    };

export type StageOf<K extends Stage['kind']> = Stage & { kind: K };

/** Nothing has the screen, as on a box that has just been switched on. */
export const IDLE = { kind: 'idle' } as const satisfies Stage;

/** A payment is shown again and not said where it is older than `REPEAT_AGE_MAX_MS`, or the box does not know its age. */
export type WhySilent = 'old' | 'undated';

/** The calendar, counted on the monotonic clock. */
export interface Calendar {
  /** Calendar time minus monotonic time. */
  aheadMs: number;
  /** Whether nobody told the time: it is the box's own calendar clock, which may be wrong. */
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
  /** While the box waits to be enrolled. */
  readonly enrolment: Enrolment | undefined;
  readonly stage: Stage;
  /** Why the gateway does not take this box. */
  readonly refusal: { code: Code; reason: string } | undefined;
  readonly faults: { readonly display: string | undefined; readonly storage: string | undefined };
  /** The newest first, at most `RECENT_MAX`. */
  readonly recentPayments: readonly Payment[];
  readonly announced: readonly string[];
  readonly closedPushIds: readonly string[];
  /** Whether `announced` holds all payments that were announced before the restart. */
  readonly journalIntact: boolean;
  /** The gateway's calendar time at the first welcome since the start. */
  readonly firstWelcomeMs: number | undefined;
  /** Whether the payments of the gateway are tests, as the last welcome said. */
  readonly sandbox: boolean;
  /** Whether every screen says that the gateway is a sandbox, as the last welcome asked (PROTOCOL.md, clause AGT-15). */
  readonly sandboxMark: boolean;
  /** In the order in which they happened. */
  readonly unsent: readonly UnsentReport[];
  /** The ids of the reports at the head of `unsent` that were sent in this session. */
  readonly inFlight: readonly string[];
  readonly resendAtMs: number | undefined;
  /** Payments whose screen no display has confirmed yet, the oldest first, at most `UNCONFIRMED_MAX`. */
  readonly unconfirmedPayments: readonly Payment[];
  /** An order from before a restart whose end the box cannot date; the gateway's welcome can. */
  readonly undatedOrder: Order | undefined;
  /** Undefined while the box does not know the time. */
  readonly calendar: Calendar | undefined;
  /** The newest entry of the journal about the time. */
  readonly clock: ClockEntry | undefined;
  /** Recent payments of before a restart whose age the box does not know. */
  readonly undatedPaymentIds: readonly string[];
}

type Bare<T> = T extends unknown ? Omit<T, 'v' | 'sentAtMs' | 'sessionId'> : never;
export type UnsentReport = Bare<DurableReport>;

/** A message to the gateway. Durable reports carry their id; the sender gives the others one. */
export type Send = UpBody & { id?: string };

/** When an event happened: monotonic time for deadlines, calendar time for people. */
export interface At {
  monotonicMs: number;
  wallMs: number;
}

/** Whether the display can show a QR string. Computed outside, because it needs the size of the QR. */
export type QrCheck = { ok: true } | { ok: false; code: 'QR_TOO_DENSE' | 'DISPLAY_FAULT'; reason: string };

/** Everything that can happen to a box. */
export type BoxEvent =
  /** The box has no secret and shows a code; a newer one takes the place of an older one. It ends with `connecting`. */
  | { type: 'enrolling'; code: string; url: string; expiresInMs: number }
  /** The box tries to connect to its gateway, at first or again. */
  | { type: 'connecting' }
  /** `gatewayMs`: the latest time that the gateway's calendar clock may show; the box's own clock where `isOwnTime`. */
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
  /** The account, or what leads to one, was named while the box is registered. */
  | { type: 'linked'; account: LinkedAccount | null; pictures: LinkPictures }
  | { type: 'refused'; code: Code; reason: string }
  /** `bornAtMs`: when the push's lifetime began or earlier, in this box's monotonic milliseconds. */
  | { type: 'push'; push: DownOf<'show'>; bornAtMs: number; qrCheck: QrCheck }
  /** A newer push came before this one was handled. */
  | { type: 'overtaken'; pushId: string }
  | { type: 'withdraw'; pushId: string; why: DownOf<'withdraw'>['why'] }
  | { type: 'payment'; payment: DownOf<'payment'> }
  | { type: 'acked'; ids: string[] }
  /** The screen shows the QR of a push, a payment, a change of account, or none of them. */
  | { type: 'drawn'; pushId: string | undefined; transactionId: string | undefined; account?: Holder }
  /** The display took the scene of this push, but could not show its QR scannably. */
  | { type: 'unreadable'; pushId: string; reason: string }
  | { type: 'draw-failed'; pushId: string | undefined; reason: string }
  | { type: 'key'; key: 'dismiss' | 'history' | 'repeat' }
  | { type: 'tick' }
  /** The writes of a step that `cause` led to could not be kept: the loop took that step back. */
  | { type: 'unrecorded'; cause: BoxEvent; reason: string }
  | { type: 'recorded' }
  /** A journal that could not be read at the start can be read now. */
  | { type: 'journal-read'; entries: Entry[]; intact: boolean };

/** The result of one event. The loop obeys the fields in this order. */
export interface Step {
  state: BoxState;
  writes: Entry[];
  sends: Send[];
  /** Payments to be announced aloud, each once. */
  announcements: Payment[];
  /** The box says these aloud as payments of before, because a person has asked for them. */
  repeats: Payment[];
  /** When the box wants a `tick`, in monotonic milliseconds. */
  wakeAtMs: number | undefined;
}

export type Refusal = { code: BoxRefusal; reason: string };

/** The push that the box shows, shows again after a payment, or would show if it could date it; null without one. */
export function shownPushId({ stage, undatedOrder }: BoxState): string | null {
  return (activeOrder(stage)?.order ?? undatedOrder)?.pushId ?? null;
}

/** Returns the order that has the screen, or has it back after a payment or its repetition. */
export function activeOrder(stage: Stage): ActiveOrder | undefined {
  if (stage.kind === 'order') return stage.active;
  return stage.kind === 'paid' || stage.kind === 'repeat' ? stage.resume : undefined;
}

/** Tells whether no display has confirmed the screen of this payment yet. */
export function isUnseen({ unconfirmedPayments }: BoxState, { transactionId }: Payment): boolean {
  return unconfirmedPayments.some((it) => it.transactionId === transactionId);
}

/** Whether money for the one goes where money for the other goes. */
export function isSameAccount(a: Holder | null | undefined, b: Holder | null | undefined): boolean {
  return a?.bankAccount === b?.bankAccount && a?.bankCode === b?.bankCode;
}
