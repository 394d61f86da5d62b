import { seededRandom } from '../../lib/random.ts';
import {
  ACTIVE_FAULTS_MAX,
  type ActiveFaultView,
  FAULT_NAMES,
  type FaultName,
  type FaultOrder,
  faultKind,
  faultOfContent,
  MAGIC_PREFIX,
  MAGIC_WORD,
  magicContent,
} from '../../protocol/faults.ts';
import type { Directory } from '../common/directory.ts';
import { mustTell, type SessionElsewhere } from '../common/place.ts';
import { accept, type Result, refuse } from '../common/result.ts';
import type { World } from '../common/world.ts';
import {
  ActiveFaults,
  type DelayedOccurrence,
  type Occurrence,
  type OrderedFault,
  type Subject,
} from './active-faults.ts';
import type { Wait } from './delay-queue.ts';
import { asNews, type FaultNews } from './fault-news.ts';
import type { FaultOrders, OfferedFault } from './routes.ts';

/** The sessions that other gateways hold, by box. */
export type Elsewhere = ReadonlyMap<string, Pick<SessionElsewhere, 'transport'>>;

type OrderNews = Extract<FaultNews, { about: 'order' | 'end' | 'occurrence' }>;

/** The effect of a fault that begins when it is ordered. */
export interface Effect {
  /** Returns why the fault cannot be ordered. Undefined if it can. */
  problem?(order: FaultOrder, elsewhere: Elsewhere): string | undefined;
  begin(ordered: OrderedFault): void;
}

/** Holds the faults of a sandbox. Admins and magic contents order them (PROTOCOL.md, clause FLT). */
export class Faults implements FaultOrders {
  readonly #world: World;
  readonly #active: ActiveFaults;
  readonly #effects = new Map<FaultName, Effect>();
  /** If there are several partners, none of them may order a fault that affects all. */
  #isOnePartner = false;

  constructor(world: World) {
    this.#world = world;
    this.#active = new ActiveFaults(world);
  }

