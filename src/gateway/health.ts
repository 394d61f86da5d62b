import { type Clock, withDeadline } from '../lib/clock.ts';
import { reasonOf } from '../lib/errors.ts';
import type { ClockState, DatabaseClock } from '../store/engines/database-clock.ts';

/** Longest time for an answer of the store. */
const ANSWER_TIMEOUT_MS = 2000;
/** An answer is reused for this time, so that frequent checks do not load the store. */
const ANSWER_KEPT_MS = 1000;

export interface HealthDeps {
  clock: Clock;
  store: {
    /** Writes to the store. Rejects with the reason when that fails. */
    check(): Promise<void>;
  };
  time: Pick<DatabaseClock, 'state'>;
  /** Whether the broker is connected; true without MQTT. */
  isBrokerThere: () => boolean;
}

/** Whether the gateway can do its work. */
export class Health {
  readonly #deps: HealthDeps;
  #answer: { atMs: number; problem: Promise<string | undefined> } | undefined;
  /** The check that is running: at most one at a time. */
  #asked: Promise<string | undefined> | undefined;

  constructor(deps: HealthDeps) {
    this.#deps = deps;
  }

  /** How the clock of this machine stands to that of its database; undefined without PostgreSQL. No failure: it works. */
  get clock(): ClockState | undefined {
    return this.#deps.time.state;
  }

  /** Why the gateway cannot work; `undefined` if it can. */
  problem(): Promise<string | undefined> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#answer === undefined || nowMs >= this.#answer.atMs + ANSWER_KEPT_MS) {
      this.#answer = { atMs: nowMs, problem: this.#find() };
    }
    return this.#answer.problem;
  }

  async #find(): Promise<string | undefined> {
    const { clock, isBrokerThere } = this.#deps;
    this.#asked ??= this.#askStore();
    const asked = this.#asked.then((problem) => ({ problem }));
    const answer = await withDeadline(clock, ANSWER_TIMEOUT_MS, asked);
    if (answer === undefined) return `the store does not answer within ${ANSWER_TIMEOUT_MS} ms`;
    return answer.problem ?? (isBrokerThere() ? undefined : 'the MQTT broker is not connected');
  }

  async #askStore(): Promise<string | undefined> {
    try {
      await this.#deps.store.check();
      return undefined;
    } catch (error) {
      return reasonOf(error);
    } finally {
      this.#asked = undefined;
    }
  }
}
