import type { Clock } from '../../lib/clock.ts';
import { networkOf } from '../../lib/connections.ts';
import { ENROLMENT_LIFETIME_MS, type EnrolmentRequest, type EnrolmentState } from '../../protocol/enrolment.ts';

/** At most this many requests are stored for one box: its own, and those of others who claim to be it. */
const REQUESTS_PER_BOX_MAX = 4_096;
/** At most this many requests are stored for all boxes. A box with few requests may add one even beyond this limit. */
const REQUESTS_MAX = 32_768;
const FEW_REQUESTS = 8;
/**
 * One address, or one /64 of IPv6, may use this share of the free room. The share shrinks as the room fills, so that a
 * few addresses cannot block a box at another address.
 */
const NETWORK_SHARE = 1 / 64;
/** An expired request is stored for some time. Otherwise nobody could tell it from a later one with the same code. */
export const REMEMBERED_MS = 2 * ENROLMENT_LIFETIME_MS;

export interface PendingRequest {
  id: string;
  request: EnrolmentRequest;
  address: string;
  /** Calendar time. */
  sinceMs: number;
  /** Monotonic time at which it expires. */
  untilMs: number;
  state: EnrolmentState;
}

/** The requests that name one box. */
interface BoxRequests {
  /** Oldest first. Each is deleted at `untilMs` (monotonic time). */
  remembered: { pending: PendingRequest; network: string; untilMs: number }[];
  wrongCodes: number;
}

/**
 * Holds the requests to enrol, by box and by id (PROTOCOL.md, clause ENR-7). No request is deleted early to make room:
 * without room, a new one is refused.
 */
export class EnrolmentRequests {
  readonly #clock: Clock;
  readonly #boxes = new Map<string, BoxRequests>();
  readonly #byId = new Map<string, PendingRequest>();
  /** The number of requests from each network, for all boxes. */
  readonly #byNetwork = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the time until there is room for another request from this address. 0 if there is room now. */
  waitMs(terminalCode: string, address: string): number {
    const { remembered } = this.of(terminalCode);
    const network = networkOf(address);
    const own = remembered.filter((it) => it.network === network);
    const isOne = own.length < shareOf(REQUESTS_PER_BOX_MAX - remembered.length);
    if (isOne && (remembered.length < FEW_REQUESTS || this.#hasRoom(network))) return 0;
    const [oldest] = own.length > 0 ? own : remembered;
    return oldest === undefined ? 0 : oldest.untilMs - this.#clock.monotonicMs();
  }

  /** Returns whether a request for this box would be refused even from a new address. */
  isFull(terminalCode: string): boolean {
    const { remembered } = this.of(terminalCode);
    if (remembered.length >= REQUESTS_PER_BOX_MAX) return true;
    return remembered.length >= FEW_REQUESTS && !this.#hasRoom('');
  }

  /** Adds a request. The caller must have checked that there is room. */
  add(pending: PendingRequest): void {
    const network = networkOf(pending.address);
    const untilMs = this.#clock.monotonicMs() + REMEMBERED_MS;
    this.#byId.set(pending.id, pending);
    this.#byNetwork.set(network, (this.#byNetwork.get(network) ?? 0) + 1);
    this.of(pending.request.terminalCode).remembered.push({ pending, network, untilMs });
  }

  /** Returns the request with this id. Undefined if it has expired or is from an earlier run. */
  byId(id: string): PendingRequest | undefined {
    const pending = this.#byId.get(id);
    return pending === undefined || this.#isExpired(pending) ? undefined : pending;
  }

  /** Returns the boxes that have asked, in no order. */
  boxes(): string[] {
    return [...this.#boxes.keys()];
  }

  /** Returns every stored request of a box, oldest first, with the expired ones. */
  all(terminalCode: string): PendingRequest[] {
    return this.of(terminalCode).remembered.map(({ pending }) => pending);
  }

  /** Returns the requests of a box that have not expired, oldest first. */
  live(terminalCode: string): PendingRequest[] {
    return this.all(terminalCode).filter((it) => !this.#isExpired(it));
  }

  /** Returns the requests of a box. Must be called only for configured boxes, so that the map stays bounded. */
  of(terminalCode: string): BoxRequests {
    const nowMs = this.#clock.monotonicMs();
    const box = this.#boxes.get(terminalCode) ?? { remembered: [], wrongCodes: 0 };
    this.#boxes.set(terminalCode, box);
    const forgotten = box.remembered.filter(({ untilMs }) => untilMs <= nowMs);
    for (const { pending, network } of forgotten) this.#forget(pending.id, network);
    if (forgotten.length > 0) box.remembered = box.remembered.filter(({ untilMs }) => untilMs > nowMs);
    if (box.remembered.every(({ pending }) => this.#isExpired(pending))) box.wrongCodes = 0;
    return box;
  }

  #forget(id: string, network: string): void {
    this.#byId.delete(id);
    const left = (this.#byNetwork.get(network) ?? 1) - 1;
    if (left === 0) this.#byNetwork.delete(network);
    else this.#byNetwork.set(network, left);
  }

  /** Returns whether this network may send another request, for any box. */
  #hasRoom(network: string): boolean {
    const fits = () => (this.#byNetwork.get(network) ?? 0) < shareOf(REQUESTS_MAX - this.#byId.size);
    if (fits()) return true;
    for (const terminalCode of this.#boxes.keys()) this.of(terminalCode);
    return fits();
  }

  #isExpired({ untilMs }: PendingRequest): boolean {
    return untilMs <= this.#clock.monotonicMs();
  }
}

/** Returns how many requests one network may have when `free` more fit. At least one while any fits. */
function shareOf(free: number): number {
  return Math.ceil(Math.max(0, free) * NETWORK_SHARE);
}

export function isSameRequest(a: EnrolmentRequest, b: EnrolmentRequest): boolean {
  return a.publicKey === b.publicKey && a.proof === b.proof;
}
