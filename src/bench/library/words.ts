/** The words of scenarios as types: what a test can write, and what it gets. `paybox config schema scenario` prints all of it. */

/** Names of faults. */
export type FaultName =
  | 'service-500'
  | 'service-slow'
  | 'token-expired'
  | 'box-offline'
  | 'box-slow'
  | 'push-late'
  | 'push-lost'
  | 'push-twice'
  | 'push-swapped'
  | 'qr-amount'
  | 'qr-content'
  | 'qr-account'
  | 'wrong-amount'
  | 'wrong-content'
  | 'wrong-account'
  | 'paid-before'
  | 'paid-twice'
  | 'paid-late'
  | 'partner-500'
  | 'partner-201'
  | 'partner-shape'
  | 'partner-never'
  | 'sync-twice'
  | 'sync-late'
  | 'sync-swapped'
  | 'link-cut'
  | 'half-open'
  | 'link-slow'
  | 'link-twice'
  | 'broker-killed'
  | 'clock-skew'
  | 'display-gone'
  | 'display-slow'
  | 'serial-noise'
  | 'disk-full'
  | 'box-clock';

/** States of a box, as its /status says them. */
export type BoxState = 'starting' | 'registering' | 'unlinked' | 'idle' | 'showing' | 'paid' | 'expired' | 'fault';

/** Statuses of an order at the gateway. */
export type OrderStatus =
  | 'created'
  | 'pushed'
  | 'shown'
  | 'paid'
  | 'underpaid'
  | 'expired'
  | 'replaced'
  | 'dismissed'
  | 'cancelled'
  | 'failed';

/** Kinds of screens. */
export type ScreenKind =
  | 'starting'
  | 'connecting'
  | 'enrol'
  | 'setup'
  | 'certificate'
  | 'unlinked'
  | 'idle'
  | 'payment'
  | 'paid'
  | 'repeat'
  | 'expired'
  | 'cancelled'
  | 'account'
  | 'too-dense'
  | 'history'
  | 'fault';

/** A text, or a number that stands for one. */
export type Word = string | number;

/** An order: whole đồng, and what the payer's bank writes. */
export interface OrderWords {
  amount: Word;
  /** At most 19 letters, digits and spaces, if it is to be paid. */
  content: Word;
  /** orderId; made up if left out. */
  order?: Word;
  /** With the first token of the rig, however old; a new one if left out. */
  token?: 'first';
}

export interface GenerateWords extends OrderWords {
  /** Expected answer of the service: SUCCESS, or a refusal code. */
  answer?: Word;
}

export interface PushWords extends OrderWords {
  /** Expected answer of the service, or several of which one is right. */
  answer?: Word | Word[];
  /** Push this QR; one is generated if left out. */
  qr?: Word;
  /** Fields of send-qr to send instead. */
  change?: Record<string, unknown>;
}

export interface PayWords {
  amount: Word;
  content: Word;
  debit?: true;
  token?: 'first';
  answer?: Word;
}

export interface CallbackWords {
  /** Transaction id. */
  payment: Word;
  /** `delivered` if left out. */
  status?: 'delivered' | 'pending' | 'failed';
  /** Exact number of attempts so far. */
  attempts?: number;
  /** Parts of the callback's body. */
  fields?: Record<string, unknown>;
}

/** Conditions that are all to become true. */
export interface ExpectWords {
  /** Time limit, as `300ms`, `5s`, `2min`; 5s if left out. */
  within?: string;
  /** How long all conditions must then stay true. */
  for?: string;
  /** State of the box's /status, as idle, showing or paid. */
  state?: BoxState;
  screen?: ScreenKind;
  /** Words on the screen, all of them. */
  text?: string | string[];
  'no text'?: string | string[];
  /** The text that a decoder reads in a picture of the screen; `none`: there is no QR. */
  qr?: Word;
  online?: boolean;
  /** Parts of the box's /status. */
  status?: Record<string, unknown>;
  /** The box is off. */
  unreachable?: true;
  /** A report of the box that the gateway has. */
  report?: { order: Word; status: OrderStatus } | { payment: Word };
  /** The callback as it reached the shop; a word alone is about the newest `pay` of this paybox. */
  callback?: 'delivered' | 'pending' | 'failed' | CallbackWords;
  /** Exact number of payments that the box has announced. */
  announced?: number;
  /** Each payment was reported and announced once by its box, and accepted once by the shop. */
  settled?: true;
  /** How often a fault has happened. */
  fault?: { name: FaultName; happened: number };
}

/** Something that goes wrong, with its options; see src/bench/README.md. */
export interface FaultWords {
  box?: 'off' | 'killed' | 'on';
  gateway?: 'off' | 'killed' | 'on';
  /** Answers of the partner's server, where no `callbackUrl` was given. */
  partner?: { answer: number | 'wrong-shape' | 'never' | 'ok'; times?: number };
  inject?: FaultName;
  /** How often it happens; once if left out, or for its time if it lasts. */
  times?: number;
  /** How long it lasts, or how late something is. */
  for?: string;
  /** How probable it is each time, to 1. */
  chance?: number;
  /** For orders of this content only. */
  content?: Word;
  end?: FaultName | 'all';
}

export type Key = 'dismiss' | 'repeat' | 'history';

/** Which box a step is about. */
export interface AtBox {
  /** From 1 on; the first if left out. */
  box?: number;
}

export interface GeneratedOrder {
  answer: string;
  amount: string;
  content: string;
  orderId: string;
  qrCode: string;
}

export interface Payment {
  answer: string;
  /** Empty for a payment that the service refused. */
  transactionId: string;
  amount: number;
  content: string;
  bankAccount: string;
}

export interface ActiveFault {
  id: string;
  fault: FaultName;
}

/** A box of a paybox. */
export interface BoxAddress {
  /** Number in steps, from 1. */
  number: number;
  terminalCode: string;
  serialNumber: string;
  /** Origin of its pages. */
  url: string;
}

/** State of a box, as its /status says it. */
export interface BoxStatus {
  state: BoxState;
  online: boolean;
  [field: string]: unknown;
}

/** Callbacks as the gateway lists them. */
export interface CallbackView {
  transactionId: string;
  status: string;
  [field: string]: unknown;
}
