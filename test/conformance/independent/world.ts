import type { Fault } from './faults.ts';

/** How the service proves to a partner that a callback is its own. */
export type CallbackLogin =
  | { kind: 'none' }
  | { kind: 'bearer'; token: string }
  | { kind: 'token'; url: string; username: string; password: string };

export interface Partner {
  username: string;
  password: string;
  accounts: readonly string[];
  callback?: { url: string; login: CallbackLogin; signingSecret: string };
}

export interface Account {
  bankAccount: string;
  bankCode: string;
  userBankName: string;
}

/** A box without a link: one that is on shows whatever it is sent, at once. */
export interface Box {
  terminalCode: string;
  serialNumber: string;
  account?: string;
  isOn: boolean;
  /** The order on its screen. */
  shown?: Order | undefined;
  /** Another QR that is on its screen. */
  shownQr?: string | undefined;
}

/** What a customer is to pay. */
export interface Order {
  partner: Partner;
  bankAccount: string;
  amount: number;
  content: string;
  transType: string;
  orderId: string;
  qrCode: string;
  sign: string;
  terminalCode: string;
  subTerminalCode: string;
  serviceCode: string;
  urlLink: string;
  isPaid: boolean;
}

export interface WorldClock {
  monotonicMs(): number;
  wallMs(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Everything that the service knows. */
export interface World {
  partners: readonly Partner[];
  accounts: readonly Account[];
  boxes: readonly Box[];
  isSandbox: boolean;
  clock: WorldClock;
  /** Runs an attempt at a partner's endpoint; whoever gives virtual time lets none pass meanwhile. */
  attempt<T>(work: () => Promise<T>): Promise<T>;
  faults: ReadonlySet<Fault>;
  /** Oldest first. */
  orders: Order[];
  /** Orders that were on a screen, oldest first. */
  pushed: Order[];
  /** The fields of the newest request of a path. */
  newest: Map<string, Fields>;
  /** Whether a callback is under way. */
  isSending: boolean;
  /** How many callbacks there were. */
  callbacks: number;
  /** The QR behind each qrLink, by its id. */
  pictures: Map<string, string>;
}

/** A request that is not done, and what is answered. */
export class Refusal extends Error {
  readonly code: string;
  readonly status: number;
  readonly headers: Record<string, string>;

  constructor(code: string, status = 400, headers: Record<string, string> = {}) {
    super(code);
    this.code = code;
    this.status = status;
    this.headers = headers;
  }
}

export type Fields = Record<string, unknown>;

const CODE_OF_A_BOX = /^VVB\d{6}$/;

/** The box that these codes name; undefined for one that is not in the system, and for codes of two boxes. */
export function findBox({ boxes, faults }: World, terminalCode: string, serialNumber = ''): Box | undefined {
  const isOther = terminalCode !== '' && !CODE_OF_A_BOX.test(terminalCode);
  if (isOther && faults.has('a box code of another form is E46')) throw new Refusal('E46');
  const isNamed = (given: string, own: string) => given === '' || (CODE_OF_A_BOX.test(given) && given === own);
  if (terminalCode === '' && serialNumber === '') return undefined;
  const isFirst = terminalCode !== '' && faults.has('two codes may name two boxes');
  return boxes.find(
    (it) => isNamed(terminalCode, it.terminalCode) && (isFirst || isNamed(serialNumber, it.serialNumber)),
  );
}
