import { systemClock, untilAborted } from '../../lib/clock.ts';
import { reasonWithFix } from '../engine/run/run.ts';
import { reasonToSkip } from '../engine/target.ts';
import { durationMs } from '../scenarios/durations.ts';
import { rigOptions } from './orders.ts';
import { Rig } from './rig.ts';
import { Refusal, type ServerDeps } from './route.ts';
import { LIMITS } from './schemas.ts';

const ENDED_EARLY = 'the rig was ended before it was open';
const AGAIN = 'open another';

/** Holds the rigs of a server. Each has its own gateway and boxes. */
export class Rigs {
  readonly #deps: ServerDeps;
  readonly #rigs = new Map<string, Rig>();
  readonly #opening = new Set<Promise<Rig>>();
  /** The reasons why rigs have ended. */
  readonly #ended = new Map<string, string>();
  readonly #closing = new AbortController();
  readonly #rigsMax: number;
  #count = 0;

  constructor(deps: ServerDeps, rigsMax: number = LIMITS.rigs) {
    this.#deps = deps;
    this.#rigsMax = rigsMax;
  }

  all(): readonly Rig[] {
    return [...this.#rigs.values()];
  }

  /** Opens a rig as the body asks, and ends it if the caller disconnects meanwhile. Throws ConfigError and Refusal. */
  async open(body: unknown, gone: AbortSignal): Promise<Rig> {
    this.#closing.signal.throwIfAborted();
    if (this.#rigs.size + this.#opening.size >= this.#rigsMax) {
      const ids = [...this.#rigs.keys()].join(', ');
      throw new Refusal(429, `${this.#rigsMax} rigs are open already`, `end one of them: ${ids}`);
    }
    const given = AbortSignal.any([gone, this.#closing.signal]);
    const opening = this.#open(body, given);
    this.#opening.add(opening);
    try {
      const rig = await opening;
      if (!given.aborted) return rig;
      await this.end(rig.id, 'its caller had gone before it was open', this.#closing.signal.aborted);
      throw new Refusal(503, ENDED_EARLY, AGAIN);
    } finally {
      this.#opening.delete(opening);
    }
  }

  /** Returns a rig. Throws Refusal when it does not exist or has ended. */
  get(id: string): Rig {
    const rig = this.#rigs.get(id);
    if (rig !== undefined) return rig;
    const reason = this.#ended.get(id);
    if (reason === undefined) throw new Refusal(404, `there is no rig ${id}`, 'open one');
    throw new Refusal(410, `${id} has ended: ${reason}`, AGAIN);
  }

  /** Ends a rig; resolves when all its parts have ended. Does nothing for one that has ended. Throws Refusal. */
  async end(id: string, reason: string, isHurried = false): Promise<void> {
    if (this.#ended.has(id)) return;
    const rig = this.get(id);
    await rig.close(reason, isHurried);
    if (!this.#rigs.delete(id)) return;
    this.#ended.set(id, reason);
    const [oldest] = this.#ended.keys();
    if (this.#ended.size > LIMITS.rigsRemembered && oldest !== undefined) this.#ended.delete(oldest);
  }

  /**
   * Ends all rigs, including those that are opening. Resolves when all their parts have ended, or those that hang are
   * abandoned.
   */
  async close(reason: string): Promise<void> {
    this.#closing.abort(new Refusal(503, 'the server ends', 'start it again'));
    await Promise.allSettled(this.#opening);
    await Promise.all(this.all().map(({ id }) => this.end(id, reason, true)));
  }

  async #open(body: unknown, signal: AbortSignal): Promise<Rig> {
    this.#count += 1;
    const id = `rig-${this.#count}`;
    const { request, kind, seed, scenario } = await rigOptions(body, id, this.#deps);
    const hindered = await untilAborted(signal, reasonToSkip(scenario, kind));
    if (hindered !== undefined) throw new Refusal(422, `body: ${hindered}`, 'choose another target, or fewer boxes');
    const { boxes, enrolled } = scenario;
    const { callbackUrl, idle } = request;
    const target = await kind.open({ boxes, enrolled, callbackUrl, signal }).catch((error: unknown) => {
      if (signal.aborted) throw new Refusal(503, ENDED_EARLY, AGAIN);
      throw new Refusal(503, reasonWithFix(error), 'see the output of the server, and the logs of --report DIR');
    });
    const rig = new Rig(id, { scenario, kind, target, seed, idleMs: durationMs(idle) ?? 0, callbackUrl });
    // The lines below end a rig whose caller has gone.
    await untilAborted(signal, rig.begin()).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    this.#rigs.set(id, rig);
    void this.#endWhenIdle(rig, idle);
    return rig;
  }

  async #endWhenIdle(rig: Rig, idle: string): Promise<void> {
    for (let leftMs = rig.idleInMs; leftMs > 0 && !rig.ending.aborted; leftMs = rig.idleInMs) {
      await systemClock.sleep(leftMs, rig.ending);
    }
    if (!rig.ending.aborted) await this.end(rig.id, `nobody asked for ${idle}`);
  }
}
