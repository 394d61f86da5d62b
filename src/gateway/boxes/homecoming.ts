import { reasonOf } from '../../lib/errors.ts';
import type { World } from '../common/world.ts';
import type { BrokerConnection } from './broker-connection.ts';

const STEP_MS = 1_000;
/** In each step this share of the boxes that have their home elsewhere go there, within the two limits. */
const SHARE_PER_STEP = 0.02;
const PER_STEP_MIN = 1;
const PER_STEP_MAX = 50;
/** A gateway that ends has a moment only. Boxes that are not sent by then find a door a second later. */
const LEAVING = { stepMs: 100, perStep: 500 } as const;
/** A box may come to a gateway that is not its home, at any time after a change. */
const LOOK_MS = 60_000;

/**
 * Sends boxes to the lane of their home, after a gateway has come back: a few each second, so that they do not all say
 * hello there at once. A gateway that ends sends all of them, so that they need not wait for a door. Boxes over HTTP stay
 * where their stream is.
 */
export class Homecoming {
  readonly #world: World;
  readonly #connection: () => BrokerConnection | undefined;
  readonly #over = new AbortController();
  #look = new AbortController();
  #running: Promise<void> | undefined;

  constructor(world: World, connection: () => BrokerConnection | undefined) {
    this.#world = world;
    this.#connection = connection;
  }

  /** Begins to look for boxes whose home is elsewhere. At a gateway alone nobody calls this. */
  changed(): void {
    this.#look.abort();
    this.#look = new AbortController();
    this.#running ??= this.#run();
  }

  close(): void {
    this.#over.abort();
    this.#look.abort();
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#world;
    while (!this.#over.signal.aborted) {
      const look = this.#look.signal;
      const away = this.#away();
      await this.#sendHome(away, look).catch((error: unknown) =>
        log.warn('boxes-not-moved', { reason: reasonOf(error) }),
      );
      if (!look.aborted) await clock.sleep(away.length > 0 ? this.#stepMs : LOOK_MS, look);
    }
  }

  get #stepMs(): number {
    return this.#world.place.lanes.isLeaving ? LEAVING.stepMs : STEP_MS;
  }

  /** Returns the boxes here whose home is another lane. */
  #away(): string[] {
    const { lanes } = this.#world.place;
    return (
      this.#connection()
        ?.boxes()
        .filter((it) => lanes.homeOf(it) !== lanes.own) ?? []
    );
  }

  /** Sends these boxes home, step by step, until that is done or the homes change. */
  async #sendHome(away: readonly string[], look: AbortSignal): Promise<void> {
    const { clock, place } = this.#world;
    const share = Math.min(Math.max(Math.ceil(away.length * SHARE_PER_STEP), PER_STEP_MIN), PER_STEP_MAX);
    const perStep = place.lanes.isLeaving ? LEAVING.perStep : share;
    for (let at = 0; at < away.length; at += perStep) {
      if (at > 0) await clock.sleep(this.#stepMs, look);
      if (look.aborted) return;
      const step = away.slice(at, at + perStep);
      await Promise.all(step.map((it) => this.#connection()?.move(it, place.lanes.homeOf(it))));
    }
  }
}
