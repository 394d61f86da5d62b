import type { IncomingHttpHeaders } from 'node:http';
import type { z } from 'zod';
import type { Clock } from '../../../lib/clock.ts';
import type { HttpAnswer } from '../../../lib/http-client.ts';
import type { Random } from '../../../lib/random.ts';
import type { VietQr } from '../../../protocol/vietqr.ts';
import type { VirtualAccounts } from '../../../protocol/virtual-accounts.ts';

/** One movement of money to an account, as a source reports it. */
export interface Credit {
  /** The source reports the same credit under the same key. */
  sourceId: string;
  /** The bank's number of the transfer, or '' if the source has none. */
  reference: string;
  bankAccount: string;
  /** '' if there is none. */
  virtualAccount: string;
  /** Whole dong, 1 or more. */
  amount: number;
  /** The text of the transfer, as the bank wrote it. */
  text: string;
  /** The name of the order that the source read in the text, or undefined if it found none. */
  code?: string;
  /** `undefined` if the source reports no valid time. */
  bankTimeMs: number | undefined;
  /**
   * Says whether a webhook also reported this entry of a list, as far as the source knows. Only lists whose ids differ from
   * those of the webhooks have it.
   */
  listed?: 'told' | 'missed';
  /** The number of the order at the source. Only payOS reports it. */
  orderCode?: number;
}

/** The meaning of a request to a hook. A request whose proof of origin is wrong is `refused` and changes nothing. */
export type Heard =
  /** Each line of `ignored` says why an item is no credit (a debit, a test call). The answer is that of a success. */
  | { kind: 'told'; credits: Credit[]; ignored: string[] }
  /** The answer to a call that reports no money. */
  | { kind: 'answered'; status: number; body: object }
  /**
   * `reason` contains no secret. 401 means a wrong proof, and is rate-limited (PROTOCOL.md, clause SRC-5). `isUnproved`
   * means that the request was refused before its proof was checked; it is rate-limited too.
   */
  | { kind: 'refused'; status: number; reason: string; body: object; isUnproved?: boolean };

/** A request with a right proof whose body is a form. `heardIn` returns its meaning for the decoded fields. */
export interface HeardForm {
  kind: 'form';
  heardIn(fields: Readonly<Record<string, string>>): Heard;
}

export interface HookRequest {
  /** The rest of the path after `/hooks/{name}`: '' or `/api/token_generate`. Repeated slashes are merged. */
  path: string;
  headers: IncomingHttpHeaders;
  /** The bytes as received, after their `Content-Encoding` was undone. Empty without a body. */
  body: Buffer;
}

/** A request to the API of a source. */
export interface SourceRequest {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  /** True if a person waits for the answer. The request is then sent before the others. */
  isUrgent?: boolean;
  /** Aborts the request and the wait for its turn. */
  signal?: AbortSignal;
}

/**
 * Calls the source over HTTP within its rate limit. After a 429 it waits and retries. Throws when there is no answer.
 */
export type AskSource = (url: string, request?: SourceRequest) => Promise<HttpAnswer>;

/** Calendar times of a period, both included. */
export interface Period {
  sinceMs: number;
  untilMs: number;
  /** Unpaid orders, for a source with `isAskedByOrder`; empty for the others. */
  orders: readonly WaitingOrder[];
}

export interface WaitingOrder {
  bankAccount: string;
  /** The partner's id of the order, which may be ''. */
  orderId: string;
  /** The number under which this source made the QR. */
  orderCode?: number;
}

/** The entries of a list, and one line for each that could not be read. */
export interface Listed {
  credits: Credit[];
  unread: string[];
}

/** A secret by which a source proves that it makes a call. */
export interface Proof {
  /** The path of the option that holds the secret. */
  at: readonly string[];
  secret: string;
  /** The form of the provider's own secrets, which have 128 bits. Undefined if the shop makes the secret. */
  issued?: { form: RegExp; expected: string };
}

/** An open source of money. */
export interface Source {
  readonly name: string;
  readonly kind: string;
  /** Checks the proof of origin, then decodes. Never throws for what a peer sends. */
  hear(request: HookRequest): Heard | HeardForm;
  /** Returns whether an attacker could guess the proof of a request to this path (PROTOCOL.md, clause SRC-5). */
  isGuessable(path: string): boolean;
  /** The body of 2xx. */
  readonly success: object;
  /** The body of 429. */
  readonly limited: object;
  /**
   * Reads the credits of a period, and maybe more, from the source's own list, page by page. Throws for an undocumented
   * answer and for a list without an end. `undefined` if the options have no access to a list.
   */
  readonly list: ((period: Period, ask: AskSource) => AsyncIterable<Listed>) | undefined;
  /** True if the source has no list of transfers, so that `list` asks about the orders of the period. */
  readonly isAskedByOrder?: boolean;
  /** Makes the QRs of orders. `undefined` if the source does not. */
  readonly maker?: QrMaker | undefined;
}

/** An order for which a source is to collect. */
export interface NewRequest {
  /** A number that no other order has at the source. */
  orderCode: number;
  /** Whole đồng. */
  amount: number;
  /** The content of the transfer: letters and digits. */
  description: string;
  /** From this time on the source accepts no money for the order. */
  expiresAtMs: number;
}

export interface MadeQr {
  qrCode: string;
  qr: VietQr;
}

/**
 * Makes the QRs of orders at the source (PROTOCOL.md, clause PQR). Every method throws if the answer is not as
 * documented.
 */
export interface QrMaker {
  /** The accounts whose orders get their QR here. */
  readonly accounts: readonly string[];
  /** The virtual accounts that these QRs may pay to instead. */
  readonly virtualAccounts: readonly VirtualAccounts[];
  make(request: NewRequest, ask: AskSource): Promise<MadeQr>;
  /** Cancels a QR if the source still can. */
  cancel(orderCode: number, ask: AskSource): Promise<void>;
  /** Returns the money that came in for an order, and whether the order is over. */
  look(orderCode: number, ask: AskSource): Promise<{ isOver: boolean; listed: Listed }>;
}

export interface SourceDeps {
  clock: Clock;
  random: Random;
}

/** The row of a kind in the gateway's manual, in Markdown. */
export interface ManualRow {
  /** The settings that a person makes at the provider. */
  atProvider: string;
  /** The options with the proofs of origin. */
  proof: string;
  /** The options with which the gateway asks for what no call reported. */
  catchUp: string;
}

/** `options` is a strict object with `kind` (a literal) and `name` (`sourceName`) among its keys. */
export interface SourceKind<Options extends z.ZodType<NamedOptions>> {
  readonly kind: string;
  readonly manual: ManualRow;
  /** The path after `/hooks/{name}` that the provider calls first; '' if left out. */
  readonly firstPath?: string;
  readonly options: Options;
  open(options: z.output<Options>, deps: SourceDeps): Source;
  /**
   * Lists the secrets with which a caller proves its origin. Secrets that the gateway shows to the source are left out.
   */
  proofs(options: z.output<Options>): readonly Proof[];
  /** Returns whether the provider makes the key. Otherwise the shop chooses it. */
  isKeyGiven(options: z.output<Options>): boolean;
  /** Returns the options with another key. The previous key still works where the source allows it. */
  withKey(options: z.output<Options>, key: string): z.output<Options>;
}

/** Options that every source has. */
export interface NamedOptions {
  kind: string;
  name: string;
  /** The API that the gateway asks. Sources without a list have none. */
  api?: { url?: string | undefined } | undefined;
}
