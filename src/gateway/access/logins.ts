import { createHash } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { networkOf } from '../../lib/connections.ts';
import { equalSecrets } from '../../protocol/checksum.ts';
import { loginOf } from '../../protocol/keys.ts';
import { isStrongSecret } from '../../protocol/secret.ts';
import { type Budget, type FailureCount, LOGIN_BUDGETS, type LoginBudgets } from '../login-budgets.ts';
import { KnownLogins } from './known-logins.ts';

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
  readonly #budgets: LoginBudgets;
  readonly #known: KnownLogins;

  /** Without `known`, logins are remembered in memory only; without `budgets`, nobody shares them. */
  constructor(clock: Clock, known = new KnownLogins(), budgets: LoginBudgets = budgetsAlone()) {
    this.#clock = clock;
    this.#known = known;
    this.#budgets = budgets;
  }

  check({ kind, username, secret, expected }: LoginAttempt, address: string): LoginResult {
    // It has 128 bits: a limit would keep nobody from guessing it, but every admin out who comes through the same proxy.
    if (kind === 'admin' && isSecret(secret ?? '', expected)) return { ok: true };
    const nowMs = this.#clock.monotonicMs();
    const network = networkOf(address);
    // A digest, because a name can be long.
    const user = createHash('sha256').update(`${kind} ${username}`).digest('base64');
    const pair = this.#known.digestOf(user, network);
    const { addresses, users, pairs } = this.#budgets;
    const ofAddress = [addresses, network] as const;
    // Nobody guesses such a secret, so a limit of the user would only keep out boxes that come from a new address.
    const isOfUser = kind !== 'box' || !isStrongSecret(expected ?? OF_NOBODY);
    const counted = this.#known.has(pair)
      ? ([[pairs, pair]] as const)
      : isOfUser
        ? ([ofAddress, [users, user]] as const)
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

function budgetsAlone(): LoginBudgets {
  const { addresses, users, pairs } = LOGIN_BUDGETS;
  return { addresses: new Failures(addresses), users: new Failures(users), pairs: new Failures(pairs) };
}

/** Counts failures by key; they are forgotten one by one. */
export class Failures implements FailureCount {
  readonly #budget: Budget;
  /** Monotonic time at which all failures of a key are forgotten. Keys are in the order of their last failure. */
  readonly #forgottenAtMs = new Map<string, number>();

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** `more` is a number of failures beside those that were added. */
  waitMs(key: string, nowMs: number, more = 0): number {
    const { failuresMax, forgetMs } = this.#budget;
    return Math.max(0, (this.#forgottenAtMs.get(key) ?? nowMs) - nowMs - (failuresMax - 1 - more) * forgetMs);
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
