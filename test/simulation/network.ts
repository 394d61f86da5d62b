import type { Connection, TransportIo } from '../../src/device/agent/contract.ts';
import { lost } from '../../src/device/agent/transports/inbound-queue.ts';
import { MessageQueue } from '../../src/device/agent/transports/message-queue.ts';
import type { BoxConnection } from '../../src/gateway/boxes/connection.ts';
import { MissingPeerError } from '../../src/lib/errors.ts';
import type { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { decodeUp, encode } from '../../src/protocol/codec.ts';
import type { DownMessage, UpMessage } from '../../src/protocol/messages.ts';
import { NO_SEAL } from '../support/transport-io.ts';
import type { Chance } from './chance.ts';
import type { Run } from './machine.ts';

/** How the network treats messages. Probabilities are those of one message. */
export interface Weather {
  delayMs: readonly [number, number];
  drop: number;
  duplicate: number;
  /** A message that others overtake. */
  reorder: number;
  /** How long an end of a connection that was cut takes to find that out, in milliseconds. */
  noticeMs: readonly [number, number];
}

export const FAIR: Weather = { delayMs: [0.25, 4], drop: 0, duplicate: 0, reorder: 0, noticeMs: [1, 50] };

/** The gateway's side of the network while one run of it lives. */
export interface Station {
  run: Run;
  /** Takes a message of a box; settles once it is handled. */
  take(terminalCode: string, connection: BoxConnection, message: UpMessage): Promise<boolean>;
  lost(terminalCode: string, by: { sessionId: string } | { connection: BoxConnection }): void;
}

export interface NetworkDeps {
  world: VirtualClock;
  chance: Chance;
  count(what: string): void;
  /** Told of every message that the gateway hands to the transport. */
  onDown(terminalCode: string, message: DownMessage): void;
  /** Told of every message as it reaches the gateway. */
  onUp(terminalCode: string, message: UpMessage): void;
}

/** One direction of a connection. */
class Pipe {
  readonly #deps: NetworkDeps;
  readonly #cable: Cable;
  readonly #deliver: (bytes: string) => void;
  #freeAtMs = 0;

  constructor(cable: Cable, deps: NetworkDeps, deliver: (bytes: string) => void) {
    this.#deps = deps;
    this.#cable = cable;
    this.#deliver = deliver;
  }

  push(bytes: string): void {
    const { chance, count } = this.#deps;
    const { weather } = this.#cable.network;
    if (chance.chance(weather.drop)) {
      count('message dropped');
      return;
    }
    this.#send(bytes);
    if (chance.chance(weather.duplicate)) {
      count('message duplicated');
      this.#send(bytes);
    }
  }

  #send(bytes: string): void {
    const { chance, world, count } = this.#deps;
    const { weather } = this.#cable.network;
    const nowMs = world.monotonicMs();
    let atMs = nowMs + chance.timeMs(...weather.delayMs);
    if (chance.chance(weather.reorder)) {
      count('message reordered');
      atMs += chance.timeMs(...weather.delayMs) * 4;
    } else {
      atMs = Math.max(atMs, this.#freeAtMs);
      this.#freeAtMs = atMs;
    }
    world.after(atMs - nowMs, () => this.#arrive(bytes));
  }

  #arrive(bytes: string): void {
    if (this.#cable.cut && !this.#cable.flushes) return;
    if (this.#cable.network.isPartitioned(this.#cable.terminalCode)) this.#cable.held.push(() => this.#send(bytes));
    else this.#deliver(bytes);
  }
}

/** One connection between a run of an agent and a run of the gateway. */
class Cable {
  readonly network: Network;
  readonly terminalCode: string;
  readonly sessionId: string;
  readonly owner: Run;
  readonly incoming: MessageQueue;
  readonly down: Pipe;
  readonly up: Pipe;
  readonly connection: BoxConnection;
  /** What a partition keeps. */
  held: (() => void)[] = [];
  cut = false;
  /** Whether what was under way when it was cut still arrives. */
  flushes = false;
  readonly #station: Station;
  readonly #deps: NetworkDeps;

  constructor(network: Network, io: Omit<TransportIo, 'box'>, owner: Run, station: Station, deps: NetworkDeps) {
    this.network = network;
    this.terminalCode = io.identity.terminalCode;
    this.sessionId = io.sessionId;
    this.owner = owner;
    this.incoming = new MessageQueue({ log: io.log, seal: NO_SEAL, heard: io.heard });
    this.#station = station;
    this.#deps = deps;
    this.down = new Pipe(this, deps, (bytes) => {
      if (owner.alive) this.incoming.take(bytes);
    });
    this.up = new Pipe(this, deps, (bytes) => this.#toGateway(bytes));
    this.connection =
      network.transport === 'mqtt' ? network.topicOf(this.terminalCode, station) : this.#ownConnection();
  }

  /** The connection is no more; each end finds out in its own time. */
  break(why: string): void {
    if (this.cut) return;
    const { chance, world } = this.#deps;
    this.cut = true;
    this.flushes = chance.chance(0.5);
    this.held = [];
    this.network.cables.delete(this);
    const { noticeMs } = this.network.weather;
    world.after(chance.timeMs(...noticeMs), () => this.incoming.fail(lost(why)));
    const by = this.network.transport === 'mqtt' ? { sessionId: this.sessionId } : { connection: this.connection };
    world.after(chance.timeMs(...noticeMs), () => {
      if (this.#station.run.alive) this.#station.lost(this.terminalCode, by);
    });
  }

  session(): Connection {
    return {
      incoming: this.incoming,
      send: async (message) => {
        if (!this.owner.alive) return new Promise(() => undefined);
        if (this.cut || this.incoming.ended) throw lost('the connection is closed');
        this.up.push(encode(message));
        const handedOver = this.owner.sleep(this.#deps.chance.timeMs(...this.network.weather.delayMs));
        await this.incoming.whileOpen(handedOver);
      },
      close: async () => {
        this.incoming.close();
        if (this.owner.alive) this.break('the box closed it');
      },
    };
  }

  #toGateway(bytes: string): void {
    if (!this.#station.run.alive) return;
    const decoded = decodeUp(bytes);
    if (!decoded.ok) throw new Error(`a box sent ${bytes}: ${decoded.reason}`);
    this.#deps.onUp(this.terminalCode, decoded.value);
    void this.#station.take(this.terminalCode, this.connection, decoded.value);
  }

  /** The stream of a box over HTTP: of this connection alone. */
  #ownConnection(): BoxConnection {
    return {
      transport: 'http',
      send: (message) => {
        if (!this.#station.run.alive) return;
        this.#deps.onDown(this.terminalCode, message);
        if (!this.cut) this.down.push(encode(message));
      },
      end: () => {
        if (this.#station.run.alive) this.break('the gateway ended it');
      },
    };
  }
}

/** Everything between boxes and gateway; one transport in a world. */
export class Network {
  readonly transport: 'mqtt' | 'http';
  readonly cables = new Set<Cable>();
  weather: Weather = FAIR;
  readonly #partitioned = new Set<string>();
  readonly #topics = new Map<string, BoxConnection>();
  readonly #deps: NetworkDeps;
  #station: Station | undefined;

  constructor(transport: 'mqtt' | 'http', deps: NetworkDeps) {
    this.transport = transport;
    this.#deps = deps;
  }

  /** The gateway is there, or is gone with every connection to it. */
  stationIs(station: Station | undefined): void {
    this.#station = station;
    this.#topics.clear();
    for (const cable of [...this.cables]) cable.break('the gateway is gone');
  }

  isPartitioned(terminalCode: string): boolean {
    return this.#partitioned.has(terminalCode);
  }

  partition(terminalCode: string): void {
    this.#partitioned.add(terminalCode);
  }

  heal(terminalCode: string): void {
    if (!this.#partitioned.delete(terminalCode)) return;
    for (const cable of this.cables) {
      if (cable.terminalCode === terminalCode) for (const goOn of cable.held.splice(0)) goOn();
    }
  }

  cut(of: { terminalCode: string } | { owner: Run }): void {
    for (const cable of [...this.cables]) {
      const isMeant = 'owner' in of ? cable.owner === of.owner : cable.terminalCode === of.terminalCode;
      if (isMeant) cable.break('the cable was cut');
    }
  }

  /** Every message has arrived that ever will. */
  get holds(): number {
    return [...this.cables].reduce((sum, cable) => sum + cable.held.length, 0);
  }

  async open(io: Omit<TransportIo, 'box'>, owner: Run, signal: AbortSignal): Promise<Connection> {
    const { chance } = this.#deps;
    await owner.sleep(chance.timeMs(...this.weather.delayMs) * 2, signal);
    const station = this.#station;
    if (station === undefined || this.isPartitioned(io.identity.terminalCode)) {
      await owner.sleep(chance.timeMs(1, 3000), signal);
      throw new MissingPeerError('the gateway cannot be reached', '');
    }
    const cable = new Cable(this, io, owner, station, this.#deps);
    this.cables.add(cable);
    return cable.session();
  }

  /** The topic of a box over MQTT: whoever listens to it hears everything. */
  topicOf(terminalCode: string, { run }: Station): BoxConnection {
    const known = this.#topics.get(terminalCode);
    if (known !== undefined) return known;
    const connection: BoxConnection = {
      transport: 'mqtt',
      send: (message) => {
        if (!run.alive) return;
        this.#deps.onDown(terminalCode, message);
        const bytes = encode(message);
        for (const cable of this.cables) if (cable.terminalCode === terminalCode) cable.down.push(bytes);
      },
      end: () => undefined,
    };
    this.#topics.set(terminalCode, connection);
    return connection;
  }
}
