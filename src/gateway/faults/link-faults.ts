import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { basicCredentials } from '../../lib/http-server.ts';
import type { FaultOrder } from '../../protocol/faults.ts';
import { BOX_PATHS } from '../../protocol/http-api.ts';
import { pathOf } from '../access/requests.ts';
import type { BoxConnection, BoxSocket, Connect } from '../boxes/connection.ts';
import type { BoxHub } from '../boxes/wire.ts';
import type { World } from '../common/world.ts';
import type { OrderedFault } from './active-faults.ts';
import type { Elsewhere, Faults } from './faults.ts';
import { FaultyConnection, type PushEdge } from './push-faults.ts';

/** The time from a welcome to the next ordered cut, so that the box has registered. */
const CUT_AFTER_MS = 1_000;
/** The longest delay of a message on a slow link. */
const SLOW_MAX_MS = 1_000;

/** At most this many sockets of one box are held. One more ends the oldest, which the box has given up by then. */
const HELD_SOCKETS_MAX = 16;

/** Injects faults into the connections to boxes (PROTOCOL.md, clauses FLT-6 and FLT-9). */
export class LinkFaults {
  readonly #world: World;
  readonly #edge: PushEdge;
  readonly #faults: Faults;
  /** The sockets of the connected boxes. */
  readonly #sockets = new Map<string, Set<Socket>>();
  readonly #cuts = new Set<OrderedFault>();
  readonly #holds = new Set<OrderedFault>();
  /** Functions that release held sockets, by box, oldest first. An ended socket stays here until its release. */
  readonly #held = new Map<string, Map<Socket, () => void>>();
  /** By box and direction. Settles once the last message has passed. */
  readonly #last = new Map<string, Promise<void>>();

