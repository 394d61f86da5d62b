import type { BoxRefusal, Code } from '../protocol/codes.ts';
import type { DownOf, DurableReport, Link, UpBody } from '../protocol/messages.ts';
import type { Holder } from '../scene.ts';
import type { Entry, Order, Payment } from './entry.ts';

/** What does not change while the box runs. Durations are milliseconds. */
export interface BoxConfig {
  terminalCode: string;
  serialNumber: string;
  version: string;
  paidHoldMs: number;
  endedHoldMs: number;
  /** Whether anyone on the way to the gateway can read and change what is said. */
  plainLink: boolean;
}

/** The newest transaction ids and pushes that are remembered against repetitions; older ones are forgotten. */
export const REMEMBERED_MAX = 1000;
/** Payments that a person can look back on. */
export const RECENT_MAX = 5;
/** Payments that still want their screen; the oldest of more are not shown any more. */
export const UNTOLD_MAX = 100;
/** Reports owed to the gateway. When more are owed, the oldest `ended` goes first; `paid` only when nothing else is left. */
export const UNSENT_MAX = 1000;
/** Reports under way to the gateway at the same time; the others follow as these are acknowledged, in their order. */
export const IN_FLIGHT_MAX = 100;
/** What is under way and not acknowledged is sent again after this (PROTOCOL.md, clause MSG-6). */
export const RESEND_MS = 10_000;

/** An order that has the screen, or will have it back after a notice. Times are monotonic milliseconds. */
export interface ActiveOrder {
  order: Order;
  deadlineMs: number;
  /** Whether the display has confirmed this order's picture. */
  displayed: boolean;
  /** Whether the deadline is known by calendar time only, as after a restart, until the gateway has told its own. */
  restored: boolean;
}

/** A one-time code by which this box gets its secret from a gateway. */
export interface Enrolment {
  code: string;
  /** What its QR says. */
  url: string;
  /** When the code is spent, in monotonic milliseconds, and by the box's calendar clock. */
  deadlineMs: number;
  expiresAtMs: number;
}

/** What has the screen, moved by `machine.ts` only. Times are monotonic milliseconds. */
export type Stage =
  /** Nothing: what is shown follows from the connection. */
  | { kind: 'idle' }
  | { kind: 'order'; active: ActiveOrder }
  /** `resume`: the order that has the screen after this payment. */
  | {
      kind: 'paid';
      payment: Payment;
      holder: Link | null;
      sinceMs: number;
      untilMs: number;
      resume: ActiveOrder | undefined;
    }
  | { kind: 'ended'; how: 'expired' | 'cancelled'; order: Order; untilMs: number }
  /** The text of an order whose QR this display cannot show scannably. */
  | { kind: 'too-dense'; order: Order; untilMs: number }
  /** `drawn`: whether the display has confirmed it. */
  | { kind: 'account'; holder: Link; previous: Link; drawn: boolean; untilMs: number }
  | { kind: 'history'; untilMs: number };

export interface BoxState {
  readonly config: BoxConfig;
  /** Monotonic time of the newest event. */
  readonly nowMs: number;
  readonly connection: 'none' | 'connecting' | 'registered';
  /** The linked account; null when the gateway said there is none, undefined before it has said anything. */
  readonly link: Link | null | undefined;
  /** The linked account that people were told of last; undefined when the box knows of none. */
  readonly toldLink: Link | undefined;
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
  /** Whether `announced` holds all that earlier lives of the box have announced. */
  readonly whole: boolean;
  /** What the gateway's calendar clock said at the first welcome of this life. */
  readonly firstWelcomeMs: number | undefined;
  /** In the order in which they happened. */
  readonly unsent: readonly UnsentReport[];
  /** The ids of the reports at the head of `unsent` that were sent in this session. */
  readonly inFlight: readonly string[];
  readonly resendAtMs: number | undefined;
  /** Payments whose screen no display has confirmed yet, the oldest first, at most `UNTOLD_MAX`. */
  readonly untold: readonly Payment[];
  /** An order from before a restart that this box's calendar clock cannot date; the gateway's welcome can. */
  readonly held: Order | undefined;
}

