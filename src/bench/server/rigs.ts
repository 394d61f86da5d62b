import { systemClock } from '../../lib/clock.ts';
import { reasonWithFix } from '../run/run.ts';
import { reasonToSkip } from '../target.ts';
import { durationMs } from '../vocabulary/variables.ts';
import { rigOptions } from './orders.ts';
import { Rig } from './rig.ts';
import { Refusal, type ServerDeps } from './route.ts';
import { LIMITS } from './schemas.ts';

const ENDED_EARLY = 'the stand was ended before it was open';
const AGAIN = 'open another with POST /stands';

/** The stands of a server, each with a gateway and boxes of its own. */
export class Rigs {
  readonly #deps: ServerDeps;
  readonly #stands = new Map<string, Rig>();
  readonly #opening = new Set<Promise<Rig>>();
  /** Why those that are over have ended. */
  readonly #ended = new Map<string, string>();
  readonly #closing = new AbortController();
  #count = 0;

  constructor(deps: ServerDeps) {
    this.#deps = deps;
  }

  all(): readonly Rig[] {
    return [...this.#stands.values()];
  }

  /** Opens one as the body says; one whose caller has gone meanwhile is ended. Throws ConfigError and Refusal. */
  async open(body: unknown, gone: AbortSignal): Promise<Rig> {
    this.#closing.signal.throwIfAborted();
    if (this.#stands.size + this.#opening.size >= LIMITS.stands) {
      const ids = [...this.#stands.keys()].join(', ');
      throw new Refusal(429, `${LIMITS.stands} stands are open already`, `end one with DELETE /stands/{id}: ${ids}`);
    }
    const given = AbortSignal.any([gone, this.#closing.signal]);
    const opening = this.#open(body, given);
    this.#opening.add(opening);
    try {
      const stand = await opening;
      if (!given.aborted) return stand;
      await this.end(stand.id, 'its caller had gone before it was open');
      throw new Refusal(503, ENDED_EARLY, AGAIN);
    } finally {
      this.#opening.delete(opening);
    }
  }

  /** Throws Refusal for one that there is not, or that is over. */
  get(id: string): Rig {
    const stand = this.#stands.get(id);
    if (stand !== undefined) return stand;
    const reason = this.#ended.get(id);
    if (reason === undefined) throw new Refusal(404, `there is no stand ${id}`, 'open one with POST /stands');
    throw new Refusal(410, `${id} has ended: ${reason}`, AGAIN);
  }

  /** Ends one; settled once nothing of it is left. Changes nothing about one that has ended. Throws Refusal. */
  async end(id: string, reason: string): Promise<void> {
    if (this.#ended.has(id)) return;
    const stand = this.get(id);
    await stand.close(reason);
    if (!this.#stands.delete(id)) return;
    this.#ended.set(id, reason);
    const [oldest] = this.#ended.keys();
    if (this.#ended.size > LIMITS.standsRemembered && oldest !== undefined) this.#ended.delete(oldest);
  }

  /** Ends all, those that are opening too; settled once nothing of them is left. */
  async close(reason: string): Promise<void> {
    this.#closing.abort(new Refusal(503, 'the server ends', 'start it again'));
    await Promise.allSettled(this.#opening);
    await Promise.all(this.all().map(({ id }) => this.end(id, reason)));
  }

  async #open(body: unknown, signal: AbortSignal): Promise<Rig> {
    this.#count += 1;
    const id = `stand-${this.#count}`;
    const { request, kind, seed, scenario } = await rigOptions(body, id, this.#deps);
    const hindered = await reasonToSkip(scenario, kind);
    if (hindered !== undefined) throw new Refusal(422, `body: ${hindered}`, 'choose another target, or fewer boxes');
    const { boxes, enrolled } = scenario;
    const { callbackUrl, idle } = request;
    const target = await kind.open({ boxes, enrolled, callbackUrl, signal }).catch((error: unknown) => {
      if (signal.aborted) throw new Refusal(503, ENDED_EARLY, AGAIN);
      throw new Refusal(503, reasonWithFix(error), 'see what the server says, and the logs of --report DIR');
    });
    const stand = new Rig(id, { scenario, kind, target, seed, idleMs: durationMs(idle) ?? 0, callbackUrl });
    await stand.begin();
    this.#stands.set(id, stand);
    void this.#endWhenIdle(stand, idle);
    return stand;
  }

  async #endWhenIdle(stand: Rig, idle: string): Promise<void> {
    for (let leftMs = stand.idleInMs; leftMs > 0 && !stand.ending.aborted; leftMs = stand.idleInMs) {
      await systemClock.sleep(leftMs, stand.ending);
    }
    if (!stand.ending.aborted) await this.end(stand.id, `nobody asked for ${idle}`);
  }
}
