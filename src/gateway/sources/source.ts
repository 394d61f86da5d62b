import type { IncomingHttpHeaders } from 'node:http';
import type { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import type { HttpAnswer } from '../../lib/http-client.ts';
import type { Random } from '../../lib/random.ts';

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
  bankTimeMs: number;
  /** The number of the order at the source: payOS only. */
  orderCode?: number;
}

/** The meaning of a request to a hook. One whose proof of origin is wrong is `refused` and changes nothing. */
export type Heard =
  /** `ignored`: one line each, why an item is no credit (a debit, a test call); answered like success. */
  | { kind: 'told'; credits: Credit[]; ignored: string[] }
  /** The answer to a call that tells of no money. */
  | { kind: 'answered'; status: number; body: object }
  /** `reason` has no secret. 401 is a wrong proof, and is limited (PROTOCOL.md, clause SRC-5). */
  | { kind: 'refused'; status: number; reason: string; body: object };

export interface HookRequest {
  /** The rest of the path after `/hooks/{name}`, with repeated slashes made one: '' or `/api/token_generate`. */
  path: string;
  headers: IncomingHttpHeaders;
  /** The bytes as received; empty without a body. */
  body: Buffer;
}

/**
 * Asks the source over HTTP, within its rate limits: after a 429 it waits and asks again. Throws when there is no
 * answer.
 */
export type AskSource = (
  url: string,
  request?: { method?: string; headers?: Record<string, string>; body?: string },
) => Promise<HttpAnswer>;

/** Calendar times of a period, both included. */
export interface Period {
  sinceMs: number;
  untilMs: number;
  /** The numbers of orders that wait for money: payOS lists by order. */
  orderCodes: readonly number[];
}

/** The entries of a list, and one line for each that could not be read. */
export interface Listed {
  credits: Credit[];
  unread: string[];
}

/** An open source of money. */
export interface Source {
  readonly name: string;
  readonly kind: string;
  /** Checks the proof of origin, then decodes. Never throws for what a peer sends. */
  hear(request: HookRequest): Heard;
  /** The body of 2xx. */
  readonly success: object;
  /**
   * The credits of a period, and maybe of more, from the source's own list. Throws when it does not answer as documented.
   * `undefined` if the file has no access to the list.
   */
  readonly list: ((period: Period, ask: AskSource) => Promise<Listed>) | undefined;
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
}

/** Options that every source has. */
export interface NamedOptions {
  kind: string;
  name: string;
}
