import type { Clock } from '../../lib/clock.ts';
import { macDigits } from '../../protocol/dialect.ts';
import type { KnownBox } from '../common/directory.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { IsNews } from '../store/repositories/payments.ts';
import type { Store } from '../store/store.ts';

/** A payment that is older than this is old news: the box lists it and does not announce it. */
const NEWS_MAX_MS = 300_000;
/** How many boxes the gateway remembers. It forgets the one that came first. */
const SEEN_MAX = 10_000;

type Named = Pick<KnownBox, 'terminalCode' | 'serialNumber' | 'dialect' | 'macAddr'>;

interface Seen {
  name: string;
  /** The calendar time of the very first hello of this box. */
  firstHelloMs: number;
  /** The monotonic time at which this run of the gateway lost the box. */
  lostAtMs: number;
}

/**
 * Decides which payments are news to a box (PROTOCOL.md, clauses MSG-14 and VQD-8). The store holds the first hello of
 * each box for all gateways. A payment before it is old to that box, however new the box is.
 */
export class PaymentNews {
  readonly #clock: Clock;
  readonly #store: Store;
  /** Seen boxes by terminalCode, oldest first. */
  readonly #seen = new Map<string, Seen>();

  constructor({ clock }: World, { store }: Stored) {
    this.#clock = clock;
    this.#store = store;
  }

  /** Records the first hello of this box. Later calls do not change it. */
  async meet(box: Named): Promise<Seen> {
    const name = nameOf(box);
    const known = this.#seen.get(box.terminalCode);
    if (known?.name === name) return known;
    const firstHelloMs = Number(await this.#store.setting(name, () => String(this.#clock.wallMs())));
    const seen = { name, firstHelloMs, lostAtMs: Number.NEGATIVE_INFINITY };
    this.#seen.set(box.terminalCode, seen);
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > SEEN_MAX && oldest !== undefined) this.#seen.delete(oldest);
    return seen;
  }

  /**
   * Begins a session of a box. `isHere` means that an older session has not ended. Returns the rule for its payments.
   */
  async begin(box: Named, isHere: boolean): Promise<IsNews> {
    const { firstHelloMs, lostAtMs } = await this.meet(box);
    const awayMs = isHere ? 0 : this.#clock.monotonicMs() - lostAtMs;
    const sinceMs = this.#clock.wallMs();
    return ({ paid_at_ms: paidAtMs, stored_at_ms: storedAtMs }) => {
      if (storedAtMs < firstHelloMs) return false;
      // Either clock suffices: a calendar that somebody sets must not silence payments of a short absence.
      if (storedAtMs >= sinceMs || awayMs <= NEWS_MAX_MS) return true;
      return this.#clock.wallMs() - paidAtMs <= NEWS_MAX_MS;
    };
  }

  /** Records that the session of a box has ended. */
  lost(terminalCode: string): void {
    const seen = this.#seen.get(terminalCode);
    if (seen !== undefined) seen.lostAtMs = this.#clock.monotonicMs();
  }
}

/**
 * Returns the name under which the store holds the first hello. Another device under the same terminalCode has its own.
 */
function nameOf({ terminalCode, serialNumber, dialect, macAddr = '' }: Named): string {
  return dialect === 'vietqr'
    ? `vietqr-box-${terminalCode}-${macDigits(macAddr)}`
    : `paybox-box-${terminalCode}-${serialNumber}`;
}
