import type { Clock } from '../../../lib/clock.ts';
import { PayboxError } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Random } from '../../../lib/random.ts';
import { seededRandom } from '../../../lib/random.ts';
import {
  ACTIVE_FAULTS_MAX,
  type ActiveFaultView,
  FAULT_NAMES,
  type FaultName,
  type FaultOrder,
  faultKind,
} from '../../../protocol/faults.ts';

/** Faults that happen inside a box. */
export const BOX_FAULTS: readonly FaultName[] = FAULT_NAMES.filter((name) => faultKind(name).place === 'box');

/**
 * An order for a fault of this box. It ends after `seconds`, or when it has happened `times`; with neither, after the
 * default time of its kind.
 */
export type BoxFaultOrder = Omit<FaultOrder, 'box' | 'content'>;

/**
 * The direction of traffic. Each has its own random numbers, so that traffic in one does not change faults in the
 * other.
 */
export type Stream = 'away' | 'back';

interface ActiveFault {
  order: BoxFaultOrder;
  id: string;
  happened: number;
  chances: Record<Stream, Random>;
  /** True if chance has switched on a fault that is a state; undefined until the box first checks. */
  isThere?: boolean;
  over: AbortController;
}

/** Holds the active faults of this box, ordered by a bench. They are in memory only, so a restarted box has none. */
export class BoxFaults {
  readonly #deps: { clock: Clock; random: Random; log: Logger };
  readonly #active = new Map<string, ActiveFault>();
  readonly #listeners = new Set<(fault: FaultName) => void>();

  constructor(deps: { clock: Clock; random: Random; log: Logger }) {
    this.#deps = deps;
  }

  /** Adds a fault. Throws a PayboxError when too many faults are active. */
  order(given: BoxFaultOrder): ActiveFaultView {
    const { clock, random, log } = this.#deps;
    if (this.#active.size >= ACTIVE_FAULTS_MAX) {
      throw new PayboxError('FAULTS_MAX', `${ACTIVE_FAULTS_MAX} faults are active already`, {
        severity: 'retryable',
      });
    }
    const { fault, seed = 0, times } = given;
    const seconds = given.seconds ?? (times === undefined ? faultKind(fault).seconds : undefined);
    const id = random.uuid();
    const chances = { away: seededRandom(2 * seed), back: seededRandom(2 * seed + 1) };
    const active: ActiveFault = { order: given, id, happened: 0, chances, over: new AbortController() };
    this.#active.set(id, active);
    log.warn('fault-ordered', { ...active.order, id });
    if (seconds !== undefined) void clock.sleep(seconds * 1_000, active.over.signal).then(() => this.end(id));
    for (const listener of this.#listeners) listener(fault);
    return listing(active);
  }

  listed(): ActiveFaultView[] {
    return [...this.#active.values()].map(listing);
  }

  /** Ends a fault. Returns whether it was active. */
  end(id: string): boolean {
    const active = this.#active.get(id);
    if (active === undefined) return false;
    this.#active.delete(id);
    active.over.abort();
    this.#deps.log.warn('fault-ended', { fault: active.order.fault, id, happened: active.happened });
    return true;
  }

  endAll(): void {
    for (const id of [...this.#active.keys()]) this.end(id);
  }

  /** Calls `listener` after each order. The returned function removes it. */
  onOrder(listener: (fault: FaultName) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Decides whether the fault happens now, and counts it. Returns the random source for the fault's details, or
   * undefined when it does not happen. `share` scales its chance.
   */
  happens(fault: FaultName, { share = 1, stream = 'away' }: { share?: number; stream?: Stream } = {}) {
    for (const active of this.#active.values()) {
      const { chance = 1, times = Number.POSITIVE_INFINITY } = active.order;
      const random = active.chances[stream];
      if (active.order.fault !== fault || random.fraction() >= share * chance) continue;
      active.happened += 1;
      if (active.happened >= times) this.end(active.id);
      return random;
    }
    return undefined;
  }

  /** Returns whether a fault that is a state is active. Chance decides once. */
  isThere(fault: FaultName): boolean {
    return [...this.#active.values()].some((active) => {
      const { chance = 1 } = active.order;
      if (active.order.fault !== fault) return false;
      if (active.isThere === undefined) {
        active.isThere = active.chances.away.fraction() < chance;
        active.happened = active.isThere ? 1 : 0;
      }
      return active.isThere;
    });
  }
}

function listing({ order, id, happened }: ActiveFault): ActiveFaultView {
  return { ...order, id, happened };
}
