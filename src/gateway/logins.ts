import { createHash } from 'node:crypto';
import type { Clock } from '../lib/clock.ts';
import { networkOf } from '../lib/network.ts';
import { equalSecrets } from '../protocol/checksum.ts';
import { loginOf } from '../protocol/keys.ts';
import { KnownLogins } from './known-logins.ts';

/** So many wrong logins are taken at once; one of them is forgotten every so many milliseconds. */
interface Budget {
  failuresMax: number;
  forgetMs: number;
}

const ADDRESS_BUDGET: Budget = { failuresMax: 30, forgetMs: 2_000 };
/** Wider than that of an address, so that one address alone shuts out no user. */
const USER_BUDGET: Budget = { failuresMax: 120, forgetMs: 500 };
/** Addresses, users, and pairs of both whose failures are counted; the one that was quiet for longest is forgotten. */
const REMEMBERED_MAX = 10_000;

/** Who says to be whom, and what would prove it. */
export interface LoginAttempt {
  kind: 'partner' | 'box' | 'admin' | 'enrolment';
  username: string;
  /** `undefined` when none was given, which is no guess. */
  secret: string | undefined;
  /** `undefined` for an unknown user, who is not told apart from a wrong secret. */
  expected: string | undefined;
}

export type LoginResult = { ok: true } | { ok: false; retryAfterSeconds: number };

/**
 * Judges logins, and limits the wrong ones by address and by user. Beyond the budget nothing is compared, so that
 * nothing can be guessed. Whoever has logged in from an address before has a budget of its own there: neither neighbours
 * behind the same address nor guesses from elsewhere shut it out (PROTOCOL.md, clause TOK-6).
 */
export class Logins {
  readonly #clock: Clock;
  readonly #addresses = new Failures(ADDRESS_BUDGET);
  readonly #users = new Failures(USER_BUDGET);
  readonly #pairs = new Failures(ADDRESS_BUDGET);
  readonly #known: KnownLogins;

  /** Without `known`, whoever logs in is known to this object alone. */
  constructor(clock: Clock, known = new KnownLogins()) {
    this.#clock = clock;
    this.#known = known;
  }

  check({ kind, username, secret, expected }: LoginAttempt, address: string): LoginResult {
    const nowMs = this.#clock.monotonicMs();
    const network = networkOf(address);
    // Of one length, however long a name is sent.
    const user = createHash('sha256').update(`${kind} ${username}`).digest('base64');
    const pair = this.#known.digestOf(user, network);
    const counted = this.#known.has(pair)
      ? ([[this.#pairs, pair]] as const)
      : ([
          [this.#addresses, network],
          [this.#users, user],
        ] as const);
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

/** Failures by key, forgotten one by one as time goes on. */
class Failures {
  readonly #budget: Budget;
  /** When the failures of a key will all be forgotten, on the monotonic clock; the latest failure last. */
  readonly #forgottenAtMs = new Map<string, number>();

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** How long until one more failure of `key` would be taken; 0 when it would be now. */
  waitMs(key: string, nowMs: number): number {
    const { failuresMax, forgetMs } = this.#budget;
    return Math.max(0, (this.#forgottenAtMs.get(key) ?? nowMs) - nowMs - (failuresMax - 1) * forgetMs);
  }

  add(key: string, nowMs: number): void {
    const beganMs = Math.max(nowMs, this.#forgottenAtMs.get(key) ?? nowMs);
    this.#forgottenAtMs.delete(key);
    this.#forgottenAtMs.set(key, beganMs + this.#budget.forgetMs);
    const [oldest] = this.#forgottenAtMs.keys();
    if (this.#forgottenAtMs.size > REMEMBERED_MAX && oldest !== undefined) this.#forgottenAtMs.delete(oldest);
  }
}

/** Whether a secret is the expected one; an unknown name (`undefined`) takes the same time as a wrong secret. */
function isSecret(given: string, expected: string | undefined): boolean {
  return equalSecrets(given, expected ?? '') && expected !== undefined;
}

/**
 * The password that a box with this secret logs in with; `undefined` without one. Made in any case, so that the time of
 * an answer does not tell which boxes there are (PROTOCOL.md, clause TOP-2).
 */
export function boxPasswordOf(secret: string | undefined): string | undefined {
  const made = loginOf(secret ?? '');
  return secret === undefined ? undefined : made;
}