  /** Counts the partners, now and after each change of the registry. */
  async countPartners(directory: Directory): Promise<void> {
    const count = async () => {
      this.#isOnePartner = (await directory.partners(2)).length === 1;
    };
    this.#world.changes.watch((topic) => {
      // A store that fails is logged elsewhere. The next change of the registry repeats the count.
      if (topic === 'registry') count().catch(() => undefined);
    });
    await count();
  }

  /** Sets the effect of a fault that begins when it is ordered. */
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

  active(): ActiveFaultView[] {
    return this.#active.list();
  }

  async order(order: FaultOrder): Promise<Result<ActiveFaultView>> {
    const { place, random } = this.#world;
    const problem = this.#problem(order, await place.allElsewhere(order.box === undefined ? [] : [order.box]));
    if (problem !== undefined) return refuse('E46', problem);
    const id = random.uuid();
    // The news of an occurrence here follows this news.
    const told = mustTell(place, asNews({ about: 'order', id, order }));
    const ordered = this.#begin(order, id);
    await told.catch((error: unknown) => {
      this.#active.end(id);
      throw error;
    });
    return accept(ordered);
  }

  #problem(order: FaultOrder, elsewhere: Elsewhere): string | undefined {
    const problem = problemOf(order) ?? this.#effects.get(order.fault)?.problem?.(order, elsewhere);
    if (problem !== undefined || this.#active.size < ACTIVE_FAULTS_MAX) return problem;
    return `${ACTIVE_FAULTS_MAX} faults are active, which is the limit: end some with DELETE /_mock/faults`;
  }

  #begin(order: FaultOrder, id: string): ActiveFaultView {
    const { times, ...once } = order;
    const isState = faultKind(order.fault).timing === 'state';
    const ordered = this.#active.order(isState ? once : order, id);
    // A state happens at once or never. Other faults happen at the next opportunity.
    if (isState && !ordered.happens()) this.#active.end(id);
    else this.#effects.get(order.fault)?.begin(ordered);
    return ordered.listed();
  }

  /** Does what has been ordered, or has happened, at another gateway. */
  hear(news: OrderNews): void {
    if (news.about === 'occurrence') this.#active.happenedElsewhere(news);
    else if (news.about === 'order') this.#begin(news.order, news.id);
    else if (news.id === null) this.#active.endAll();
    else this.#active.end(news.id);
  }

  /**
   * Returns why a content that asks for a fault orders none, with the contents that order one. Undefined for any other
   * content (clause FLT-12).
   */
  async contentProblem({ content = '', boxes }: Subject): Promise<string | undefined> {
    if (content !== MAGIC_WORD && !content.startsWith(MAGIC_PREFIX)) return undefined;
    const fault = faultOfContent(content);
    const elsewhere = await this.#world.place.allElsewhere(boxes);
    const isPossible = (name: FaultName) => this.#isPossible(name, boxes, elsewhere);
    if (fault !== undefined && isPossible(fault)) return undefined;
    const possible = FAULT_NAMES.filter((name) => faultKind(name).place !== 'box' && isPossible(name));
    const problem =
      fault === undefined ? 'no content orders this fault' : `${fault} is for admins only, or not possible here`;
    return `content: ${problem}; expected one of ${possible.map(magicContent).join(', ')}`;
  }

  /** Returns whether a fault may happen to a call with this body. */
  mayConcern(body: Buffer): boolean {
    return this.#active.size > 0 || body.includes(MAGIC_WORD);
  }

  /** Returns the fault if it happens now, whether an admin or the content has ordered it. Counts and logs it. */
  take(fault: FaultName, subject: Subject): Occurrence | undefined {
    return this.#active.take(fault, subject) ?? this.#magic(fault, subject);
  }

  /** Does the same as `take` for a fault that delays something (PROTOCOL.md, clause FLT-11). */
  delay(fault: FaultName, subject: Subject): DelayedOccurrence | undefined {
    const active = this.#active.delay(fault, subject);
    if (active !== undefined) return active;
    const magic = this.#magic(fault, subject);
    return magic && { ...magic, delayed: this.delayFor(null) };
  }

  /** Begins a delay that the fault with this id has begun at another gateway, or that a content has ordered. */
  delayFor(id: string | null): Wait {
    return this.#active.delayFor(id);
  }

  /** Orders the link fault that the content of a push names, if any. The box must be connected here. */
  orderByContent(box: string, content: string): void {
    const fault = faultOfContent(content);
    if (fault === undefined || faultKind(fault).place !== 'link') return;
    const order = faultKind(fault).isOfAll ? { fault } : { fault, box };
    // Repeated pushes must not fill the list of faults.
    if (this.active().some((it) => it.fault === fault && it.box === order.box)) return;
    const { log, place, random } = this.#world;
    const reason = this.#isByContent(fault)
      ? this.#problem(order, new Map())
      : `${fault} happens to every partner: an admin orders it at /_mock/faults`;
    if (reason !== undefined) {
      log.warn('fault-refused', { fault, box, reason });
      return;
    }
    const id = random.uuid();
    // The push does not wait for this.
    void place.tell(asNews({ about: 'order', id, order }));
    this.#begin(order, id);
  }

  async end(id: string): Promise<boolean> {
    if (!this.#active.end(id)) return false;
    await mustTell(this.#world.place, asNews({ about: 'end', id }));
    return true;
  }

  async endAll(): Promise<void> {
    this.#active.endAll();
    await mustTell(this.#world.place, asNews({ about: 'end', id: null }));
  }

  /** Ends all faults, and drops everything that they delay, because the gateway is stopping. */
  close(): void {
    this.#active.close();
  }

  #isByContent(fault: FaultName): boolean {
    return !faultKind(fault).isOfAll || this.#isOnePartner;
  }

  /** Returns whether a content can order a fault for one of these boxes. Some faults can be ordered only for all boxes. */
  #isPossible(fault: FaultName, boxes: readonly string[], elsewhere: Elsewhere): boolean {
    const problem = this.#effects.get(fault)?.problem ?? (() => undefined);
    const isOfAll = faultKind(fault).isOfAll === true || boxes.length === 0;
    const orders = isOfAll ? [{ fault }] : boxes.map((box) => ({ fault, box }));
    return this.#isByContent(fault) && orders.some((order) => problem(order, elsewhere) === undefined);
  }

  #magic(fault: FaultName, { boxes, content = '', isRepeated = false }: Subject): Occurrence | undefined {
    if (isRepeated || faultOfContent(content) !== fault) return undefined;
    this.#world.log.warn('fault-triggered', { fault, content, boxes: boxes.join(' ') });
    return { id: null, seconds: faultKind(fault).seconds, fraction: seededRandom(0).fraction };
  }
}

function problemOf({ fault, box, content, times = 1 }: FaultOrder): string | undefined {
  const { place, timing, isOfAll } = faultKind(fault);
  if (place === 'box') return `fault: ${fault} happens in a box: order it at one whose configuration has faults: true`;
  if (place === 'link' && content !== undefined)
    return `content: ${fault} happens to a connection, whatever it carries`;
  if (isOfAll && box !== undefined) return `box: ${fault} happens to all boxes at once`;
  if (timing === 'state' && times > 1) return `times: ${fault} happens once, for its seconds`;
  return undefined;
}