type Bare<T> = T extends unknown ? Omit<T, 'v' | 'sentAtMs' | 'sessionId'> : never;
export type UnsentReport = Bare<DurableReport>;

/** A message to the gateway. Reports that are owed carry their id; the sender gives the others one. */
export type Send = UpBody & { id?: string };

/** When an event happened: monotonic time for deadlines, calendar time for people. */
export interface At {
  monotonicMs: number;
  wallMs: number;
}

/** What the configured display can do with a QR string, computed outside because it needs the QR's size. */
export type Verdict = { ok: true } | { ok: false; code: 'QR_TOO_DENSE' | 'DISPLAY_FAULT'; reason: string };

/** Everything that can happen to a box. */
export type BoxEvent =
  /** The box has no secret and shows a code; a newer one takes the place of an older one. It ends with `connecting`. */
  | { type: 'enrolling'; code: string; url: string; expiresInMs: number }
  /** The box is looking for its gateway, at first or again. */
  | { type: 'connecting' }
  /** `gatewayMs`: what the gateway's calendar clock says at most. */
  | { type: 'registered'; link: Link | null; gatewayMs: number; openPushIds: readonly string[] }
  | { type: 'refused'; code: Code; reason: string }
  /** `bornAtMs`: when the push's lifetime began or earlier, in this box's monotonic milliseconds. */
  | { type: 'push'; push: DownOf<'show'>; bornAtMs: number; verdict: Verdict }
  /** A newer push came while this one still waited to be looked at. */
  | { type: 'overtaken'; pushId: string }
  | { type: 'withdraw'; pushId: string; why: DownOf<'withdraw'>['why'] }
  | { type: 'payment'; payment: DownOf<'payment'> }
  | { type: 'acked'; ids: string[] }
  /** What is on the screen: the QR of a push, the screen of a payment or of another account, or none of them. */
  | { type: 'drawn'; pushId: string | undefined; transactionId: string | undefined; account?: Holder }
  /** The display took the scene of this push but could not show its QR scannably after all. */
  | { type: 'unreadable'; pushId: string; reason: string }
  | { type: 'draw-failed'; pushId: string | undefined; reason: string }
  | { type: 'key'; key: 'dismiss' | 'history' }
  | { type: 'tick' }
  /** The writes of a step that `cause` led to could not be kept: the loop took that step back. */
  | { type: 'unrecorded'; cause: BoxEvent; reason: string }
  | { type: 'recorded' }
  /** A journal that could not be read at the start can be: this is what it holds. */
  | { type: 'remembered'; entries: Entry[]; whole: boolean };

/** What one event changes. The loop obeys the fields in this order. */
export interface Step {
  state: BoxState;
  writes: Entry[];
  sends: Send[];
  /** Payments to be announced aloud, each once. */
  announcements: Payment[];
  /** When the box wants a `tick`, in monotonic milliseconds. */
  wakeAtMs: number | undefined;
}

export type Refusal = { code: BoxRefusal; reason: string };

/** The push that the box shows, shows again after a notice, or would show if it could date it; null without one. */
export function shownPushId({ stage, held }: BoxState): string | null {
  return (activeOrder(stage)?.order ?? held)?.pushId ?? null;
}

/** The order that has the screen or gets it back after the notice. */
export function activeOrder(stage: Stage): ActiveOrder | undefined {
  if (stage.kind === 'order') return stage.active;
  return stage.kind === 'paid' ? stage.resume : undefined;
}

/** Whether money for the one goes where money for the other goes. */
export function isSameAccount(a: Holder | null | undefined, b: Holder | null | undefined): boolean {
  return a?.bankAccount === b?.bankAccount && a?.bankCode === b?.bankCode;
}
