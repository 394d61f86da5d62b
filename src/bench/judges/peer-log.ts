import { Mismatch } from './check.ts';

/** Something that a judged target did against a clause. */
export interface Violation {
  clause: string;
  what: string;
}

/** Waits with a deadline: a check run, or whatever waits as one. */
interface Waiting {
  isSoon(withinMs: number, isSo: () => boolean): Promise<boolean>;
}

const VIOLATIONS_MAX = 200;
/** A reason names this many violations. */
const NAMED_MAX = 5;

/**
 * Records what arrived at a peer that the bench plays for a judged target, and which clauses the target broke there.
 * Reports the traffic to the check that runs.
 */
export class PeerLog<Arrival = never> {
  /** In the order of arrival. */
  readonly arrived: Arrival[] = [];
  readonly violations: Violation[] = [];
  readonly #arrivedMax: number;
  #earlier = 0;
  /** Called with each message of both directions, for the evidence of a check. */
  onTraffic: ((title: string, detail: unknown) => void) | undefined;

  constructor(arrivedMax = 0) {
    this.#arrivedMax = arrivedMax;
  }

  /** Adds what arrived. Returns false when there is no room for it. */
  add(arrival: Arrival): boolean {
    if (this.arrived.length >= this.#arrivedMax) return false;
    this.arrived.push(arrival);
    return true;
  }

  /** Leaves out of `recent` all that has arrived until now. */
  ignoreEarlier(): void {
    this.#earlier = this.arrived.length;
  }

  /** Returns the arrivals since `ignoreEarlier`. */
  get recent(): Arrival[] {
    return this.arrived.slice(this.#earlier);
  }

  /** Waits for a matching recent arrival. Returns undefined when none came in time. */
  async find<Found extends Arrival>(
    waiting: Waiting,
    withinMs: number,
    isIt: (arrival: Arrival) => arrival is Found,
  ): Promise<Found | undefined> {
    const find = () => this.recent.find(isIt);
    await waiting.isSoon(withinMs, () => find() !== undefined);
    return find();
  }

  traffic(title: string, detail?: unknown): void {
    this.onTraffic?.(title, detail);
  }

  /** Records a violation, each only once. */
  violate(clause: string, what: string): void {
    this.traffic(`against ${clause}: ${what}`);
    const isKnown = this.violations.some((it) => it.clause === clause && it.what === what);
    if (!isKnown && this.violations.length < VIOLATIONS_MAX) this.violations.push({ clause, what });
  }

  /** Throws Mismatch when the target has broken this clause. */
  expectNoViolation(clause: string): void {
    const broken = this.violations.filter((it) => it.clause === clause).map(({ what }) => what);
    if (broken.length > 0) throw new Mismatch(broken.slice(0, NAMED_MAX).join('; '));
  }

  /** Returns the last violation as the end of a sentence; empty if there is none. */
  get lastViolation(): string {
    const last = this.violations.at(-1);
    return last === undefined ? '' : `; against ${last.clause}: ${last.what}`;
  }
}
