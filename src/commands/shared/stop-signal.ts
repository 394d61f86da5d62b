import { setImmediate as nextTurn } from 'node:timers/promises';
import { z } from 'zod';
import { systemClock } from '../../lib/clock.ts';

const INTERRUPTED = 130;
/**
 * After a signal during the start, the program may still take this long to finish starting, so that it ends in order.
 */
const START_GRACE_MS = 300;
/** `timeout` and npm send a signal to the program and, at once, to its group too. Programs that press twice are slower. */
const SAME_PRESS_MS = 3;
/**
 * The same time, if this program has received the group's signal and another program on a busy machine relays the
 * second one.
 */
const SAME_RELAYED_MS = 300;

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;
type Stopping = (typeof SIGNALS)[number];
/** A signal that came to src/cli.js on another Node, which started this program. */
const relayedSignal = z.object({ relayed: z.enum(SIGNALS) });

type Way = 'here' | 'relayed';

/**
 * Counts presses of one signal. It may arrive here, at the program that started this one, or at both. Each way has its
 * own count, because the second may be late. The larger count is the number of presses.
 */
class Presses {
  readonly #counts: Record<Way, number> = { here: 0, relayed: 0 };
  /** Reasons, for each way, why another signal belongs to the newest press. */
  readonly #same: Record<Way, number> = { here: 0, relayed: 0 };

  /** Returns whether this signal is a new press. */
  isNew(way: Way): boolean {
    if (this.#same[way] > 0) return false;
    const before = Math.max(this.#counts.here, this.#counts.relayed);
    this.#counts[way] += 1;
    const isGroup = way === 'relayed' ? this.#counts.here > 0 : this.#counts.relayed > 0;
    void this.#joining(way, SAME_PRESS_MS);
    if (isGroup) void this.#joining('relayed', SAME_RELAYED_MS);
    return this.#counts[way] > before;
  }

  async #joining(way: Way, ms: number): Promise<void> {
    this.#same[way] += 1;
    await systemClock.sleep(ms);
    // Signals that came while the program was busy are read first.
    await nextTurn();
    this.#same[way] -= 1;
  }
}

/** Catches SIGINT and SIGTERM, so that a program ends cleanly even while it starts. A second press ends it at once. */
export class StopSignal {
  readonly received: Promise<Stopping>;
  #first: Stopping | undefined;

  constructor() {
    const presses = { SIGINT: new Presses(), SIGTERM: new Presses() };
    this.received = new Promise((resolve) => {
      const take = (signal: Stopping, way: Way) => {
        if (!presses[signal].isNew(way)) return;
        if (this.#first !== undefined) exitNow(exitCodeOf(this.#first));
        this.#first = signal;
        resolve(signal);
      };
      for (const signal of SIGNALS) process.on(signal, () => take(signal, 'here'));
      process.on('message', (message) => {
        const { success, data } = relayedSignal.safeParse(message);
        if (success) take(data.relayed, 'relayed');
      });
      // The parent relays signals from now on. Other code notices the parent's end.
      process.send?.({ countsSignals: true }, () => undefined);
    });
  }

  /** Aborts when the signal comes. */
  aborting(): AbortSignal {
    const ending = new AbortController();
    void this.received.then((signal) => ending.abort(new Error(`ended by ${signal}`)));
    return ending.signal;
  }

  /** Waits for a start. A signal cuts off a start that hangs: nothing depends on it yet. */
  async started<T>(starting: Promise<T>): Promise<T> {
    const settled = new AbortController();
    void this.received.then(async (signal) => {
      await systemClock.sleep(START_GRACE_MS, settled.signal);
      if (!settled.signal.aborted) exitNow(exitCodeOf(signal));
    });
    try {
      return await starting;
    } finally {
      settled.abort();
    }
  }
}

/**
 * Ends the process at once, by replacing it. `process.exit` would wait for Node's file system threads, forever if a
 * device blocks one.
 */
export function exitNow(code: number): never {
  const works = process.getActiveResourcesInfo().some((resource) => resource.startsWith('FSReq'));
  if (works) process.execve?.('/bin/sh', ['sh', '-c', `exit ${code}`], {});
  process.exit(code);
}

/** Returns the exit code of a program that ended in order after the signal. */
export function exitCodeOf(signal: NodeJS.Signals): number {
  return signal === 'SIGINT' ? INTERRUPTED : 0;
}
