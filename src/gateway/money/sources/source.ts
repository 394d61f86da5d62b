import type { IncomingHttpHeaders } from 'node:http';
import type { z } from 'zod';
import type { Clock } from '../../../lib/clock.ts';
import type { HttpAnswer } from '../../../lib/http-client.ts';
import type { Random } from '../../../lib/random.ts';
import type { VietQr } from '../../../protocol/vietqr.ts';
import type { VirtualAccounts } from '../../../protocol/virtual-accounts.ts';

/** One movement of money to an account, as a source tells it. */
export interface Credit {
  /** By this key the source tells the same credit again. */
  sourceId: string;
  /** The bank's number of the transfer; '' if the source has none. */
  reference: string;
  bankAccount: string;
  /** '' without one. */
  virtualAccount: string;
  /** Whole dong, 1 or more. */
  amount: number;
  /** The text of the transfer, as the bank has it. */
  text: string;
  /** The source read this in the text as the name of the order; undefined if it found nothing. */
  code?: string;
  /** `undefined` if the source's time is none. */
  bankTimeMs: number | undefined;
  /**
   * Of an entry of a list whose ids are not those of the webhooks: whether the source told it by a webhook too, as far as
   * it says.
   */
  listed?: 'told' | 'missed';
  /** The number of the order at the source: payOS only. */
  orderCode?: number;
}

/** The meaning of a request to a hook. One whose proof of origin is wrong is `refused` and changes nothing. */
export type Heard =
  /** `ignored`: one line each, why an item is no credit (a debit, a test call); answered like success. */
  | { kind: 'told'; credits: Credit[]; ignored: string[] }
  /** The answer to a call that tells of no money. */
  | { kind: 'answered'; status: number; body: object }
  /**
   * `reason` has no secret. 401 is a wrong proof, and is limited (PROTOCOL.md, clause SRC-5); so is what is refused before
   * its proof could be looked at, `isUnproved`.
   */
  | { kind: 'refused'; status: number; reason: string; body: object; isUnproved?: boolean };

/** A request with a right proof, whose body is a form: its meaning, once somebody has read the fields. */
export interface HeardForm {
  kind: 'form';
  heardIn(fields: Readonly<Record<string, string>>): Heard;
}

export interface HookRequest {
  /** The rest of the path after `/hooks/{name}`, with repeated slashes made one: '' or `/api/token_generate`. */
  path: string;
  headers: IncomingHttpHeaders;
  /** The bytes as received, without their `Content-Encoding`; empty without a body. */
  body: Buffer;
}

/** A request to the API of a source. */
export interface SourceRequest {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  /** Somebody waits for the answer: the request goes before those that do not. */
  isUrgent?: boolean;
  /** Ends the request, and the wait for its turn. */
  signal?: AbortSignal;
}

/**
 * Asks the source over HTTP, within its rate limits: after a 429 it waits and asks again. Throws when there is no
 * answer.
 */
export type AskSource = (url: string, request?: SourceRequest) => Promise<HttpAnswer>;

/** Calendar times of a period, both included. */
export interface Period {
  sinceMs: number;
  untilMs: number;
  /** Orders that wait for money: some sources are asked by order. */
  orders: readonly WaitingOrder[];
}

export interface WaitingOrder {
  bankAccount: string;
  /** The partner's own; may be ''. */
  orderId: string;
  /** The number under which this source makes its QR. */
  orderCode?: number;
}

/** The entries of a list, and one line for each that could not be read. */
export interface Listed {
  credits: Credit[];
  unread: string[];
}

/** A secret by which a source proves that it calls. */
export interface Proof {
  /** The path of its option. */
  at: readonly string[];
  secret: string;
  /** The form of those that the provider makes, which have 128 bits too; undefined if the shop makes it. */
  issued?: { form: RegExp; expected: string };
}

/** An open source of money. */
export interface Source {
  readonly name: string;
  readonly kind: string;
  /** Checks the proof of origin, then decodes. Never throws for what a peer sends. */
  hear(request: HookRequest): Heard | HeardForm;
  /** Whether somebody who guesses could find the proof of a request to this path (PROTOCOL.md, clause SRC-5). */
  isGuessable(path: string): boolean;
  /** The body of 2xx. */
  readonly success: object;
  /** The body of 429. */
  readonly limited: object;
  /**
   * The credits of a period, and maybe of more, from the source's own list, page by page. Throws when it does not answer
   * as documented or has no end. `undefined` if the file has no access to the list.
   */
  readonly list: ((period: Period, ask: AskSource) => AsyncIterable<Listed>) | undefined;
  /** Makes the QRs of orders; `undefined` if the source does not. */
  readonly maker?: QrMaker | undefined;
}

/** An order for which a source is to collect. */
export interface NewRequest {
  /** A number that the source has for no other order. */
  orderCode: number;
  /** Whole đồng. */
  amount: number;
  /** The content of the transfer: letters and digits. */
  description: string;
  /** From then on the source takes no money for it. */
  expiresAtMs: number;
}

export interface MadeQr {
  qrCode: string;
  qr: VietQr;
}

/** Makes the QRs of orders at the source (PROTOCOL.md, clause PQR). Every method throws when there is no right answer. */
export interface QrMaker {
  /** The accounts whose orders get their QR here. */
  readonly accounts: readonly string[];
  /** Where these QRs may pay to beside the account. */
  readonly virtualAccounts: readonly VirtualAccounts[];
  make(request: NewRequest, ask: AskSource): Promise<MadeQr>;
  /** Takes a QR away, as far as the source still can. */
  cancel(orderCode: number, ask: AskSource): Promise<void>;
  /** Money that came in for an order, and whether no more can. */
  look(orderCode: number, ask: AskSource): Promise<{ isOver: boolean; listed: Listed }>;
}

export interface SourceDeps {
  clock: Clock;
  random: Random;
}

/** `options` is a strict object with `kind` (a literal) and `name` (`sourceName`) among its keys. */
export interface SourceKind<Options extends z.ZodType<NamedOptions>> {
  readonly kind: string;
  readonly options: Options;
  open(options: z.output<Options>, deps: SourceDeps): Source;
  /** The secrets with which a right request can be made; none that the gateway shows to the source. */
  proofs(options: z.output<Options>): readonly Proof[];
  /** Whether the provider makes its key; any other key the shop chooses. */
  isKeyGiven(options: z.output<Options>): boolean;
  /** The options with another key; the one of before is still taken where that is possible. */
  withKey(options: z.output<Options>, key: string): z.output<Options>;
}

/** Options that every source has. */
export interface NamedOptions {
  kind: string;
  name: string;
  /** Of a source that is asked itself. */
  api?: { url?: string | undefined } | undefined;
}
