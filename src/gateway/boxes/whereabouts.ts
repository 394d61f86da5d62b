import type { World } from '../common/world.ts';
import type { Session } from './session.ts';

/** A box that is changing its gateway is looked for this often. */
const LOOK_EVERY_MS = 100;

/** Who has a box: its session here, or the run of another gateway. */
export type BoxHolder = Session | string;

/** Finds the gateway that has a box. A box that is changing its gateway has none for a moment. */
export class Whereabouts {
  readonly #world: World;
  readonly #sessions: ReadonlyMap<string, Session>;
  readonly #over = new AbortController();

  constructor(world: World, sessions: ReadonlyMap<string, Session>) {
    this.#world = world;
    this.#sessions = sessions;
  }

  /** Returns whether a push to a box is worth a try. Its gateway may know better (see `Place.holder`). */
  async isReachable(terminalCode: string): Promise<boolean> {
    return (await this.#holder(terminalCode)) !== undefined || (await this.#world.place.isComing(terminalCode));
  }

  /** Returns who has a box, or undefined if it is away. Waits until this monotonic time for one that changes its gateway. */
  async find(terminalCode: string, untilMs: number): Promise<BoxHolder | undefined> {
    const { clock, place } = this.#world;
    for (;;) {
      const holder = await this.#holder(terminalCode);
      if (holder !== undefined || clock.monotonicMs() >= untilMs || !(await place.isComing(terminalCode)))
        return holder;
      if (this.#over.signal.aborted) return undefined;
      await clock.sleep(LOOK_EVERY_MS, this.#over.signal);
    }
  }

  /**
   * Returns whether a box that this holder has lost has another session at another gateway, or is on its way to one.
   * Never rejects.
   */
  async hasLeft(terminalCode: string, holder: BoxHolder): Promise<boolean> {
    const { place } = this.#world;
    if (this.#over.signal.aborted || place.sharing === undefined) return false;
    if (this.#sessions.has(terminalCode)) return typeof holder === 'string';
    try {
      const now = await place.elsewhere(terminalCode);
      return now === undefined ? await place.isComing(terminalCode) : now.run !== holder;
    } catch {
      return false;
    }
  }

  /** Ends all waits. */
  close(): void {
    this.#over.abort();
  }

  async #holder(terminalCode: string): Promise<BoxHolder | undefined> {
    return this.#sessions.get(terminalCode) ?? (await this.#world.place.holder(terminalCode));
  }
}
