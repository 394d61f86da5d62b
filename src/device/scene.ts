/**
 * The contents of a screen: the vocabulary shared by the box, which derives a scene from its state,
 * and the displays, which lay it out. Amounts are whole Vietnamese đồng.
 */

/** Names the account that receives the money of a box, as a person reads it. */
export interface Holder {
  userBankName: string;
  bankAccount: string;
  bankCode: string;
}

interface Marked {
  /** The payments of a sandbox gateway are no money, so the screen says SANDBOX. */
  sandbox?: true;
}

interface Shown extends Marked {
  /** False while the box has no registered connection to the gateway. Screens then carry an offline badge. */
  online: boolean;
}

interface Waiting {
  /** The connection is not encrypted, so waiting screens carry a badge. */
  plainLink: boolean;
}

export interface StartingScene extends Marked {
  kind: 'starting';
  version: string;
}

/** The box is connecting to its gateway and does not know its account yet. */
export interface ConnectingScene extends Waiting, Marked {
  kind: 'connecting';
  terminalCode: string;
  serialNumber: string;
}

/** The box asks to be enrolled: the gateway's admin types the code there, or scans it. */
export interface EnrolScene extends Marked {
  kind: 'enrol';
  /** As it is typed, in groups: `7KQF-2M8C-4TZN`. */
  code: string;
  /** The content of the QR, if the display has room for one beside the code. It asks for no money. */
  url: string;
  terminalCode: string;
  serialNumber: string;
  /** Whole minutes until the code expires, at least 1. */
  minutesLeft: number;
}

/** The box has no configuration, or a wrong one. */
export interface SetupScene {
  kind: 'setup';
  /** The problem, with file and line, in one or two lines. */
  problem: string;
  /** The next step, in Vietnamese. */
  action: string;
  terminalCode: string | null;
  serialNumber: string | null;
}

/** The service that the box is connected to waits for the merchant to link an account: the app scans this QR. */
export interface CertificateScene extends Shown, Waiting {
  kind: 'certificate';
  /** The content of the QR. It is no payment. */
  certificate: string;
  terminalCode: string;
  serialNumber: string;
}

/** Registered, but no account is linked to this box. */
export interface UnlinkedScene extends Shown, Waiting {
  kind: 'unlinked';
  terminalCode: string;
  serialNumber: string;
}

export interface IdleScene extends Shown, Waiting {
  kind: 'idle';
  holder: Holder;
  terminalCode: string;
  /** A static QR of the account, for any amount. Only some boxes have one. */
  qrCode?: string;
}

export interface PaymentScene extends Shown {
  kind: 'payment';
  /** Identifies the push, so that the display's confirmation can name what it drew. */
  pushId: string;
  /** The VietQR payload. The display draws it unchanged. */
  qrCode: string;
  amount: number;
  content: string;
  holder: Holder;
  /** Whole seconds until the order expires, at least 0. */
  secondsLeft: number;
}

export interface PaidScene extends Shown {
  kind: 'paid';
  /** Distinguishes two payments with the same text. */
  transactionId: string;
  amount: number;
  content: string;
  /** Null when the box no longer has a linked account. */
  holder: Holder | null;
  /** Set if the order asked for another amount than has been paid for it so far. */
  due?: { amount: number; paid: number };
}

/** A person has asked for this payment again. The screen must not look like that of a new one. */
export interface RepeatScene extends Shown {
  kind: 'repeat';
  transactionId: string;
  amount: number;
  content: string;
  /** Milliseconds since 1970. */
  paidAtMs: number;
  /** As on the paid screen. */
  due?: { amount: number; paid: number };
  /** The box does not announce the payment: it is too old, or the box does not know its age. */
  silent?: 'old' | 'undated';
}

/** The order on the screen ended without a payment. */
export interface EndedScene extends Shown {
  kind: 'expired' | 'cancelled';
  amount: number;
  content: string;
}

/** The linked account has changed since people last saw it. */
export interface AccountScene extends Shown {
  kind: 'account';
  holder: Holder;
  previous: Holder;
}

/** This display cannot show the payment's QR scannably. The text gives what a customer can type instead. */
export interface TooDenseScene extends Shown {
  kind: 'too-dense';
  amount: number;
  content: string;
  holder: Holder;
}

/** Lists the last payments, the newest first. Times are milliseconds since 1970. */
export interface HistoryScene extends Shown {
  kind: 'history';
  payments: readonly { amount: number; content: string; paidAtMs: number }[];
}

/** A person must fix this fault. `action` says how, in Vietnamese. */
export interface FaultScene extends Shown {
  kind: 'fault';
  code: string;
  action: string;
}

/** The screen is empty because the box has ended. */
export interface BlankScene {
  kind: 'blank';
}

export type Scene =
  | StartingScene
  | ConnectingScene
  | EnrolScene
  | SetupScene
  | UnlinkedScene
  | CertificateScene
  | IdleScene
  | PaymentScene
  | PaidScene
  | RepeatScene
  | EndedScene
  | AccountScene
  | TooDenseScene
  | HistoryScene
  | FaultScene
  | BlankScene;

/** Returns the content of a scene's QR; undefined for a scene without one. */
export function qrTextOf(scene: Scene): string | undefined {
  switch (scene.kind) {
    case 'payment':
    case 'idle':
      return scene.qrCode;
    case 'certificate':
      return scene.certificate;
    case 'enrol':
      return scene.url;
    default:
      return undefined;
  }
}

/** Returns whether the scene makes no sense without its QR. A screen without room for that QR says so. */
export function needsQr({ kind }: Scene): boolean {
  return kind === 'payment' || kind === 'certificate';
}

/**
 * Returns whether this screen may hold a QR. No QR may stay once the box has ended, because nobody would see its
 * payment.
 */
export function mayHoldQr(scene: Scene | undefined): boolean {
  return scene !== undefined && qrTextOf(scene) !== undefined;
}
