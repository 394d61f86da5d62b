import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import { bearerToken, hostnameOf, isForeignPage, isFromOtherPage } from '../../lib/http-server.ts';
import type { Logger } from '../../lib/log.ts';
import { isLoopbackHost } from '../../lib/tls.ts';
import { equalSecrets } from '../../protocol/checksum.ts';
import type { Logins } from '../common/logins.ts';
import type { AdminTokenRow } from '../store/schema/tables.ts';
import { addressOf, strangerOf } from './carried.ts';
import { answerRefusal, BEARER, isLoggedIn } from './requests.ts';
import { mayDo, type Right, ROLE_NAMES, type Role } from './roles.ts';
import type { RootToken } from './root-token.ts';

/** Begins every token that the gateway makes, so that people and scanners for leaked secrets recognise it. */
export const TOKEN_PREFIX = 'paybox_';
/** Nothing else is looked up in the store. */
const MADE_HERE = /^paybox_[\w-]{32}$/;
/** The store learns of a use of a token at most this often. */
const USE_STORED_MS = 60_000;

/** Routes whose answers a browser saves as files, or reads without an end: no link on another page leads there. */
const SAVED = new Set(['/_mock/backup', '/_mock/events', '/admin/v1/sales.csv']);

/** Who calls a route of the gateway's own. */
export interface Caller {
  /** Name of the token, as the audit list has it; `loopback` without a token. */
  who: string;
  role: Role;
  /** The boxes that a cashier may use; undefined for all. */
  boxes: readonly string[] | undefined;
  /** IP address. */
  address: string;
  /** SHA-256 of a token of the store; undefined for another caller. */
  digest: string | undefined;
}

/** A token of the store, as far as its calls need it. */
export type FoundToken = Pick<AdminTokenRow, 'id' | 'name' | 'role' | 'boxes' | 'last_used_at_ms'>;

/** Where tokens are looked up. */
export interface TokenFinder {
  /** Finds the token with this digest, if it is not revoked. */
  find(digest: string): Promise<FoundToken | undefined>;
  /** Stores a use, unless one since `sinceMs` is stored. */
  used(id: string, atMs: number, sinceMs: number): Promise<void>;
}

/** The callers of a gateway, and the proofs that they give. */
export interface Callers {
  root: RootToken | undefined;
  /** The role of programs and pages of this machine that send no token. */
  onLoopback: Role | 'none';
  tokens: TokenFinder;
  logins: Logins;
  clock: Clock;
  log: Logger;
}

/** The digest under which the store has a token. */
export function digestOf(token: string): string {
  return createHash('sha256').update(token, 'utf8').digest('hex');
}

/** Finds out who calls, by the token of the request (PROTOCOL.md, clause ROL). */
export class Authorizer {
  readonly #deps: Callers;
  /** Functions that end the streams and downloads that a token has opened, by its digest. */
  readonly #open = new Map<string, Set<() => void>>();

  constructor(deps: Callers) {
    this.#deps = deps;
  }

