import { type Budget, BudgetMeter, type BudgetUse } from '../../lib/budget.ts';
import type { Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { LOGIN_BUDGETS, type LoginBudgets } from '../common/logins.ts';
import type { WrongLogins } from './news.ts';

/** At most this many failures wait to be sent to other members. Further ones count at this member only. */
const WAITING_MAX = 10_000;
/** One notification has at most this many names. PostgreSQL's limit is 8,000 bytes, and names may be digests. */
const NAMES_MAX = 100;
/** A failure that has not come back by then was lost on its way. From then on it counts once. */
const ECHO_MS_MAX = 10_000;
/** The wait after the database has refused a notification. */
const AGAIN_MS = 1_000;

type Kind = keyof LoginBudgets;
const KINDS = Object.keys(LOGIN_BUDGETS) as Kind[];

export interface SharedBudgetsDeps {
  clock: Clock;
  log: Logger;
  member: string;
  /** Returns the number of members that this one sees, itself included. */
  members(): number;
  /** Sends wrong logins to every member, this one too. Rejects when the database does not answer. */
  tell(told: WrongLogins): Promise<void>;
}

/**
 * Budgets of wrong logins that all members of a cluster share. A member sends each wrong login to all members. Until
 * that comes back, the others may not have received it, so the login counts once for every member. So somebody who
 * tries at all members at once gets no more guesses than at one member (PROTOCOL.md, clause SHA-7).
 */
export class SharedBudgets implements LoginBudgets {
  readonly addresses: SharedFailures;
  readonly users: SharedFailures;
  readonly pairs: SharedFailures;
  readonly #deps: SharedBudgetsDeps;
  #waiting: { kind: Kind; name: string }[] = [];
  #telling: Promise<void> | undefined;
  readonly #closing = new AbortController();

  constructor(deps: SharedBudgetsDeps) {
    this.#deps = deps;
    const shared = (kind: Kind) =>
      new SharedFailures(LOGIN_BUDGETS[kind], deps.members, (name) => this.#tell({ kind, name }));
    [this.addresses, this.users, this.pairs] = [shared('addresses'), shared('users'), shared('pairs')];
  }

  /** Counts the wrong logins that a member has sent. */
  heard({ by, ...names }: WrongLogins): void {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const kind of KINDS) {
      for (const name of names[kind] ?? []) {
        if (by === this.#deps.member) this[kind].echoed(name);
        else this[kind].heard(name, nowMs);
      }
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#telling;
  }

  #tell(waiting: { kind: Kind; name: string }): void {
    if (this.#waiting.length >= WAITING_MAX || this.#closing.signal.aborted) return;
    this.#waiting.push(waiting);
    this.#telling ??= this.#run();
  }

  async #run(): Promise<void> {
    const { clock, log, member, tell } = this.#deps;
    const { signal } = this.#closing;
    while (this.#waiting.length > 0 && !signal.aborted) {
      const names: Record<Kind, string[]> = { addresses: [], users: [], pairs: [] };
      const now = this.#waiting.slice(0, NAMES_MAX);
      for (const { kind, name } of now) names[kind].push(name);
      try {
        await tell({ about: 'wrong-logins', by: member, ...names });
        this.#waiting.splice(0, now.length);
      } catch (error) {
        log.warn('wrong-logins-not-sent', { reason: reasonOf(error) });
        await clock.sleep(AGAIN_MS, signal);
      }
    }
    this.#telling = undefined;
  }
}

/** Counts failures by name at all members. */
class SharedFailures implements BudgetUse {
  readonly #counted: BudgetMeter;
  readonly #members: () => number;
  readonly #tell: (name: string) => void;
  /** Failures at this member that have not come back yet. */
  readonly #away = new Map<string, { count: number; untilMs: number }>();

  constructor(budget: Budget, members: () => number, tell: (name: string) => void) {
    this.#counted = new BudgetMeter(budget);
    this.#members = members;
    this.#tell = tell;
  }

  waitMs(name: string, nowMs: number): number {
    const away = this.#away.get(name);
    if (away !== undefined && away.untilMs <= nowMs) this.#away.delete(name);
    const count = this.#away.get(name)?.count ?? 0;
    return this.#counted.waitMs(name, nowMs, count * (Math.max(1, this.#members()) - 1));
  }

  add(name: string, nowMs: number): void {
    this.#counted.add(name, nowMs);
    const count = (this.#away.get(name)?.count ?? 0) + 1;
    this.#away.delete(name);
    this.#away.set(name, { count, untilMs: nowMs + ECHO_MS_MAX });
    const [oldest] = this.#away.keys();
    if (this.#away.size > WAITING_MAX && oldest !== undefined) this.#away.delete(oldest);
    this.#tell(name);
  }

  /** Records that one of this member's own failures has come back. */
  echoed(name: string): void {
    const away = this.#away.get(name);
    if (away === undefined) return;
    if (away.count > 1) away.count -= 1;
    else this.#away.delete(name);
  }

  /** Counts a failure that another member has counted. */
  heard(name: string, nowMs: number): void {
    this.#counted.add(name, nowMs);
  }
}
