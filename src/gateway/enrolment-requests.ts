import type { Clock } from '../lib/clock.ts';
import type { EnrolmentRequest, EnrolmentState } from '../protocol/enrolment.ts';

/** Requests under the name of one box: its own, and those of whoever else would like to be it. The newest win. */
const REQUESTS_PER_BOX_MAX = 8;

export interface Pending {
  id: string;
  request: EnrolmentRequest;
  /** Where it came from. */
  address: string;
  /** Calendar time. */
  sinceMs: number;
  /** Monotonic time. */
  untilMs: number;
  state: EnrolmentState;
}

/** What is known of one box while it enrols. */
export interface Candidates {
  /** The oldest first. */
  requests: Pending[];
  /** Kept apart, so that nobody crowds it out before the box has heard of it. */
  accepted: Pending | undefined;
  wrongCodes: number;
  /** Codes that look for whoever knows them. */
  awaited: Set<(pending: Pending) => void>;
}

/** Who asks to be enrolled, by box and by id, each for its time (PROTOCOL.md, clause ENR-7). In memory only. */
export class EnrolmentRequests {
  readonly #clock: Clock;
  readonly #boxes = new Map<string, Candidates>();
  readonly #byId = new Map<string, Pending>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Adds the newest; the one that it crowds out, if any. */
  add(pending: Pending): Pending | undefined {
    const box = this.of(pending.request.terminalCode);
    this.#byId.set(pending.id, pending);
    box.requests = [...box.requests, pending];
    const crowdedOut = box.requests.length > REQUESTS_PER_BOX_MAX ? box.requests.shift() : undefined;
    this.#drop(crowdedOut);
    return crowdedOut;
  }

  /** Whether one more would crowd one out. */
  isCrowded(terminalCode: string): boolean {
    return this.of(terminalCode).requests.length >= REQUESTS_PER_BOX_MAX;
  }

  /** `undefined` when it is over, crowded out, or of an earlier run. */
  byId(id: string): Pending | undefined {
    const pending = this.#byId.get(id);
    return pending === undefined || this.#isOver(pending) ? undefined : pending;
  }

  /** Keeps this one apart from the others, also when it was crowded out since; all that is known of its box. */
  keepAccepted(pending: Pending): Candidates {
    const box = this.of(pending.request.terminalCode);
    this.#drop(box.accepted);
    box.accepted = pending;
    this.#byId.set(pending.id, pending);
    box.requests = box.requests.filter((it) => it !== pending);
    return box;
  }

  /** What is not over yet; the rest is forgotten. */
  *live(terminalCode: string): Iterable<Pending> {
    const box = this.#boxes.get(terminalCode);
    if (box === undefined) return;
    for (const pending of box.requests) if (this.#isOver(pending)) this.#drop(pending);
    box.requests = box.requests.filter((it) => !this.#isOver(it));
    if (box.accepted !== undefined && this.#isOver(box.accepted)) {
      this.#drop(box.accepted);
      box.accepted = undefined;
    }
    if (box.requests.length === 0) box.wrongCodes = 0;
    yield* box.requests;
    if (box.accepted !== undefined) yield box.accepted;
  }

  /** Of boxes of the configuration only, so that there are no more of them than of those. */
  of(terminalCode: string): Candidates {
    const known = this.#boxes.get(terminalCode);
    if (known !== undefined) return known;
    const fresh: Candidates = { requests: [], accepted: undefined, wrongCodes: 0, awaited: new Set() };
    this.#boxes.set(terminalCode, fresh);
    return fresh;
  }

  #isOver({ untilMs }: Pending): boolean {
    return untilMs <= this.#clock.monotonicMs();
  }

  #drop(pending: Pending | undefined): void {
    if (pending !== undefined) this.#byId.delete(pending.id);
  }
}

export function isSameRequest(a: EnrolmentRequest, b: EnrolmentRequest): boolean {
  return a.publicKey === b.publicKey && a.proof === b.proof;
}
