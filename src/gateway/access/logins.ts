import { createHash } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { networkOf } from '../../lib/connections.ts';
import { equalSecrets } from '../../protocol/checksum.ts';
import { loginOf } from '../../protocol/keys.ts';
import { isStrongSecret } from '../../protocol/secret.ts';
import { KnownLogins } from './known-logins.ts';

/** Number of wrong logins at once; one is forgotten after each `forgetMs`. */
export interface Budget {
  failuresMax: number;
  forgetMs: number;
}

export const ADDRESS_BUDGET: Budget = { failuresMax: 30, forgetMs: 2_000 };
/** Larger than the budget of an address, so that one address alone cannot lock out a user. */
const USER_BUDGET: Budget = { failuresMax: 120, forgetMs: 500 };
/** Keys of each kind with counted failures. Beyond that, the one with the oldest failure is forgotten. */
const KEYS_MAX = 10_000;

/** In place of the secret of an unknown box, which must not be told from a known one. */
const OF_NOBODY = loginOf('');

/** A claimed name, the secret that was sent, and the expected secret. */
export interface LoginAttempt {
  kind: 'partner' | 'box' | 'admin' | 'enrolment';
  username: string;
  /** `undefined` if none was sent: that is not counted as a guess. */
  secret: string | undefined;
  /** `undefined` for an unknown user. The answer is the same as for a wrong secret. */
  expected: string | undefined;
}

export type LoginResult = { ok: true } | { ok: false; retryAfterSeconds: number };

/**
 * Checks logins, and limits wrong ones by address and by user. Beyond a limit no secret is compared, which stops
 * guessing. Boxes whose secret cannot be guessed are limited by address only. A user who has logged in from an address before has an own limit there: neither others at that address nor
 * guesses from elsewhere lock it out (PROTOCOL.md, clause TOK-6).
 */
export class Logins {
  readonly #clock: Clock;
  readonly #addresses = new Failures(ADDRESS_BUDGET);
  readonly #users = new Failures(USER_BUDGET);
  readonly #pairs = new Failures(ADDRESS_BUDGET);
  readonly #known: KnownLogins;

  /** Without `known`, logins are remembered in memory only. */
  constructor(clock: Clock, known = new KnownLogins()) {
    this.#clock = clock;
    this.#known = known;
  }

  check({ kind, username, secret, expected }: LoginAttempt, address: string): LoginResult {
    // It has 128 bits: a limit would keep nobody from guessing it, but every admin out who comes through the same proxy.
    if (kind === 'admin' && isSecret(secret ?? '', expected)) return { ok: true };
    const nowMs = this.#clock.monotonicMs();
    const network = networkOf(address);
    // A digest, because a name can be long.
    const user = createHash('sha256').update(`${kind} ${username}`).digest('base64');
    const pair = this.#known.digestOf(user, network);
    const ofAddress = [this.#addresses, network] as const;
    // Nobody guesses such a secret, so a limit of the user would only keep out boxes that come from a new address.
    const isOfUser = kind !== 'box' || !isStrongSecret(expected ?? OF_NOBODY);
    const counted = this.#known.has(pair)
      ? ([[this.#pairs, pair]] as const)
      : isOfUser
        ? ([ofAddress, [this.#users, user]] as const)
        : ([ofAddress] as const);
    const waitMs = Math.max(...counted.map(([failures, key]) => failures.waitMs(key, nowMs)));
    if (waitMs > 0) return { ok: false, retryAfterSeconds: Math.ceil(waitMs / 1000) };
    if (isSecret(secret ?? '', expected)) {
      this.#known.add(pair);
      return { ok: true };
    }
    if (secret !== undefined) for (const [failures, key] of counted) failures.add(key, nowMs);
    return { ok: false, retryAfterSeconds: 0 };
  }
}

/** Counts failures by key; they are forgotten one by one. */
export class Failures {
  readonly #budget: Budget;
  /** Monotonic time at which all failures of a key are forgotten. Keys are in the order of their last failure. */
  readonly #forgottenAtMs = new Map<string, number>();

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** Time until `key` may fail again; 0 if it may now. */
  waitMs(key: string, nowMs: number): number {
    const { failuresMax, forgetMs } = this.#budget;
    return Math.max(0, (this.#forgottenAtMs.get(key) ?? nowMs) - nowMs - (failuresMax - 1) * forgetMs);
  }

  add(key: string, nowMs: number): void {
    const beganMs = Math.max(nowMs, this.#forgottenAtMs.get(key) ?? nowMs);
    this.#forgottenAtMs.delete(key);
    this.#forgottenAtMs.set(key, beganMs + this.#budget.forgetMs);
    const [oldest] = this.#forgottenAtMs.keys();
    if (this.#forgottenAtMs.size > KEYS_MAX && oldest !== undefined) this.#forgottenAtMs.delete(oldest);
  }
}

/** Compares in constant time. An unknown name (`undefined`) takes as long as a wrong secret. */
function isSecret(given: string, expected: string | undefined): boolean {
  return equalSecrets(given, expected ?? '') && expected !== undefined;
}

/**
 * The login password of a box with this secret; `undefined` without one. It is always computed, so that the time of an
 * answer does not show which boxes exist (PROTOCOL.md, clause TOP-2).
 */
export function boxPasswordOf(secret: string | undefined): string | undefined {
  const made = loginOf(secret ?? '');
  return secret === undefined ? undefined : made;
}
