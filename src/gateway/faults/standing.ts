import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import { seededRandom } from '../../lib/seeded.ts';
import { type FaultName, type FaultOrder, faultKind, type StandingFault } from '../../protocol/faults.ts';

/** What a fault may happen to: a call, a push, a payment, a callback, a message. */
export interface Subject {
  /** The boxes that it concerns. */
  boxes: readonly string[];
  content?: string | undefined;
  /** Whether it is the same again, as the second attempt of a callback. */
  isRepeated?: boolean;
}

/** A fault that happens. */
export interface Happening {
  /** How long it lasts, or how late something is, as ordered or else as the fault has it. */
  seconds: number | undefined;
  /** A number in [0, 1), for what is left to chance in it. */
  fraction(): number;
}

/** A fault that stands, for whoever makes it. */
export interface Ordered extends Happening {
  id: string;
  fault: FaultName;
  /** undefined: of every box. */
  box: string | undefined;
  /** Aborted when it stands no longer. */
  over: AbortSignal;
  /** Calls `work` when it stands no longer, at once if so. */
  onEnd(work: () => void): void;
  /** Whether it happens now: then it is counted and logged. */
  happens(boxes?: readonly string[]): boolean;
  told(): StandingFault;
}

interface Standing {
  id: string;
  order: FaultOrder;
  seconds: number | undefined;
  happened: number;
  timesMax: number;
  random: Random;
  over: AbortController;
}

export interface StandingDeps {
  clock: Clock;
  random: Random;
  log: Logger;
  /** Called when what stands is not what it was. */
  changed: () => void;
}

/** The faults that stand at this gateway, in memory only: a restart ends them (PROTOCOL.md, clauses FLT-2 to FLT-4). */
export class StandingFaults {
  readonly #deps: StandingDeps;
  readonly #standing = new Map<string, Standing>();

  constructor(deps: StandingDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#standing.size;
  }

  order(order: FaultOrder): Ordered {
    const { clock, random, log, changed } = this.#deps;
    const { timing, seconds: usual } = faultKind(order.fault);
    const lastsSeconds =
      timing === 'late' ? undefined : (order.seconds ?? (order.times === undefined ? usual : undefined));
    const standing: Standing = {
      id: random.uuid(),
      order,
      seconds: order.seconds ?? usual,
      happened: 0,
      timesMax: order.times ?? (lastsSeconds === undefined ? 1 : Number.POSITIVE_INFINITY),
      random: seededRandom(order.seed ?? 0),
      over: new AbortController(),
    };
    const { id, over } = standing;
    this.#standing.set(id, standing);
    if (lastsSeconds !== undefined) void clock.sleep(lastsSeconds * 1000, over.signal).then(() => this.end(id));
    log.info('fault-ordered', { fault: order.fault, id, box: order.box, content: order.content });
    changed();
    return {
      id,
      fault: order.fault,
      box: order.box,
      over: over.signal,
      onEnd: (work) => {
        if (over.signal.aborted) work();
        else over.signal.addEventListener('abort', work, { once: true });
      },
      seconds: standing.seconds,
      fraction: standing.random.fraction,
      happens: (boxes = []) => !over.signal.aborted && this.#happens(standing, boxes),
      told: () => told(standing),
    };
  }

  /** The oldest that is ordered for this, and that chance has happen now; it is counted. */
  take(fault: FaultName, { boxes, content }: Subject): Happening | undefined {
    for (const standing of this.#standing.values()) {
      const { order, seconds, random } = standing;
      if (order.fault !== fault) continue;
      if (order.box !== undefined && !boxes.includes(order.box)) continue;
      if (order.content !== undefined && order.content !== content) continue;
      if (this.#happens(standing, boxes)) return { seconds, fraction: random.fraction };
    }
    return undefined;
  }

  list(): StandingFault[] {
    return [...this.#standing.values()].map(told);
  }

  /** Whether such a fault stood. */
  end(id: string): boolean {
    const standing = this.#standing.get(id);
    if (standing === undefined) return false;
    const { order, happened, over } = standing;
    this.#standing.delete(id);
    over.abort();
    this.#deps.log.info('fault-ended', { fault: order.fault, id, happened });
    this.#deps.changed();
    return true;
  }

  endAll(): void {
    for (const id of [...this.#standing.keys()]) this.end(id);
  }

  #happens(standing: Standing, boxes: readonly string[]): boolean {
    const { id, order, random, timesMax } = standing;
    if (random.fraction() >= (order.chance ?? 1)) return false;
    standing.happened += 1;
    this.#deps.log.warn('fault', { fault: order.fault, id, boxes: boxes.join(' ') });
    if (standing.happened >= timesMax) this.end(id);
    else this.#deps.changed();
    return true;
  }
}

function told({ id, order, happened }: Standing): StandingFault {
  return { ...order, id, happened };
}
