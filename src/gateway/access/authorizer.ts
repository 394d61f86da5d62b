import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import { bearerToken, hostnameOf, isForeignPage, isFromOtherPage } from '../../lib/http-server.ts';
import type { Logger } from '../../lib/log.ts';
import { isLoopbackHost } from '../../lib/tls.ts';
import { equalSecrets } from '../../protocol/checksum.ts';
import type { Logins } from '../common/logins.ts';
import { mayDo, type Right, ROLE_NAMES, type Role } from '../config/roles.ts';
import type { AdminTokenRow } from '../store/schema/tables.ts';
import { addressOf, strangerOf } from './carried.ts';
import { answerRefusal, BEARER, isLoggedIn } from './requests.ts';
import type { RootToken } from './root-token.ts';

/** Every token of the gateway begins with this, so that people and scanners for leaked secrets recognise it. */
export const TOKEN_PREFIX = 'paybox_';
/** The store is asked only for tokens of this form. */
const MADE_HERE = /^paybox_[\w-]{32}$/;
/** A use of a token is stored at most once in this time. */
const USE_STORED_MS = 60_000;

/** Browsers save these answers as files, or read them without an end. A link on another page must not open them. */
const SAVED = new Set(['/_mock/backup', '/_mock/events', '/admin/v1/sales.csv']);

/** The caller of a route of the gateway's own. */
export interface Caller {
  /** Name of the token, as the audit list has it; `loopback` without a token. */
  who: string;
  role: Role;
  /** The boxes that a cashier may use. Undefined if he may use all. */
  boxes: readonly string[] | undefined;
  /** IP address. */
  address: string;
  /** SHA-256 of the caller's token. Undefined for a caller without a stored token. */
  digest: string | undefined;
}

/** A stored token, as far as a call needs it. */
export type FoundToken = Pick<AdminTokenRow, 'id' | 'name' | 'role' | 'boxes' | 'last_used_at_ms'>;

/** Looks up tokens: the store, or the cache in front of it. */
export interface TokenFinder {
  /** Finds the token with this digest, if it is not revoked. */
  find(digest: string): Promise<FoundToken | undefined>;
  /** Stores a use, unless one since `sinceMs` is stored. */
  used(id: string, atMs: number, sinceMs: number): Promise<void>;
}

/** Everything by which the gateway identifies a caller. */
export interface Callers {
  root: RootToken | undefined;
  /** The role of programs and pages of this machine that send no token. */
  onLoopback: Role | 'none';
  tokens: TokenFinder;
  logins: Logins;
  clock: Clock;
  log: Logger;
}

/** Returns the digest under which the store holds a token. */
export function digestOf(token: string): string {
  return createHash('sha256').update(token, 'utf8').digest('hex');
}

/** Finds out who calls, by the token of the request (PROTOCOL.md, clause ROL). */
export class Authorizer {
  readonly #deps: Callers;
  /** Functions that end the streams and downloads of a token, by the digest of the token. */
  readonly #open = new Map<string, Set<() => void>>();

  constructor(deps: Callers) {
    this.#deps = deps;
  }

  /**
   * Returns the caller if he has this right. With `every-role`, no right is needed. Otherwise it answers and logs the
   * refusal and returns undefined: 401 for a missing or wrong token, 403 for a role without the right.
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
    // A wrong or revoked token never counts as no token: its sender must not become an admin by it.
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

  /** Calls `end` as soon as the token of this caller is revoked. Returns a function that cancels this. */
  whenRevoked({ digest }: Caller, end: () => void): () => void {
    if (digest === undefined) return () => undefined;
    const ends = this.#open.get(digest) ?? new Set();
    this.#open.set(digest, ends.add(end));
    // The token may have been revoked after the request was accepted.
    void this.#endIfRevoked(digest);
    return () => {
      ends.delete(end);
      if (ends.size === 0 && this.#open.get(digest) === ends) this.#open.delete(digest);
    };
  }

  /** Ends the streams and downloads of revoked tokens. The gateway must call it after each change of tokens. */
  async changed(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((digest) => this.#endIfRevoked(digest)));
  }

  async #endIfRevoked(digest: string): Promise<void> {
    try {
      if ((await this.#deps.tokens.find(digest)) !== undefined) return;
    } catch (error) {
      // When the store cannot be read, the streams end too: nobody knows whether the token is still valid.
      this.#deps.log.warn('token-not-checked', { reason: reasonOf(error) });
    }
    const ends = [...(this.#open.get(digest) ?? [])];
    this.#open.delete(digest);
    for (const end of ends) end();
  }

  /** Returns the caller with this token, without the address. */
  async #find(secret: string): Promise<Omit<Caller, 'address'> | undefined> {
    const { root, tokens } = this.#deps;
    if (root !== undefined && equalSecrets(secret, root.value)) {
      return { who: root.name, role: 'admin', boxes: undefined, digest: undefined };
    }
    if (!MADE_HERE.test(secret)) return undefined;
    const digest = digestOf(secret);
    const row = await tokens.find(digest);
    // The row may have a role that only a newer version knows.
    const role = ROLE_NAMES.find((it) => it === row?.role);
    if (row === undefined || role === undefined) return undefined;
    this.#noteUse(row);
    return { who: row.name, role, boxes: boxesOf(row), digest };
  }

  #noteUse({ id, last_used_at_ms: lastMs }: FoundToken): void {
    const { clock, tokens, log } = this.#deps;
    const nowMs = clock.wallMs();
    if (lastMs !== null && lastMs > nowMs - USE_STORED_MS) return;
    // The call does not wait for this: a store that cannot be written must not lock an admin out.
    tokens.used(id, nowMs, nowMs - USE_STORED_MS).catch((error: unknown) => {
      log.warn('token-use-not-stored', { reason: reasonOf(error) });
    });
  }
}

const EXPECTED = 'expected a token as bearer: an admin makes one with paybox admin tokens add';

/** Returns the boxes that a token is restricted to. Undefined if it is not restricted. */
export function boxesOf({ boxes }: FoundToken): readonly string[] | undefined {
  return boxes === null ? undefined : (JSON.parse(boxes) as string[]);
}

/** Returns why a caller is not a program or page of this machine. Undefined if it is one. */
function strangeness(request: FastifyRequest): string | undefined {
  const stranger = strangerOf(request);
  if (stranger !== undefined) return stranger;
  // A page of another site can make a browser on this machine send requests, even to a name that resolves to loopback.
  if (!isLoopbackHost(hostnameOf(request.raw) ?? '')) return 'not by a loopback name';
  const isSaved = SAVED.has(request.routeOptions.url ?? '');
  const isForeign = isSaved ? isFromOtherPage(request.raw) : isForeignPage(request.raw);
  return isForeign ? 'from a page of another origin' : undefined;
}
