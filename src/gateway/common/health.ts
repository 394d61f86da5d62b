import { type Clock, withDeadline } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { ClockState, DatabaseClock } from '../store/engines/database-clock.ts';
import { Readiness } from './readiness.ts';

/** Longest time for an answer of the store. */
const ANSWER_TIMEOUT_MS = 2000;
/** An answer is reused for this time, so that frequent checks do not load the store. */
const ANSWER_KEPT_MS = 1000;
/** A proxy asks twice a second for as long as the gateway runs, so a good answer of the store is reused for longer. */
const GOOD_NEWS_KEPT_MS = 2000;
/** A store that is only slow, as all are on a busy machine, still takes calls. Those wait for it for about as long. */
const SLOW_MS_MAX = 5000;
/** A proxy gives up a gateway that takes 500 ms to answer, so it gets the newest answer at once, unless that is older than this. */
const KNOWN_MS_MAX = GOOD_NEWS_KEPT_MS + SLOW_MS_MAX;

/** A store that can be asked whether it works. */
interface CheckedStore {
  /** Does what a payment does. Rejects with the reason when that fails. */
  check(): Promise<void>;
}

/** Whether the gateway can do its work. */
export class Health {
  readonly #clock: Clock;
  readonly #store: CheckedStore;
  readonly #time: DatabaseClock;
  readonly #isBrokerThere: () => boolean;
  #answer: { atMs: number; problem: Promise<string | undefined> } | undefined;
  /** The newest answer of the store. */
  #known: { atMs: number; problem: string | undefined } | undefined;
  /** The check that is running: at most one at a time. */
  #asked: { atMs: number; problem: Promise<string | undefined> } | undefined;
  /** Tells a proxy whether the gateway takes calls. */
  readonly readiness: Readiness;

  /** `isBrokerThere` says whether the broker is connected; true without MQTT. */
  constructor(clock: Clock, store: CheckedStore, time: DatabaseClock, isBrokerThere: () => boolean) {
    this.#clock = clock;
    this.#store = store;
    this.#time = time;
    this.#isBrokerThere = isBrokerThere;
    this.readiness = new Readiness(clock, () => this.#knownProblem());
  }

  /** How the clock of this machine stands to that of its database; undefined without PostgreSQL. No failure: it works. */
  get clock(): ClockState | undefined {
    return this.#time.state;
  }

  /** Returns why the gateway cannot work; `undefined` if it can. Settles within 2 s. */
  async problem(): Promise<string | undefined> {
    return (await this.#ask(ANSWER_KEPT_MS)) ?? this.#brokerProblem();
  }

  async #knownProblem(): Promise<string | undefined> {
    const nowMs = this.#clock.monotonicMs();
    const asked = this.#ask(this.#known?.problem === undefined ? GOOD_NEWS_KEPT_MS : ANSWER_KEPT_MS);
    const known = this.#known;
    if (known === undefined || nowMs - known.atMs > KNOWN_MS_MAX) return (await asked) ?? this.#brokerProblem();
    const isHanging = this.#asked !== undefined && nowMs - this.#asked.atMs >= SLOW_MS_MAX;
    return (isHanging ? noAnswerIn(SLOW_MS_MAX) : known.problem) ?? this.#brokerProblem();
  }

  #brokerProblem(): string | undefined {
    return this.#isBrokerThere() ? undefined : 'the MQTT broker is not connected';
  }

  /** Returns the store's answer: the last one, unless it is older than `keptMs`. */
  #ask(keptMs: number): Promise<string | undefined> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#answer === undefined || nowMs >= this.#answer.atMs + keptMs) {
      this.#answer = { atMs: nowMs, problem: this.#find() };
    }
    return this.#answer.problem;
  }

  async #find(): Promise<string | undefined> {
    const clock = this.#clock;
    const nowMs = clock.monotonicMs();
    this.#asked ??= { atMs: nowMs, problem: this.#askStore() };
    const asked = this.#asked.problem.then((problem) => ({ problem }));
    // Whoever asks while the store hangs waits only until the deadline of the first one.
    const answer = await withDeadline(clock, this.#asked.atMs + ANSWER_TIMEOUT_MS - nowMs, asked);
    // A store that takes longer to say what is wrong than anybody waits has said it the last time.
    return answer === undefined ? (this.#known?.problem ?? noAnswerIn(ANSWER_TIMEOUT_MS)) : answer.problem;
  }

  async #askStore(): Promise<string | undefined> {
    const problem = await this.#store.check().then(() => undefined, reasonOf);
    this.#known = { atMs: this.#clock.monotonicMs(), problem };
    this.#asked = undefined;
    return problem;
  }
}

function noAnswerIn(ms: number): string {
  return `the store does not answer within ${ms} ms`;
}