  /**
   * Returns who calls, if he has this right; with `every-role` no right is needed. Answers and logs a refusal itself, and
   * then returns undefined: 401 for a missing or wrong token, 403 for a role without the right.
   */
  async authorize(
    right: Right | 'every-role',
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Caller | undefined> {
    const caller = await this.#callerOf(request, reply);
    if (caller === undefined || right === 'every-role' || mayDo(caller.role, right)) return caller;
    const reason = `expected a token that may ${right}, not ${caller.who} with the role ${caller.role}`;
    answerRefusal(request, reply, this.#deps.log, { code: 'NOT_ALLOWED', reason }, 403);
    return undefined;
  }

  async #callerOf(request: FastifyRequest, reply: FastifyReply): Promise<Caller | undefined> {
    const { onLoopback, root, logins, log } = this.#deps;
    const address = addressOf(request);
    const secret = bearerToken(request);
    // A wrong or revoked token never counts as none: whoever sends one must not become an admin by it.
    const isWithout = !/^bearer\b/i.test(request.headers.authorization ?? '');
    const problem = isWithout ? strangeness(request) : undefined;
    if (isWithout && problem === undefined && onLoopback !== 'none') {
      return { who: 'loopback', role: onLoopback, boxes: undefined, address, digest: undefined };
    }
    if (problem !== undefined && root === undefined) {
      reply.header('www-authenticate', BEARER);
      answerRefusal(request, reply, log, { code: 'E74', reason: `${problem}: ${EXPECTED}` });
      return undefined;
    }
    const found = secret === undefined ? undefined : await this.#find(secret);
    const expected = found === undefined ? root?.value : secret;
    const attempt = { kind: 'admin', username: '', secret, expected } as const;
    if (!isLoggedIn(request, reply, attempt, { logins, log, challenge: BEARER })) return undefined;
    return found && { ...found, address };
  }

  /** Calls `end` as soon as the token of this caller is revoked. Returns a function that stops that. */
  whenRevoked({ digest }: Caller, end: () => void): () => void {
    if (digest === undefined) return () => undefined;
    const ends = this.#open.get(digest) ?? new Set();
    this.#open.set(digest, ends.add(end));
    // It may have been revoked since the request was let in.
    void this.#endIfRevoked(digest);
    return () => {
      ends.delete(end);
      if (ends.size === 0 && this.#open.get(digest) === ends) this.#open.delete(digest);
    };
  }

  /** Ends whatever revoked tokens have open. Must be called after each change of tokens. */
  async changed(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((digest) => this.#endIfRevoked(digest)));
  }

  async #endIfRevoked(digest: string): Promise<void> {
    try {
      if ((await this.#deps.tokens.find(digest)) !== undefined) return;
    } catch (error) {
      // A caller that cannot be checked is not let in either.
      this.#deps.log.warn('token-unchecked', { reason: reasonOf(error) });
    }
    const ends = [...(this.#open.get(digest) ?? [])];
    this.#open.delete(digest);
    for (const end of ends) end();
  }

  /** The caller with this token, but for the address. */
  async #find(secret: string): Promise<Omit<Caller, 'address'> | undefined> {
    const { root, tokens } = this.#deps;
    if (root !== undefined && equalSecrets(secret, root.value)) {
      return { who: root.name, role: 'admin', boxes: undefined, digest: undefined };
    }
    if (!MADE_HERE.test(secret)) return undefined;
    const digest = digestOf(secret);
    const row = await tokens.find(digest);
    // A newer version may have more roles.
    const role = ROLE_NAMES.find((it) => it === row?.role);
    if (row === undefined || role === undefined) return undefined;
    this.#noteUse(row);
    return { who: row.name, role, boxes: boxesOf(row), digest };
  }

  #noteUse({ id, last_used_at_ms: lastMs }: FoundToken): void {
    const { clock, tokens, log } = this.#deps;
    const nowMs = clock.wallMs();
    if (lastMs !== null && lastMs > nowMs - USE_STORED_MS) return;
    // Nobody waits for it: a store that takes nothing must not keep an admin out.
    tokens.used(id, nowMs, nowMs - USE_STORED_MS).catch((error: unknown) => {
      log.warn('token-use-unstored', { reason: reasonOf(error) });
    });
  }
}

const EXPECTED = 'expected a token as bearer: an admin makes one with paybox admin tokens add';

/** The boxes of a token; undefined for all. */
export function boxesOf({ boxes }: FoundToken): readonly string[] | undefined {
  return boxes === null ? undefined : (JSON.parse(boxes) as string[]);
}

/** Why a caller is no program or page of this machine; `undefined` if it is one. */
function strangeness(request: FastifyRequest): string | undefined {
  const stranger = strangerOf(request);
  if (stranger !== undefined) return stranger;
  // A page of another site can make a browser on this machine send requests, also to a name that resolves to loopback.
  if (!isLoopbackHost(hostnameOf(request.raw) ?? '')) return 'not by a loopback name';
  const isSaved = SAVED.has(request.routeOptions.url ?? '');
  const isForeign = isSaved ? isFromOtherPage(request.raw) : isForeignPage(request.raw);
  return isForeign ? 'from a page of another origin' : undefined;
}
