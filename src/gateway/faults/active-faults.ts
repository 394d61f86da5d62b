import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import { seededRandom } from '../../lib/random.ts';
import { type FaultName, type FaultOrder, faultKind, type StandingFault } from '../../protocol/faults.ts';
import { DelayQueue, type Wait } from './delay-queue.ts';

/** What a fault can happen to: a call, a push, a payment, a callback or a message. */
export interface Subject {
  /** The boxes that it concerns. */
  boxes: readonly string[];
  content?: string | undefined;
  /** Whether it is a repetition, as the second attempt of a callback. */
  isRepeated?: boolean;
}

/** One occurrence of a fault. */
export interface Occurrence {
  /** How long it lasts or delays, as ordered, else the fault's default. */
  seconds: number | undefined;
  /** A random number in [0, 1). */
  fraction(): number;
}

/** An occurrence that delays something until `delayed` settles, which must be called. */
export interface DelayedOccurrence extends Occurrence {
  delayed: Wait;
}

/** An active fault, as the code that makes it happen sees it. */
export interface OrderedFault extends Occurrence {
  id: string;
  fault: FaultName;
  /** undefined: of every box. */
  box: string | undefined;
  /** Aborted when the fault ends. */
  over: AbortSignal;
  /** Calls `work` when the fault ends; at once if it has ended. */
  onEnd(work: () => void): void;
  /** Whether it happens now; if so it is counted and logged. */
  happens(boxes?: readonly string[]): boolean;
  listed(): StandingFault;
}

interface ActiveFault {
  id: string;
  order: FaultOrder;
  seconds: number | undefined;
  happened: number;
  timesMax: number;
  /** Delays of it that are not over. */
  delaysOpen: number;
  random: Random;
  over: AbortController;
}

export interface ActiveFaultsDeps {
  clock: Clock;
  random: Random;
  log: Logger;
  /** Called when a fault begins, happens or ends. */
  changed: () => void;
}

/**
 * The active faults of this gateway, in memory only: a restart ends them (PROTOCOL.md, clauses FLT-2 to FLT-4). A fault
 * that has happened as often as ordered stays active until all its delays are over (clause FLT-11).
 */
export class ActiveFaults {
  readonly #deps: ActiveFaultsDeps;
  readonly #standing = new Map<string, ActiveFault>();
  readonly #heldBack: DelayQueue;

  constructor(deps: ActiveFaultsDeps) {
    this.#deps = deps;
    this.#heldBack = new DelayQueue(deps.clock);
  }

  get size(): number {
    return this.#standing.size;
  }

  order(order: FaultOrder): OrderedFault {
    const { clock, random, log, changed } = this.#deps;
    const { timing, seconds: usual } = faultKind(order.fault);
    const lastsSeconds =
      timing === 'late' ? undefined : (order.seconds ?? (order.times === undefined ? usual : undefined));
    const standing: ActiveFault = {
      id: random.uuid(),
      order,
      seconds: order.seconds ?? usual,
      happened: 0,
      timesMax: order.times ?? (lastsSeconds === undefined ? 1 : Number.POSITIVE_INFINITY),
      delaysOpen: 0,
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
      happens: (boxes = []) => {
        if (over.signal.aborted || !this.#happens(standing, boxes)) return false;
        this.#endIfDone(standing);
        return true;
      },
      listed: () => told(standing),
    };
  }

  /** The oldest active fault that is ordered for this and happens now; it is counted. */
  take(fault: FaultName, subject: Subject): Occurrence | undefined {
    const standing = this.#happening(fault, subject);
    if (standing === undefined) return undefined;
    this.#endIfDone(standing);
    return { seconds: standing.seconds, fraction: standing.random.fraction };
  }

  /** As `take`, for a fault that then delays something. */
  delay(fault: FaultName, subject: Subject): DelayedOccurrence | undefined {
    const standing = this.#happening(fault, subject);
    if (standing === undefined) return undefined;
    standing.delaysOpen += 1;
    const held = this.#heldBack.add(standing, () => {
      standing.delaysOpen -= 1;
      this.#endIfDone(standing);
    });
    return { seconds: standing.seconds, fraction: standing.random.fraction, delayed: held };
  }

  /** A delay by a content, without an active fault. */
  delayByContent(): Wait {
    return this.#heldBack.add(undefined, () => undefined);
  }

  list(): StandingFault[] {
    return [...this.#standing.values()].map(told);
  }

  /** Whether such a fault was active. */
  end(id: string): boolean {
    const standing = this.#standing.get(id);
    if (standing === undefined) return false;
    this.#end(standing);
    this.#heldBack.release(standing);
    return true;
  }

  /** Delays by contents end too. */
  endAll(): void {
    for (const standing of [...this.#standing.values()]) this.#end(standing);
    this.#heldBack.releaseAll();
  }

  /** Ends all faults and drops what is delayed: the gateway is stopping. */
  close(): void {
    this.#heldBack.close();
    this.endAll();
  }

  #end(standing: ActiveFault): void {
    const { id, order, happened, over } = standing;
    if (!this.#standing.delete(id)) return;
    over.abort();
    this.#deps.log.info('fault-ended', { fault: order.fault, id, happened });
    this.#deps.changed();
  }

  #endIfDone(standing: ActiveFault): void {
    if (standing.happened >= standing.timesMax && standing.delaysOpen === 0) this.#end(standing);
  }

  #happening(fault: FaultName, { boxes, content }: Subject): ActiveFault | undefined {
    for (const standing of this.#standing.values()) {
      const { order } = standing;
      if (order.fault !== fault) continue;
      if (order.box !== undefined && !boxes.includes(order.box)) continue;
      if (order.content !== undefined && order.content !== content) continue;
      if (this.#happens(standing, boxes)) return standing;
    }
    return undefined;
  }

  #happens(standing: ActiveFault, boxes: readonly string[]): boolean {
    const { id, order, random, timesMax } = standing;
    if (standing.happened >= timesMax || random.fraction() >= (order.chance ?? 1)) return false;
    standing.happened += 1;
    this.#deps.log.warn('fault', { fault: order.fault, id, boxes: boxes.join(' ') });
    this.#deps.changed();
    return true;
  }
}

function told({ id, order, happened }: ActiveFault): StandingFault {
  return { ...order, id, happened };
}
