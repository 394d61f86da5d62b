import { type Budget, BudgetMeter, type BudgetUse } from '../../lib/budget.ts';
import type { Clock } from '../../lib/clock.ts';
import { LOGIN_BUDGETS, type LoginBudgets } from '../common/login-budgets.ts';
import type { WrongLogin } from './said.ts';

/** At most this many names with failures that have not come back are remembered. */
const AWAY_MAX = 10_000;
/** A failure that has not come back by then was lost on its way. From then on it counts once. */
const ECHO_MS_MAX = 10_000;

type Kind = keyof LoginBudgets;

export interface SharedBudgetsDeps {
  clock: Clock;
  run: string;
  /** Returns the number of gateways that live, this one included. */
  gateways(): number;
  /** Sends a wrong login to every gateway, this one too. It may be lost. */
  tell(told: WrongLogin): void;
}

/**
 * Budgets of wrong logins that all gateways of a database share. A gateway sends each wrong login to all of them. Until
 * that comes back, the others may not have received it, so the login counts once for every gateway. So somebody who
 * tries at all gateways at once gets no more guesses than at one (PROTOCOL.md, clause SHA-7).
 */
export class SharedBudgets implements LoginBudgets {
  readonly addresses: SharedFailures;
  readonly users: SharedFailures;
  readonly pairs: SharedFailures;
  readonly #deps: SharedBudgetsDeps;
  #told = 0;

  constructor(deps: SharedBudgetsDeps) {
    this.#deps = deps;
    const shared = (kind: Kind) =>
      new SharedFailures(LOGIN_BUDGETS[kind], deps.gateways, (name) => this.#tell(kind, name));
    [this.addresses, this.users, this.pairs] = [shared('addresses'), shared('users'), shared('pairs')];
  }

  /** Counts a wrong login that a gateway has sent. */
  heard({ by, kind, name }: WrongLogin): void {
    if (by === this.#deps.run) this[kind].echoed(name);
    else this[kind].heard(name, this.#deps.clock.monotonicMs());
  }

  #tell(kind: Kind, name: string): void {
    this.#told += 1;
    // PostgreSQL delivers equal notifications of one transaction once. The number makes each its own.
    this.#deps.tell({ about: 'wrong-login', by: this.#deps.run, kind, name, number: this.#told });
  }
}

/** Counts failures by name at all gateways. */
class SharedFailures implements BudgetUse {
  readonly #counted: BudgetMeter;
  readonly #gateways: () => number;
  readonly #tell: (name: string) => void;
  /** Failures at this gateway that have not come back yet. */
  readonly #away = new Map<string, { count: number; untilMs: number }>();

  constructor(budget: Budget, gateways: () => number, tell: (name: string) => void) {
    this.#counted = new BudgetMeter(budget);
    this.#gateways = gateways;
    this.#tell = tell;
  }

  waitMs(name: string, nowMs: number): number {
    const away = this.#away.get(name);
    if (away !== undefined && away.untilMs <= nowMs) this.#away.delete(name);
    const count = this.#away.get(name)?.count ?? 0;
    return this.#counted.waitMs(name, nowMs, count * (Math.max(1, this.#gateways()) - 1));
  }

  add(name: string, nowMs: number): void {
    this.#counted.add(name, nowMs);
    const count = (this.#away.get(name)?.count ?? 0) + 1;
    this.#away.delete(name);
    this.#away.set(name, { count, untilMs: nowMs + ECHO_MS_MAX });
    const [oldest] = this.#away.keys();
    if (this.#away.size > AWAY_MAX && oldest !== undefined) this.#away.delete(oldest);
    this.#tell(name);
  }

  /** Records that one of this gateway's own failures has come back. */
  echoed(name: string): void {
    const away = this.#away.get(name);
    if (away === undefined) return;
    if (away.count > 1) away.count -= 1;
    else this.#away.delete(name);
  }

  /** Counts a failure that another gateway has counted. */
  heard(name: string, nowMs: number): void {
    this.#counted.add(name, nowMs);
  }
}
