import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import { seededRandom } from '../../lib/random.ts';
import {
  FAULT_NAMES,
  type FaultName,
  type FaultOrder,
  faultKind,
  faultOfContent,
  MAGIC_PREFIX,
  magicContent,
  STANDING_FAULTS_MAX,
  type StandingFault,
} from '../../protocol/faults.ts';
import type { Changes } from '../changes.ts';
import type { Directory } from '../directory.ts';
import type { FaultOrders, OfferedFault } from '../fault-orders.ts';
import { accept, type Result, refuse } from '../result.ts';
import {
  ActiveFaults,
  type DelayedOccurrence,
  type Occurrence,
  type OrderedFault,
  type Subject,
} from './active-faults.ts';

/** The effect of a fault that begins when it is ordered. */
export interface Effect {
  /** Why it cannot be ordered here; undefined if it can. */
  problem?(order: FaultOrder): string | undefined;
  begin(ordered: OrderedFault): void;
}

export interface FaultsDeps {
  directory: Directory;
  clock: Clock;
  random: Random;
  log: Logger;
  changes: Changes;
  /** With several partners, none may order by a content what happens to all of them. */
  partners: readonly unknown[];
}

/** The faults of a sandbox, by order and by magic contents (PROTOCOL.md, clause FLT). */
export class Faults implements FaultOrders {
  readonly #deps: FaultsDeps;
  readonly #standing: ActiveFaults;
  readonly #effects = new Map<FaultName, Effect>();

  constructor(deps: FaultsDeps) {
    this.#deps = deps;
    this.#standing = new ActiveFaults({ ...deps, changed: () => deps.changes.publish('faults') });
  }

  /** Sets what a fault does as soon as it is ordered. */
  onOrder(fault: FaultName, effect: Effect): void {
    this.#effects.set(fault, effect);
  }

  offered(): OfferedFault[] {
    return FAULT_NAMES.filter((name) => faultKind(name).place !== 'box').map((name) => {
      const { place, about, seconds = null, isOfAll = false } = faultKind(name);
      const magic = this.#isByContent(name) ? magicContent(name) : null;
      return { name, place, about, seconds, magic, isPerBox: !isOfAll };
    });
  }

  standing(): StandingFault[] {
    return this.#standing.list();
  }

  order(order: FaultOrder): Result<StandingFault> {
    if (order.box !== undefined && this.#deps.directory.box(order.box) === undefined) {
      return refuse('E35', `box: ${order.box} is not in the system`);
    }
    const effect = this.#effects.get(order.fault);
    const problem = problemOf(order) ?? effect?.problem?.(order);
    if (problem !== undefined) return refuse('E46', problem);
    if (this.#standing.size >= STANDING_FAULTS_MAX) {
      return refuse('E46', `${STANDING_FAULTS_MAX} faults stand, and no more can: end some with DELETE /_mock/faults`);
    }
    const { times, ...once } = order;
    const isState = faultKind(order.fault).timing === 'state';
    const ordered = this.#standing.order(isState ? once : order);
    // A state happens at once or never; other faults wait for their occasion.
    if (isState && !ordered.happens()) this.end(ordered.id);
    else effect?.begin(ordered);
    return accept(ordered.listed());
  }

  /** Whether a fault may happen to a call with this body. */
  mayConcern(body: Buffer): boolean {
    return this.#standing.size > 0 || body.includes(MAGIC_PREFIX);
  }

  /** The fault, if it happens to this now: ordered, or by the content. It is counted and logged. */
  take(fault: FaultName, subject: Subject): Occurrence | undefined {
    return this.#standing.take(fault, subject) ?? this.#magic(fault, subject);
  }

  /** As `take`, for a fault that then delays something (PROTOCOL.md, clause FLT-11). */
  delay(fault: FaultName, subject: Subject): DelayedOccurrence | undefined {
    const standing = this.#standing.delay(fault, subject);
    if (standing !== undefined) return standing;
    const magic = this.#magic(fault, subject);
    return magic && { ...magic, delayed: this.#standing.delayByContent() };
  }

  /** Orders the fault of its link that the content of a push names. */
  orderByContent(box: string, content: string): void {
    const fault = faultOfContent(content);
    if (fault === undefined || faultKind(fault).place !== 'link') return;
    const order = faultKind(fault).isOfAll ? { fault } : { fault, box };
    // Repeated pushes of one partner must not fill the list of faults.
    if (this.standing().some((it) => it.fault === fault && it.box === order.box)) return;
    const verdict = this.#isByContent(fault)
      ? this.order(order)
      : refuse('E46', `${fault} happens to every partner: an admin orders it at /_mock/faults`);
    if (!verdict.ok) this.#deps.log.warn('fault-refused', { fault, box, reason: verdict.reason });
  }

  /** Ends a fault and releases what it delays. Whether such a fault was active. */
  end(id: string): boolean {
    return this.#standing.end(id);
  }

  endAll(): void {
    this.#standing.endAll();
  }

  /** Ends all faults and drops what is delayed: the gateway is stopping. */
  close(): void {
    this.#standing.close();
  }

  #isByContent(fault: FaultName): boolean {
    return !faultKind(fault).isOfAll || this.#deps.partners.length === 1;
  }

  #magic(fault: FaultName, { boxes, content = '', isRepeated = false }: Subject): Occurrence | undefined {
    if (isRepeated || faultOfContent(content) !== fault) return undefined;
    this.#deps.log.warn('fault', { fault, content, boxes: boxes.join(' ') });
    return { seconds: faultKind(fault).seconds, fraction: seededRandom(0).fraction };
  }
}

function problemOf({ fault, box, content, times = 1 }: FaultOrder): string | undefined {
  const { place, timing, isOfAll } = faultKind(fault);
  if (place === 'box') return `fault: ${fault} happens in a box: order it at one whose configuration has faults: true`;
  if (place === 'link' && content !== undefined)
    return `content: ${fault} happens to a connection, whatever goes over it`;
  if (isOfAll && box !== undefined) return `box: ${fault} happens to all boxes at once`;
  if (timing === 'state' && times > 1) return `times: ${fault} happens once, for its seconds`;
  return undefined;
}
