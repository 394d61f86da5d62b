import type { Socket } from 'node:net';
import type { Clock } from '../../lib/clock.ts';
import type { Random } from '../../lib/random.ts';
import type { FaultOrder } from '../../protocol/faults.ts';
import type { BoxConnection } from '../boxes/connection.ts';
import type { Hub } from '../boxes/hub.ts';
import type { OrderedFault } from './active-faults.ts';
import type { Faults } from './faults.ts';
import { type BeforeShow, PushFaultLine } from './push-faults.ts';

/** After a welcome a link that is to be cut again lasts so long, so that the box has registered. */
const CUT_AFTER_MS = 1_000;
/** What a message takes at most on a slow link. */
const SLOW_MAX_MS = 1_000;

/** Connections of one box that are held; one more ends the oldest, which its box has given up long before. */
const HELD_CABLES_MAX = 16;

/** A box's connection, as its transport has it. */
export interface Cable {
  /** Ends it, without a word before. */
  cut(): void;
  /** Lets nothing through either way, its end neither, until the returned function is called. */
  hold(): () => void;
}

export interface LinkFaultsDeps {
  faults: Faults;
  clock: Clock;
  random: Random;
  /** How long a push waits for its confirmation, in milliseconds. */
  confirmTimeoutMs: number;
  /** Whether boxes on MQTT are connected to another's broker, whose connections are not this gateway's. */
  isBrokerForeign: boolean;
}

/** The boxes' links, where faults are made (PROTOCOL.md, clauses FLT-6 and FLT-9). Without a fault it only passes on. */
export class LinkFaults {
  /** What is to happen before a push is said to its box. */
  readonly beforeShow: BeforeShow = new Map();
  readonly #deps: LinkFaultsDeps;
  readonly #cables = new Map<string, Set<Cable>>();
  readonly #cuts = new Set<OrderedFault>();
  readonly #holds = new Set<OrderedFault>();
  /** By box, what releases those that are held, also when they are connected no longer; oldest first. */
  readonly #held = new Map<string, Map<Cable, () => void>>();
  /** By way, the last that passes on it. */
  readonly #ways = new Map<string, Promise<void>>();

