import type { BoxRefusal, Code } from '../protocol/codes.ts';
import type { DownOf, DurableReport, Link, UpBody } from '../protocol/messages.ts';
import type { Entry, Order, Payment } from './entry.ts';

/** What does not change while the box runs. Durations are milliseconds. */
export interface BoxConfig {
  terminalCode: string;
  serialNumber: string;
  version: string;
  paidHoldMs: number;
  endedHoldMs: number;
}

/** The newest transaction ids and pushes that are remembered against repetitions; older ones are forgotten. */
export const REMEMBERED_MAX = 1000;
/** Payments that a person can look back on. */
export const RECENT_MAX = 5;
/** Reports owed to the gateway. When more are owed, the oldest `ended` goes first; `paid` only when nothing else is left. */
export const UNSENT_MAX = 1000;

/** An order that has the screen, or will have it back after a notice. Times are monotonic milliseconds. */
export interface ActiveOrder {
  order: Order;
  deadlineMs: number;
  /** Whether the display has confirmed this order's picture. */
  displayed: boolean;
}

/** What is told for a while before the screen goes back to what it was. */
export type Notice =
  | { kind: 'paid'; payment: Payment; holder: Link | null }
  | { kind: 'expired' | 'cancelled'; order: Order }
  | { kind: 'too-dense'; pushId: string; amount: number; content: string; holder: Link }
  | { kind: 'history' };

/** What the screen is busy with. `quiet` covers idle, unlinked and connecting, which follow from the connection. */
export type Stage =
  | { kind: 'quiet' }
  | { kind: 'order'; active: ActiveOrder }
  | { kind: 'notice'; notice: Notice; untilMs: number; resume: ActiveOrder | undefined };

export interface BoxState {
  readonly config: BoxConfig;
  /** Monotonic time of the newest event. */
  readonly nowMs: number;
  readonly connection: 'none' | 'connecting' | 'registered';
  /** The linked account; null when the gateway said there is none, undefined before it has said anything. */
  readonly link: Link | null | undefined;
  readonly stage: Stage;
  /** Why the gateway does not take this box. */
  readonly refusal: { code: Code; reason: string } | undefined;
  readonly faults: { readonly display: string | undefined; readonly storage: string | undefined };
  /** The newest first, at most `RECENT_MAX`. */
  readonly recentPayments: readonly Payment[];
  readonly announced: readonly string[];
  readonly closedPushIds: readonly string[];
  readonly unsent: readonly UnsentReport[];
}

type Bare<T> = T extends unknown ? Omit<T, 'v' | 'sentAtMs'> : never;
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
  /** The box is looking for its gateway, at first or again. */
  | { type: 'connecting' }
  | { type: 'registered'; link: Link | null }
  | { type: 'refused'; code: Code; reason: string }
  | { type: 'push'; push: DownOf<'show'>; verdict: Verdict }
  | { type: 'withdraw'; pushId: string; why: 'timeout' | 'cancelled' }
  | { type: 'payment'; payment: DownOf<'payment'> }
  | { type: 'acked'; ids: string[] }
  | { type: 'drawn'; pushId: string | undefined }
  /** The display took the scene of this push but could not show its QR scannably after all. */
  | { type: 'unreadable'; pushId: string; reason: string }
  | { type: 'draw-failed'; pushId: string | undefined; reason: string }
  | { type: 'key'; key: 'dismiss' | 'history' }
  | { type: 'tick' }
  /** The writes of a step that `cause` led to could not be kept: the loop took that step back. */
  | { type: 'unrecorded'; cause: BoxEvent; reason: string }
  | { type: 'recorded' };

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

/** The order that has the screen or gets it back after the notice. */
export function activeOrder(stage: Stage): ActiveOrder | undefined {
  if (stage.kind === 'order') return stage.active;
  return stage.kind === 'notice' ? stage.resume : undefined;
}
