import { type Clock, withDeadline } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { ClockState, DatabaseClock } from '../store/engines/database-clock.ts';
import type { Place } from './place.ts';
import { Readiness } from './readiness.ts';

/** How long an answer of the store may take. */
const ANSWER_TIMEOUT_MS = 2000;
/** An answer is reused for this time, so that frequent checks do not load the store. */
const ANSWER_KEPT_MS = 1000;
/** A proxy asks twice a second as long as the gateway runs, so a good answer is reused for longer. */
const GOOD_NEWS_KEPT_MS = 2000;
/** A slow store, as all are on a busy machine, still serves calls. They wait for it for about this time. */
const SLOW_MS_MAX = 5000;
/**
 * A proxy gives up a gateway that takes 500 ms to answer. It gets the newest answer at once, unless that is older than
 * this.
 */
const KNOWN_MS_MAX = GOOD_NEWS_KEPT_MS + SLOW_MS_MAX;

/** A store that can check itself. */
interface CheckedStore {
  /** Does the same work as a payment. Rejects with the reason if that fails. */
  check(): Promise<void>;
}

/** Reports whether the gateway can work. */
export class Health {
  readonly #clock: Clock;
  readonly #store: CheckedStore;
  readonly #time: DatabaseClock;
  readonly #isBrokerThere: () => boolean;
  readonly #place: Pick<Place, 'sharing' | 'problem'>;
  #answer: { atMs: number; problem: Promise<string | undefined> } | undefined;
  /** The newest answer of the store. */
  #known: { atMs: number; problem: string | undefined } | undefined;
  /** The check that is running. There is at most one. */
  #asked: { atMs: number; problem: Promise<string | undefined> } | undefined;
  /** Reports to a proxy whether the gateway accepts calls. */
  readonly readiness: Readiness;

  /** `isBrokerThere` says whether the broker is connected; true without MQTT. */
  constructor(
    clock: Clock,
    store: CheckedStore,
    time: DatabaseClock,
    isBrokerThere: () => boolean,
    place: Pick<Place, 'sharing' | 'problem'>,
  ) {
    this.#clock = clock;
    this.#store = store;
    this.#time = time;
    this.#isBrokerThere = isBrokerThere;
    this.#place = place;
    this.readiness = new Readiness(clock, () => this.#knownProblem());
  }

  /**
   * Compares the clock of this machine with that of its database. Undefined without PostgreSQL. A difference is not a
   * failure: the gateway works.
   */
  get clock(): ClockState | undefined {
    return this.#time.state;
  }

  /** Returns why the gateway cannot work, or `undefined` if it can. Settles within 2 s. */
  async problem(): Promise<string | undefined> {
    return (await this.#ask(ANSWER_KEPT_MS)) ?? this.#brokerProblem();
  }

  async #knownProblem(): Promise<string | undefined> {
    const buried = this.#place.problem();
    if (buried !== undefined) return buried;
    const nowMs = this.#clock.monotonicMs();
    const asked = this.#ask(this.#known?.problem === undefined ? GOOD_NEWS_KEPT_MS : ANSWER_KEPT_MS);
    const known = this.#known;
    if (known === undefined || nowMs - known.atMs > KNOWN_MS_MAX) return (await asked) ?? this.#callProblem();
    const isHanging = this.#asked !== undefined && nowMs - this.#asked.atMs >= SLOW_MS_MAX;
    return (isHanging ? noAnswerIn(SLOW_MS_MAX) : known.problem) ?? this.#callProblem();
  }

  #callProblem(): string | undefined {
    // A gateway that shares its database reaches boxes at others. A proxy would cut all boxes over HTTP otherwise.
    return this.#place.sharing === undefined ? this.#brokerProblem() : undefined;
  }

  #brokerProblem(): string | undefined {
    return this.#isBrokerThere() ? undefined : 'the MQTT broker is not connected';
  }

  /** Returns the last answer of the store, or a new one if the last is older than `keptMs`. */
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
    // A caller that asks while the store hangs waits only until the deadline of the first caller.
    const answer = await withDeadline(clock, this.#asked.atMs + ANSWER_TIMEOUT_MS - nowMs, asked);
    // A store that reports its problem too late for every caller has left it in `#known`.
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