  constructor(deps: LinkFaultsDeps) {
    this.#deps = deps;
    const problem = (order: FaultOrder) => this.#problem(order);
    deps.faults.onOrder('link-cut', { problem, begin: (ordered) => this.#beginCut(ordered) });
    deps.faults.onOrder('half-open', { problem, begin: (ordered) => this.#beginHold(ordered) });
  }

  /** The line to a box, with the faults of pushes and of the link on it. */
  line(terminalCode: string, line: BoxConnection): BoxConnection {
    const slow: BoxConnection = {
      transport: line.transport,
      end: () => line.end(),
      send: (message) => {
        this.#pass(`down ${terminalCode}`, terminalCode, () => line.send(message));
        if (message.type === 'welcome') this.#welcomed(terminalCode);
      },
    };
    return new PushFaultLine(terminalCode, slow, this.beforeShow, this.#deps);
  }

  /** Calls `work` for what a box has said as soon as its link lets it through, or for its loss after all that it said. */
  heard(terminalCode: string, work: () => void, isMessage = true): void {
    this.#pass(`up ${terminalCode}`, terminalCode, work, isMessage);
  }

  /** How often the bytes of a message to a box are sent. */
  copies(terminalCode: string): number {
    return this.#deps.faults.take('link-twice', { boxes: [terminalCode] }) === undefined ? 1 : 2;
  }

  /** Has a connection of a box until the returned function is called. */
  connected(terminalCode: string, cable: Cable): () => void {
    const own = this.#cables.get(terminalCode) ?? new Set();
    this.#cables.set(terminalCode, own.add(cable));
    this.#hold(terminalCode, cable);
    return () => {
      own.delete(cable);
      if (own.size === 0 && this.#cables.get(terminalCode) === own) this.#cables.delete(terminalCode);
    };
  }

  /** Settles once what a box posts may come through, or its connection is gone. */
  async passable(terminalCode: string, socket: Socket): Promise<void> {
    for (;;) {
      const holding = this.#holdOf(terminalCode);
      if (holding === undefined || socket.destroyed) return;
      await new Promise<void>((resolve) => {
        const pass = () => {
          socket.removeListener('close', pass);
          holding.over.removeEventListener('abort', pass);
          resolve();
        };
        socket.once('close', pass);
        holding.over.addEventListener('abort', pass);
      });
    }
  }

  #problem({ fault, box }: FaultOrder): string | undefined {
    if (!this.#deps.isBrokerForeign || (box !== undefined && this.#cables.has(box))) return undefined;
    return `fault: ${fault} needs a box that is connected over HTTP, or the gateway's own broker, and the broker is another's`;
  }

  #beginCut(ordered: OrderedFault): void {
    this.#cuts.add(ordered);
    ordered.onEnd(() => this.#cuts.delete(ordered));
    this.#cut(ordered);
  }

  /** Cuts what is connected; a fault that finds nothing waits for it. */
  #cut(ordered: OrderedFault): void {
    const boxes = [...this.#cables.keys()].filter((it) => isOf(ordered, it));
    if (boxes.length === 0 || !ordered.happens(boxes)) return;
    for (const box of boxes) for (const cable of this.#cables.get(box) ?? []) cable.cut();
  }

  #welcomed(terminalCode: string): void {
    for (const ordered of this.#cuts) {
      if (!isOf(ordered, terminalCode)) continue;
      void this.#deps.clock.sleep(CUT_AFTER_MS, ordered.over).then(() => this.#cut(ordered));
    }
  }

  #beginHold(ordered: OrderedFault): void {
    this.#holds.add(ordered);
    for (const [terminalCode, cables] of this.#cables) for (const cable of cables) this.#hold(terminalCode, cable);
    ordered.onEnd(() => {
      this.#holds.delete(ordered);
      for (const [terminalCode, own] of this.#held) {
        if (this.#holdOf(terminalCode) !== undefined) continue;
        this.#held.delete(terminalCode);
        for (const release of own.values()) release();
      }
    });
  }

  #hold(terminalCode: string, cable: Cable): void {
    const own = this.#held.get(terminalCode) ?? new Map<Cable, () => void>();
    if (own.has(cable) || this.#holdOf(terminalCode) === undefined) return;
    this.#held.set(terminalCode, own.set(cable, cable.hold()));
    const [oldest] = own;
    if (oldest === undefined || own.size <= HELD_CABLES_MAX) return;
    const [former, release] = oldest;
    own.delete(former);
    former.cut();
    release();
  }

  #holdOf(terminalCode: string): OrderedFault | undefined {
    return [...this.#holds].find((it) => isOf(it, terminalCode));
  }

  /** Does what is next on a way, in order; a message of a slow link takes its time. */
  #pass(way: string, terminalCode: string, work: () => void, isMessage = true): void {
    const slow = isMessage ? this.#deps.faults.delay('link-slow', { boxes: [terminalCode] }) : undefined;
    const before = this.#ways.get(way);
    if (slow === undefined && before === undefined) {
      work();
      return;
    }
    const last = Promise.all([before, slow?.delayed(slow.fraction() * SLOW_MAX_MS)]).then(work);
    this.#ways.set(way, last);
    void last.then(() => {
      if (this.#ways.get(way) === last) this.#ways.delete(way);
    });
  }
}

/** The hub as transports have it: what boxes say comes as their links let it. */
export type BoxHub = Pick<Hub, 'session' | 'receive' | 'disconnected'>;

export function throughLinks(hub: Hub, links: LinkFaults): BoxHub {
  return {
    session: (terminalCode) => hub.session(terminalCode),
    receive: (terminalCode, line, message) =>
      new Promise((resolve) => {
        links.heard(terminalCode, () => resolve(hub.receive(terminalCode, line, message)));
      }),
    disconnected: (terminalCode, by, why) =>
      links.heard(terminalCode, () => hub.disconnected(terminalCode, by, why), false),
  };
}

function isOf({ box }: OrderedFault, terminalCode: string): boolean {
  return box === undefined || box === terminalCode;
}
