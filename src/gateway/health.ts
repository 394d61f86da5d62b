import { type Clock, withDeadline } from '../lib/clock.ts';
import { reasonOf } from '../lib/errors.ts';

/** Of one question to the store. */
const ANSWER_TIMEOUT_MS = 2000;
/** An answer is given again for so long: however often it is asked, the store is written once in this time. */
const ANSWER_KEPT_MS = 1000;

export interface HealthDeps {
  clock: Clock;
  store: {
    /** Writes; rejects, and says why, when the store cannot be used. */
    check(): Promise<void>;
  };
  /** Whether the broker is there, if there is one. */
  isBrokerThere: () => boolean;
}

/** Whether the gateway can do its work. */
export class Health {
  readonly #deps: HealthDeps;
  #answer: { atMs: number; problem: Promise<string | undefined> } | undefined;
  /** The store is asked one question at a time, however long it takes. */
  #asked: Promise<string | undefined> | undefined;

  constructor(deps: HealthDeps) {
    this.#deps = deps;
  }

  /** What is wrong; `undefined` when all is well. */
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
