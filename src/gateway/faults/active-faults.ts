import type { Random } from '../../lib/random.ts';
import { seededRandom } from '../../lib/random.ts';
import { type ActiveFaultView, type FaultName, type FaultOrder, faultKind } from '../../protocol/faults.ts';
import type { World } from '../common/world.ts';
import { DelayQueue, type Wait } from './delay-queue.ts';
import { asNews, type FaultNews } from './fault-news.ts';

/** Several occurrences of a lasting fault within this time are sent to the other gateways together. */
const TELL_TOGETHER_MS = 250;

/** A call, push, payment, callback or message that a fault can happen to. */
export interface Subject {
  /** The boxes that it concerns. */
  boxes: readonly string[];
  content?: string | undefined;
  /** True for a repetition, such as the second attempt of a callback. */
  isRepeated?: boolean;
}

/** One occurrence of a fault. */
export interface Occurrence {
  /** The id of the active fault. Null if a content has ordered it. */
  id: string | null;
  /** How long the fault lasts or delays: as ordered, or the default of the fault. */
  seconds: number | undefined;
  /** A random number in [0, 1). */
  fraction(): number;
}

/** An occurrence that delays something. The caller must call `delayed`, and wait for it. */
export interface DelayedOccurrence extends Occurrence {
  delayed: Wait;
}

/** An active fault, for the code that implements it. */
export interface OrderedFault extends Occurrence {
  id: string;
  fault: FaultName;
  /** Undefined if it concerns all boxes. */
  box: string | undefined;
  /** Aborted when the fault ends. */
  over: AbortSignal;
  /** Calls `work` when the fault ends. If it has ended, calls it at once. */
  onEnd(work: () => void): void;
  /** Returns whether the fault happens now. If so, it is counted and logged. */
  happens(boxes?: readonly string[]): boolean;
  listed(): ActiveFaultView;
}

interface ActiveFault {
  id: string;
  order: FaultOrder;
  seconds: number | undefined;
  happened: number;
  timesMax: number;
  /** The number of delays by this fault that have not ended here, and by run at the other gateways. */
  delaysOpen: number;
  delaysElsewhere: Map<string, number>;
  random: Random;
  over: AbortController;
  /** Occurrences here that the other gateways do not know yet. */
  unsent: number;
}

type OccurrenceNews = Extract<FaultNews, { about: 'occurrence' }>;

/**
 * Holds the active faults of this gateway, in memory only: a restart ends them (PROTOCOL.md, clauses FLT-2 to FLT-4). A
 * fault that has happened as often as ordered stays active until all its delays have ended (clause FLT-11).
 */
export class ActiveFaults {
  readonly #world: World;
  readonly #active = new Map<string, ActiveFault>();
  readonly #delays: DelayQueue;

  constructor(world: World) {
    this.#world = world;
    this.#delays = new DelayQueue(world.clock);
  }

  get size(): number {
    return this.#active.size;
  }

