import type { Clock } from '../lib/clock.ts';
import { networkOf } from '../lib/network.ts';
import { ENROLMENT_LIFETIME_MS, type EnrolmentRequest, type EnrolmentState } from '../protocol/enrolment.ts';

/** Requests under the name of one box: its own, and those of whoever else would like to be it. */
const REQUESTS_PER_BOX_MAX = 4_096;
/** Of all boxes; one with few requests may have them in any case. */
const REQUESTS_MAX = 32_768;
const FEW_REQUESTS = 8;
/**
 * One address, or one /64 of IPv6, may take this part of the room that is still free: the fuller it is the less, so that
 * a few addresses keep no box out that asks from another.
 */
const NETWORK_SHARE = 1 / 64;
/** A request is remembered beyond its end: whoever proves the same code later is told from it by nobody. */
export const REMEMBERED_MS = 2 * ENROLMENT_LIFETIME_MS;

export interface PendingRequest {
  id: string;
  request: EnrolmentRequest;
  /** Where it came from. */
  address: string;
  /** Calendar time. */
  sinceMs: number;
  /** Until when it can be accepted, or an acceptance be asked for; monotonic time. */
  untilMs: number;
  state: EnrolmentState;
}

/** What is known of one box while it enrols. */
interface BoxRequests {
  /** The oldest first, with its network, and with when each is forgotten; monotonic time. */
  remembered: { pending: PendingRequest; network: string; untilMs: number }[];
  wrongCodes: number;
}

/**
 * Who asks to be enrolled, by box and by id (PROTOCOL.md, clause ENR-7). None is forgotten before its
 * time to make room for another one: what is one too many is not taken.
 */
export class EnrolmentRequests {
  readonly #clock: Clock;
  readonly #boxes = new Map<string, BoxRequests>();
  readonly #byId = new Map<string, PendingRequest>();
  /** How many there are of each network, of all boxes. */
  readonly #byNetwork = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How long until one more from this address could be taken, in milliseconds; 0 when it would be now. */
  waitMs(terminalCode: string, address: string): number {
    const { remembered } = this.of(terminalCode);
    const network = networkOf(address);
    const own = remembered.filter((it) => it.network === network);
    const isOne = own.length < shareOf(REQUESTS_PER_BOX_MAX - remembered.length);
    if (isOne && (remembered.length < FEW_REQUESTS || this.#hasRoom(network))) return 0;
    const [oldest] = own.length > 0 ? own : remembered;
    return oldest === undefined ? 0 : oldest.untilMs - this.#clock.monotonicMs();
  }

  /** Whether not even an address that has none yet may have one more of this box. */
  isFull(terminalCode: string): boolean {
    const { remembered } = this.of(terminalCode);
    if (remembered.length >= REQUESTS_PER_BOX_MAX) return true;
    return remembered.length >= FEW_REQUESTS && !this.#hasRoom('');
  }

  /** Takes one more, for which there is room. */
  add(pending: PendingRequest): void {
    const network = networkOf(pending.address);
    const untilMs = this.#clock.monotonicMs() + REMEMBERED_MS;
    this.#byId.set(pending.id, pending);
    this.#byNetwork.set(network, (this.#byNetwork.get(network) ?? 0) + 1);
    this.of(pending.request.terminalCode).remembered.push({ pending, network, untilMs });
  }

  /** `undefined` when it is over, or of an earlier run. */
  byId(id: string): PendingRequest | undefined {
    const pending = this.#byId.get(id);
    return pending === undefined || this.#isOver(pending) ? undefined : pending;
  }

  /** All that are remembered, those that are over too, the oldest first. */
  all(terminalCode: string): PendingRequest[] {
    return this.of(terminalCode).remembered.map(({ pending }) => pending);
  }

  /** Those that are not over yet, the oldest first. */
  live(terminalCode: string): PendingRequest[] {
    return this.all(terminalCode).filter((it) => !this.#isOver(it));
  }

  /** Of boxes of the configuration only, so that there are no more of them than of those. */
  of(terminalCode: string): BoxRequests {
    const nowMs = this.#clock.monotonicMs();
    const box = this.#boxes.get(terminalCode) ?? { remembered: [], wrongCodes: 0 };
    this.#boxes.set(terminalCode, box);
    const forgotten = box.remembered.filter(({ untilMs }) => untilMs <= nowMs);
    for (const { pending, network } of forgotten) this.#forget(pending.id, network);
    if (forgotten.length > 0) box.remembered = box.remembered.filter(({ untilMs }) => untilMs > nowMs);
    if (box.remembered.every(({ pending }) => this.#isOver(pending))) box.wrongCodes = 0;
    return box;
  }

  #forget(id: string, network: string): void {
    this.#byId.delete(id);
    const left = (this.#byNetwork.get(network) ?? 1) - 1;
    if (left === 0) this.#byNetwork.delete(network);
    else this.#byNetwork.set(network, left);
  }

  /** For one more of this network, whichever box it is of. */
  #hasRoom(network: string): boolean {
    const fits = () => (this.#byNetwork.get(network) ?? 0) < shareOf(REQUESTS_MAX - this.#byId.size);
    if (fits()) return true;
    for (const terminalCode of this.#boxes.keys()) this.of(terminalCode);
    return fits();
  }

  #isOver({ untilMs }: PendingRequest): boolean {
    return untilMs <= this.#clock.monotonicMs();
  }
}

/** How many one network may have while there is room for so many more; one at least while there is any. */
function shareOf(free: number): number {
  return Math.ceil(Math.max(0, free) * NETWORK_SHARE);
}

export function isSameRequest(a: EnrolmentRequest, b: EnrolmentRequest): boolean {
  return a.publicKey === b.publicKey && a.proof === b.proof;
}