  constructor(world: World, edge: PushEdge) {
    const { faults } = edge;
    this.#world = world;
    this.#edge = edge;
    this.#faults = faults;
    const problem = (order: FaultOrder, elsewhere: Elsewhere) => this.#problem(order, elsewhere);
    faults.onOrder('link-cut', { problem, begin: (ordered) => this.#beginCut(ordered) });
    faults.onOrder('half-open', { problem, begin: (ordered) => this.#beginHold(ordered) });
  }

  /** Adds the faults of pushes and of links to connections. */
  connect(connect: Connect): Connect {
    return (terminalCode, socket) => {
      const connection = connect(terminalCode, this.#sendingTwice(terminalCode, socket));
      const slow = this.#slowConnection(terminalCode, connection);
      return new FaultyConnection(terminalCode, slow, this.#world, this.#edge);
    };
  }

  /** Delays messages of boxes on slow links. A disconnection comes after all messages. */
  hub(hub: BoxHub): BoxHub {
    return {
      news: hub.news,
      session: (terminalCode) => hub.session(terminalCode),
      move: (terminalCode, to) => hub.move(terminalCode, to),
      receive: (terminalCode, connection, message) =>
        new Promise((resolve) => {
          this.#pass(`up ${terminalCode}`, terminalCode, () => resolve(hub.receive(terminalCode, connection, message)));
        }),
      disconnected: (terminalCode, by, why) =>
        this.#pass(`up ${terminalCode}`, terminalCode, () => hub.disconnected(terminalCode, by, why), false),
    };
  }

  /** Delays requests of boxes while their links are held. Registers the sockets of their streams. */
  hookBoxRoutes(scope: FastifyInstance): void {
    scope.addHook('preHandler', async (request, reply) => {
      const { username: terminalCode = '' } = basicCredentials(request) ?? {};
      const { socket } = request.raw;
      await this.passable(terminalCode, socket);
      // A client that has disconnected meanwhile must count as if it had sent nothing.
      if (socket.destroyed) return reply.hijack();
      if (pathOf(request) === BOX_PATHS.stream) reply.raw.once('close', this.connected(terminalCode, socket));
      return undefined;
    });
  }

  /** Registers the socket of a box until the returned function is called. */
  connected(terminalCode: string, socket: Socket): () => void {
    const own = this.#sockets.get(terminalCode) ?? new Set();
    this.#sockets.set(terminalCode, own.add(socket));
    this.#hold(terminalCode, socket);
    return () => {
      own.delete(socket);
      if (own.size === 0 && this.#sockets.get(terminalCode) === own) this.#sockets.delete(terminalCode);
    };
  }

  #sendingTwice(terminalCode: string, socket: BoxSocket): BoxSocket {
    return {
      transport: socket.transport,
      problem: () => socket.problem(),
      end: () => socket.end(),
      send: (signed, type) => {
        socket.send(signed, type);
        if (type === 'heard') return;
        if (this.#faults.take('link-twice', { boxes: [terminalCode] })) socket.send(signed, type);
      },
    };
  }

  #slowConnection(terminalCode: string, connection: BoxConnection): BoxConnection {
    return {
      transport: connection.transport,
      end: () => connection.end(),
      send: (message) => {
        this.#pass(`down ${terminalCode}`, terminalCode, () => connection.send(message));
        if (message.type === 'welcome') this.#welcomed(terminalCode);
      },
    };
  }

  /** Settles once the link of the box is not held, or the socket is closed. */
  async passable(terminalCode: string, socket: Socket): Promise<void> {
    for (;;) {
      const hold = this.#holdOf(terminalCode);
      if (hold === undefined || socket.destroyed) return;
      await new Promise<void>((resolve) => {
        const pass = () => {
          socket.removeListener('close', pass);
          hold.over.removeEventListener('abort', pass);
          resolve();
        };
        socket.once('close', pass);
        hold.over.addEventListener('abort', pass);
      });
    }
  }

  #problem({ fault, box = '' }: FaultOrder, elsewhere: Elsewhere): string | undefined {
    // The gateway cannot reach the connections of boxes to somebody else's broker.
    const isBrokerForeign = this.#world.config.mqtt?.url !== undefined;
    if (!isBrokerForeign || this.#sockets.has(box) || elsewhere.get(box)?.transport === 'http') return undefined;
    return `fault: ${fault} needs a box that is connected over HTTP, or the gateway's own broker, and the broker is another's`;
  }

  #beginCut(ordered: OrderedFault): void {
    this.#cuts.add(ordered);
    ordered.onEnd(() => this.#cuts.delete(ordered));
    this.#cut(ordered);
  }

  /** Cuts the connections of these boxes, held ones too. Without a connection, the fault waits for one. */
  #cut(ordered: OrderedFault): void {
    const boxes = [...this.#sockets.keys()].filter((it) => isOf(ordered, it));
    if (boxes.length === 0 || !ordered.happens(boxes)) return;
    for (const box of boxes) for (const socket of this.#sockets.get(box) ?? []) Duplex.prototype.destroy.call(socket);
  }

  #welcomed(terminalCode: string): void {
    for (const ordered of this.#cuts) {
      if (!isOf(ordered, terminalCode)) continue;
      void this.#world.clock.sleep(CUT_AFTER_MS, ordered.over).then(() => this.#cut(ordered));
    }
  }

  #beginHold(ordered: OrderedFault): void {
    this.#holds.add(ordered);
    for (const [terminalCode, own] of this.#sockets) for (const socket of own) this.#hold(terminalCode, socket);
    ordered.onEnd(() => {
      this.#holds.delete(ordered);
      for (const [terminalCode, own] of this.#held) {
        if (this.#holdOf(terminalCode) !== undefined) continue;
        this.#held.delete(terminalCode);
        for (const release of own.values()) release();
      }
    });
  }

  #hold(terminalCode: string, socket: Socket): void {
    const own = this.#held.get(terminalCode) ?? new Map<Socket, () => void>();
    if (own.has(socket) || this.#holdOf(terminalCode) === undefined) return;
    this.#held.set(terminalCode, own.set(socket, holdSocket(socket)));
    const [oldest] = own;
    if (oldest === undefined || own.size <= HELD_SOCKETS_MAX) return;
    const [former, release] = oldest;
    own.delete(former);
    former.destroy();
    release();
  }

  #holdOf(terminalCode: string): OrderedFault | undefined {
    return [...this.#holds].find((it) => isOf(it, terminalCode));
  }

  /** Runs the work of each direction in order. A slow link delays the messages. */
  #pass(direction: string, terminalCode: string, work: () => void, isMessage = true): void {
    const slow = isMessage ? this.#faults.delay('link-slow', { boxes: [terminalCode] }) : undefined;
    const before = this.#last.get(direction);
    if (slow === undefined && before === undefined) {
      work();
      return;
    }
    const last = Promise.all([before, slow?.delayed(slow.fraction() * SLOW_MAX_MS)]).then(work);
    this.#last.set(direction, last);
    void last.then(() => {
      if (this.#last.get(direction) === last) this.#last.delete(direction);
    });
  }
}

function isOf({ box }: OrderedFault, terminalCode: string): boolean {
  return box === undefined || box === terminalCode;
}

/**
 * Blocks a socket in both directions, including its end, until the returned function is called (PROTOCOL.md, clause
 * FLT-9). The owner may write, resume or destroy it meanwhile. That takes effect at the release.
 */
export function holdSocket(socket: Socket): () => void {
  let isDestroyed = false;
  socket.cork();
  socket.pause();
  // Until the release, these properties hide the methods of the class.
  const held = {
    resume: () => socket,
    uncork: () => undefined,
    destroy: () => {
      isDestroyed = true;
      return socket;
    },
  };
  Object.assign(socket, held);
  return () => {
    for (const name of Object.keys(held)) Reflect.deleteProperty(socket, name);
    while (socket.writableCorked > 0) socket.uncork();
    socket.resume();
    if (isDestroyed) socket.destroy();
  };
}