  order(order: FaultOrder, id: string): OrderedFault {
    const { clock, log } = this.#world;
    const { timing, seconds: usual } = faultKind(order.fault);
    const lastsSeconds =
      timing === 'late' ? undefined : (order.seconds ?? (order.times === undefined ? usual : undefined));
    const active: ActiveFault = {
      id,
      order,
      seconds: order.seconds ?? usual,
      happened: 0,
      timesMax: order.times ?? (lastsSeconds === undefined ? 1 : Number.POSITIVE_INFINITY),
      delaysOpen: 0,
      delaysElsewhere: new Map(),
      random: seededRandom(order.seed ?? 0),
      over: new AbortController(),
      unsent: 0,
    };
    const { over } = active;
    this.#active.set(id, active);
    if (lastsSeconds !== undefined) void clock.sleep(lastsSeconds * 1000, over.signal).then(() => this.end(id));
    log.info('fault-ordered', { fault: order.fault, id, box: order.box, content: order.content });
    this.#changed();
    return {
      id,
      fault: order.fault,
      box: order.box,
      over: over.signal,
      onEnd: (work) => {
        if (over.signal.aborted) work();
        else over.signal.addEventListener('abort', work, { once: true });
      },
      seconds: active.seconds,
      fraction: active.random.fraction,
      happens: (boxes = []) => {
        if (over.signal.aborted || !this.#happens(active, boxes)) return false;
        this.#tell(active, 1);
        this.#endIfDone(active);
        return true;
      },
      listed: () => listedOf(active),
    };
  }

  /** Returns the oldest active fault of this kind that happens to this subject now, and counts it. */
  take(fault: FaultName, subject: Subject): Occurrence | undefined {
    const active = this.#happening(fault, subject);
    if (active === undefined) return undefined;
    this.#tell(active, 1);
    this.#endIfDone(active);
    return { id: active.id, seconds: active.seconds, fraction: active.random.fraction };
  }

  /** Does the same as `take` for a fault that delays something. */
  delay(fault: FaultName, subject: Subject): DelayedOccurrence | undefined {
    const active = this.#happening(fault, subject);
    if (active === undefined) return undefined;
    active.delaysOpen += 1;
    this.#tell(active, 1);
    const delayed = this.#delays.add(active, () => {
      active.delaysOpen -= 1;
      this.#tell(active, 0);
      this.#endIfDone(active);
    });
    return { id: active.id, seconds: active.seconds, fraction: active.random.fraction, delayed };
  }

  /** Begins a delay that the fault with this id has begun at another gateway, or that a content has ordered. */
  delayFor(id: string | null): Wait {
    return this.#delays.add(id === null ? undefined : this.#active.get(id), () => undefined);
  }

  list(): ActiveFaultView[] {
    // A gateway that has ended delays nothing any more.
    for (const active of [...this.#active.values()]) this.#endIfDone(active);
    return [...this.#active.values()].map(listedOf);
  }

  /** Counts occurrences of a fault at another gateway. */
  happenedElsewhere({ id, by, times, delays }: OccurrenceNews): void {
    const active = this.#active.get(id);
    if (active === undefined) return;
    active.happened += times;
    active.delaysElsewhere.set(by, delays);
    this.#changed();
    this.#endIfDone(active);
  }

  /** Ends a fault and its delays. Returns whether it was active. */
  end(id: string): boolean {
    const active = this.#active.get(id);
    if (active === undefined) return false;
    this.#end(active);
    this.#delays.release(active);
    return true;
  }

  /** Ends all faults and delays, with the delays that contents have ordered. */
  endAll(): void {
    for (const active of [...this.#active.values()]) this.#end(active);
    this.#delays.releaseAll();
  }

  /** Ends all faults, and drops everything that they delay, because the gateway is stopping. */
  close(): void {
    this.#delays.close();
    this.endAll();
  }

  #end(active: ActiveFault): void {
    const { id, order, happened, over } = active;
    if (!this.#active.delete(id)) return;
    over.abort();
    this.#world.log.info('fault-ended', { fault: order.fault, id, happened });
    this.#changed();
  }

  #endIfDone(active: ActiveFault): void {
    const { happened, timesMax, delaysOpen, delaysElsewhere } = active;
    if (happened < timesMax || delaysOpen > 0) return;
    if (!this.#world.place.others().some((run) => (delaysElsewhere.get(run) ?? 0) > 0)) this.#end(active);
  }

  #happening(fault: FaultName, { boxes, content }: Subject): ActiveFault | undefined {
    for (const active of this.#active.values()) {
      const { order } = active;
      if (order.fault !== fault) continue;
      if (order.box !== undefined && !boxes.includes(order.box)) continue;
      if (order.content !== undefined && order.content !== content) continue;
      if (this.#happens(active, boxes)) return active;
    }
    return undefined;
  }

  #happens(active: ActiveFault, boxes: readonly string[]): boolean {
    const { id, order, random, timesMax } = active;
    if (active.happened >= timesMax || random.fraction() >= (order.chance ?? 1)) return false;
    active.happened += 1;
    this.#world.log.warn('fault-triggered', { fault: order.fault, id, boxes: boxes.join(' ') });
    this.#changed();
    return true;
  }

  #changed(): void {
    this.#world.changes.publish('faults');
  }

  /** Tells the other gateways how often a fault has happened here, and what it still delays. */
  #tell(active: ActiveFault, times: number): void {
    const { clock, place } = this.#world;
    // A state happens at each gateway by itself.
    if (faultKind(active.order.fault).timing === 'state') return;
    const tell = () => {
      const { id, unsent, delaysOpen: delays } = active;
      active.unsent = 0;
      void place.tell(asNews({ about: 'occurrence', id, by: place.run, times: unsent, delays }));
    };
    active.unsent += times;
    // A fault with a limit is sent at once, because other gateways must not continue with a used-up fault. A lasting
    // fault sends only its count, so that can wait.
    if (Number.isFinite(active.timesMax)) tell();
    else if (times > 0 && active.unsent === times) void clock.sleep(TELL_TOGETHER_MS, active.over.signal).then(tell);
  }
}

function listedOf({ id, order, happened }: ActiveFault): ActiveFaultView {
  return { ...order, id, happened };
}
