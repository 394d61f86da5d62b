import { connect, createServer, type Socket } from 'node:net';

/** A direction through the proxy: `up` from the client to the listener, `down` back. */
export type Direction = 'up' | 'down';

const BOTH: readonly Direction[] = ['up', 'down'];
/** Buffer limit of a direction. Beyond it the proxy stops reading, so that the sender feels backpressure as on a real network. */
const HELD_BYTES_MAX = 65_536;
/** Write interval of a throttled direction. */
const THROTTLE_SLICE_MS = 20;

/** Current conditions of a direction. */
interface Conditions {
  stalled: boolean;
  delayMs: () => number;
  bytesPerSecond: number;
}

/** Bytes, or the end of the stream, in transit. */
interface Item {
  dueMs: number;
  bytes: Buffer | 'end' | 'reset';
}

/** One direction of one connection. Data leaves in order, as its conditions allow. */
class Pipe {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #conditions: Conditions;
  readonly #items: Item[] = [];
  #heldBytes = 0;
  #freeMs = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Passes nothing ever again. */
  #dead = false;

  constructor(from: Socket, to: Socket, conditions: Conditions) {
    this.#from = from;
    this.#to = to;
    this.#conditions = conditions;
    from.on('data', (bytes: Buffer) => this.#take(bytes));
    from.on('end', () => this.#take('end'));
    from.on('error', () => this.#take('reset'));
    to.on('drain', () => this.flush());
    to.on('close', () => this.kill());
  }

  kill(): void {
    this.#dead = true;
    this.#items.length = 0;
    clearTimeout(this.#timer);
    // Keep reading and discard, or the sender's end would go unnoticed.
    this.#from.resume();
  }

  /** Ends this direction at once and drops its buffer. */
  end(): void {
    this.kill();
    this.#to.end();
  }

  /** Passes on due data; called whenever the conditions change. */
  flush(): void {
    clearTimeout(this.#timer);
    for (;;) {
      const [item] = this.#items;
      if (this.#dead || this.#conditions.stalled || this.#to.writableNeedDrain || item === undefined) return;
      const waitMs = Math.max(item.dueMs, this.#freeMs) - performance.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.flush(), waitMs);
        return;
      }
      this.#pass(item);
    }
  }

  #take(bytes: Buffer | 'end' | 'reset'): void {
    if (this.#dead) return;
    const dueMs = Math.max(performance.now() + this.#conditions.delayMs(), this.#items.at(-1)?.dueMs ?? 0);
    this.#items.push({ dueMs, bytes });
    if (typeof bytes !== 'string') this.#heldBytes += bytes.length;
    if (this.#heldBytes > HELD_BYTES_MAX) this.#from.pause();
    this.flush();
  }

  #pass(item: Item): void {
    const { bytes } = item;
    if (typeof bytes === 'string') {
      this.#items.shift();
      if (bytes === 'end') this.#to.end();
      else reset(this.#to);
      return;
    }
    const { bytesPerSecond } = this.#conditions;
    const sliceMax = Math.max(1, Math.floor((bytesPerSecond * THROTTLE_SLICE_MS) / 1000));
    const now = bytes.subarray(0, sliceMax);
    if (now.length === bytes.length) this.#items.shift();
    else item.bytes = bytes.subarray(now.length);
    this.#freeMs = performance.now() + (now.length / bytesPerSecond) * 1000;
    this.#heldBytes -= now.length;
    this.#to.write(now);
    if (this.#heldBytes <= HELD_BYTES_MAX) this.#from.resume();
  }
}

/** Node leaks a socket that is reset while its end is being sent, and then spins for ever when the process ends. */
function reset(socket: Socket): void {
  if (socket.writableEnded && !socket.writableFinished) socket.destroy();
  else socket.resetAndDestroy();
}

interface Cable {
  near: Socket;
  far: Socket;
  up: Pipe;
  down: Pipe;
}

/** A TCP proxy that simulates network faults. */
export interface TcpProxy {
  readonly port: number;
  /** Number of open connections. */
  readonly open: number;
  /** Number of connections so far. */
  readonly dialled: number;
  /** Holds back all bytes and connection ends, as an unreachable network does, for open and new connections. */
  stall(directions?: readonly Direction[]): void;
  /** Releases everything held back. */
  resume(directions?: readonly Direction[]): void;
  /** Open connections silently pass nothing ever again; new ones work. Simulates a NAT that dropped its entries. */
  abandon(): void;
  /** Resets the open connections at both ends. */
  cut(): void;
  /** Ends one direction of the open connections: the reader there sees the end but can still send. */
  halfClose(direction: Direction): void;
  /** New connections dial this target. The open ones stay with theirs: `cut` ends them. */
  aim(target: { port: number; host?: string }): void;
  /** Delays each new piece by `ms` ± `jitterMs`; order is kept, as in TCP. */
  delay(ms: number, jitterMs?: number, directions?: readonly Direction[]): void;
  /** Infinity removes the limit. */
  throttle(bytesPerSecond: number, directions?: readonly Direction[]): void;
  close(): Promise<void>;
}

/** Starts a proxy to `first` on a free loopback port. Each connection dials its target anew. */
export async function startProxy(first: { port: number; host?: string }): Promise<TcpProxy> {
  let target = first;
  const fair = (): Conditions => ({ stalled: false, delayMs: () => 0, bytesPerSecond: Number.POSITIVE_INFINITY });
  const conditions: Record<Direction, Conditions> = { up: fair(), down: fair() };
  const cables = new Set<Cable>();
  let dialled = 0;
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    dialled += 1;
    const far = connect({ host: '127.0.0.1', ...target, allowHalfOpen: true, noDelay: true });
    const cable = { near, far, up: new Pipe(near, far, conditions.up), down: new Pipe(far, near, conditions.down) };
    cables.add(cable);
    const closed = () => {
      if (near.closed && far.closed) cables.delete(cable);
    };
    near.on('close', closed);
    far.on('close', closed);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const change = (directions: readonly Direction[], to: Partial<Conditions>) => {
    for (const direction of directions) {
      Object.assign(conditions[direction], to);
      for (const cable of cables) cable[direction].flush();
    }
  };
  const cut = () => {
    for (const { near, far } of cables) {
      reset(near);
      reset(far);
    }
  };
  return {
    port: address.port,
    get open() {
      return cables.size;
    },
    get dialled() {
      return dialled;
    },
    stall: (directions = BOTH) => change(directions, { stalled: true }),
    resume: (directions = BOTH) => change(directions, { stalled: false }),
    abandon: () => {
      for (const cable of cables) for (const direction of BOTH) cable[direction].kill();
    },
    cut,
    halfClose: (direction) => {
      for (const cable of cables) cable[direction].end();
    },
    aim: (to) => {
      target = to;
    },
    delay: (ms, jitterMs = 0, directions = BOTH) =>
      change(directions, { delayMs: () => Math.max(0, ms + (Math.random() * 2 - 1) * jitterMs) }),
    throttle: (bytesPerSecond, directions = BOTH) => change(directions, { bytesPerSecond }),
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      cut();
      await closed;
    },
  };
}
