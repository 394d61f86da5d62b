import { connect, createServer, type Socket } from 'node:net';

/** A way through the proxy: `up` from who dials to who listens, `down` back. */
export type Way = 'up' | 'down';

const BOTH: readonly Way[] = ['up', 'down'];
/** What a way holds before it reads no more, so that a sender behind a stalled way feels it as on a real network. */
const HELD_BYTES_MAX = 65_536;
/** A throttled way writes this often. */
const THROTTLE_SLICE_MS = 20;

/** How a way through the proxy is just now. */
interface Weather {
  stalled: boolean;
  delayMs: () => number;
  bytesPerSecond: number;
}

/** Bytes, or the end of them, on their way. */
interface Item {
  dueMs: number;
  bytes: Buffer | 'end' | 'reset';
}

/** One way of one connection: everything that enters leaves in order, as its weather allows. */
class Pipe {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #weather: Weather;
  readonly #items: Item[] = [];
  #heldBytes = 0;
  #freeMs = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Passes nothing for ever. */
  #dead = false;

  constructor(from: Socket, to: Socket, weather: Weather) {
    this.#from = from;
    this.#to = to;
    this.#weather = weather;
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
    // What still comes is read and lost, or its sender would never be seen to end.
    this.#from.resume();
  }

  /** Ends this way now, whatever it holds. */
  end(): void {
    this.kill();
    this.#to.end();
  }

  /** Passes on what is due; called again whenever the weather changes. */
  flush(): void {
    clearTimeout(this.#timer);
    for (;;) {
      const [item] = this.#items;
      if (this.#dead || this.#weather.stalled || this.#to.writableNeedDrain || item === undefined) return;
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
    const dueMs = Math.max(performance.now() + this.#weather.delayMs(), this.#items.at(-1)?.dueMs ?? 0);
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
      else this.#to.resetAndDestroy();
      return;
    }
    const { bytesPerSecond } = this.#weather;
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

interface Cable {
  near: Socket;
  far: Socket;
  up: Pipe;
  down: Pipe;
}

/** A cable in the way of TCP connections that can be made as bad as real ones are. */
export interface TcpProxy {
  readonly port: number;
  /** Connections that are open now. */
  readonly open: number;
  /** Connections that there have been. */
  readonly dialled: number;
  /** Holds every byte, and every end of a connection too, as a network does that is gone; all connections, new ones too. */
  stall(ways?: readonly Way[]): void;
  /** Lets go what is held. */
  resume(ways?: readonly Way[]): void;
  /** The open connections pass nothing ever again and neither end is told; new ones work. As a NAT that forgot them. */
  abandon(): void;
  /** Resets the open connections at both ends. */
  cut(): void;
  /** Ends one way of the open connections: who reads there sees an end, and can still be heard. */
  halfClose(way: Way): void;
  /** Delays what comes from here on, each piece by `ms` give or take `jitterMs`; the order stays, as it does in TCP. */
  delay(ms: number, jitterMs?: number, ways?: readonly Way[]): void;
  /** Infinity takes the limit away. */
  throttle(bytesPerSecond: number, ways?: readonly Way[]): void;
  close(): Promise<void>;
}

/** Starts a proxy on a free port of loopback to `target`, which is dialled anew for each connection. */
export async function startProxy(target: { port: number; host?: string }): Promise<TcpProxy> {
  const fair = (): Weather => ({ stalled: false, delayMs: () => 0, bytesPerSecond: Number.POSITIVE_INFINITY });
  const weather: Record<Way, Weather> = { up: fair(), down: fair() };
  const cables = new Set<Cable>();
  let dialled = 0;
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    dialled += 1;
    const far = connect({ host: '127.0.0.1', ...target, allowHalfOpen: true, noDelay: true });
    const cable = { near, far, up: new Pipe(near, far, weather.up), down: new Pipe(far, near, weather.down) };
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
  const change = (ways: readonly Way[], to: Partial<Weather>) => {
    for (const way of ways) {
      Object.assign(weather[way], to);
      for (const cable of cables) cable[way].flush();
    }
  };
  const cut = () => {
    for (const { near, far } of cables) {
      near.resetAndDestroy();
      far.resetAndDestroy();
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
    stall: (ways = BOTH) => change(ways, { stalled: true }),
    resume: (ways = BOTH) => change(ways, { stalled: false }),
    abandon: () => {
      for (const cable of cables) for (const way of BOTH) cable[way].kill();
    },
    cut,
    halfClose: (way) => {
      for (const cable of cables) cable[way].end();
    },
    delay: (ms, jitterMs = 0, ways = BOTH) =>
      change(ways, { delayMs: () => Math.max(0, ms + (Math.random() * 2 - 1) * jitterMs) }),
    throttle: (bytesPerSecond, ways = BOTH) => change(ways, { bytesPerSecond }),
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      cut();
      await closed;
    },
  };
}
