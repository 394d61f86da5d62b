import { createHash } from 'node:crypto';
import { BudgetMeter, type BudgetUse } from '../../lib/budget.ts';
import type { Clock } from '../../lib/clock.ts';
import { networkOf } from '../../lib/connections.ts';
import { equalSecrets } from '../../protocol/checksum.ts';
import { loginOf } from '../../protocol/keys.ts';
import { isStrongSecret } from '../../protocol/secret.ts';
import { KnownLogins } from './known-logins.ts';
import { LOGIN_BUDGETS, type LoginBudgets } from './login-budgets.ts';

/** The user that a caller claims to be. */
export interface Claim {
  /** `hook`: a source of money, by its name. */
  kind: 'partner' | 'box' | 'admin' | 'enrolment' | 'hook';
  username: string;
  /** True if the secret has 128 bits, so that nobody can guess it. */
  isStrong: boolean;
}

/** A claimed name, the secret that was sent, and the expected secret. */
export interface LoginAttempt extends Omit<Claim, 'isStrong'> {
  /**
   * If left out, the form of `expected` decides. A box sets it, because it sends a value made from a secret of 128
   * bits.
   */
  isStrong?: boolean;
  /** `undefined` if none was sent: that is not counted as a guess. */
  secret: string | undefined;
  /** `undefined` for an unknown user. The answer is the same as for a wrong secret. */
  expected: string | undefined;
}

export type LoginResult = { ok: true } | { ok: false; retryAfterSeconds: number };

/** One attempt under the limits. The caller reports its result, once. */
export interface AttemptLimits {
  /** Time until another failure fits the budgets; 0 if it fits now. */
  waitMs: number;
  failed(): void;
  succeeded(): void;
}

/**
 * Checks logins, and limits wrong ones by address and by user. A right secret of 128 bits is always accepted: nobody
 * can guess it, and a limit would lock out everybody who shares an address with somebody who guesses. Other secrets are
 * not accepted beyond a limit, which stops guessing. A user who has logged in from an address before has his own limit
 * there. So neither others at that address nor guesses from elsewhere lock him out (PROTOCOL.md, clause TOK-6).
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

  check(attempt: LoginAttempt, address: string): LoginResult {
    const { secret, expected, isStrong = isStrongSecret(expected ?? '') } = attempt;
    const limits = this.begin({ ...attempt, isStrong }, address);
    // Compared in any case, so that the time of the answer does not tell whose secret is strong.
    const isRight = isSecret(secret ?? '', expected);
    if (isRight && (isStrong || limits.waitMs === 0)) {
      limits.succeeded();
      return { ok: true };
    }
    if (limits.waitMs > 0) return { ok: false, retryAfterSeconds: Math.ceil(limits.waitMs / 1000) };
    if (secret !== undefined) limits.failed();
    return { ok: false, retryAfterSeconds: 0 };
  }

  /** Begins an attempt whose proof the caller checks. */
  begin({ kind, username, isStrong }: Claim, address: string): AttemptLimits {
    const nowMs = this.#clock.monotonicMs();
    const network = networkOf(address);
    // A digest, because a name can be long.
    const user = createHash('sha256').update(`${kind} ${username}`).digest('base64');
    const pair = this.#known.digestOf(user, network);
    const { addresses, users, pairs } = this.#budgets;
    const counted: [BudgetUse, string][] = [];
    // A hook has its own limit, so that wrong proofs there use up no logins.
    if (this.#known.has(pair) || kind === 'hook') counted.push([pairs, pair]);
    else counted.push([addresses, network]);
    // A box or a source with a strong secret needs no limit of its own. For partners, such an exception would reveal
    // which names exist.
    const isOfUser = !isStrong || !['box', 'hook'].includes(kind);
    if (!this.#known.has(pair) && isOfUser) counted.push([users, user]);
    return {
      waitMs: Math.max(...counted.map(([failures, key]) => failures.waitMs(key, nowMs))),
      failed: () => {
        for (const [failures, key] of counted) failures.add(key, nowMs);
      },
      succeeded: () => this.#known.add(pair),
    };
  }
}

function budgetsAlone(): LoginBudgets {
  const { addresses, users, pairs } = LOGIN_BUDGETS;
  return { addresses: new BudgetMeter(addresses), users: new BudgetMeter(users), pairs: new BudgetMeter(pairs) };
}

/** Compares in constant time. An unknown name (`undefined`) takes as long as a wrong secret. */
function isSecret(given: string, expected: string | undefined): boolean {
  return equalSecrets(given, expected ?? '') && expected !== undefined;
}

/**
 * Returns the login password of a box with this secret, or `undefined` without one. It is always computed, so that the time of an
 * answer does not show which boxes exist (PROTOCOL.md, clause TOP-2).
 */
export function boxPasswordOf(secret: string | undefined): string | undefined {
  const made = loginOf(secret ?? '');
  return secret === undefined ? undefined : made;
}
