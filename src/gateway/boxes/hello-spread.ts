import { withDeadline } from '../../lib/clock.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import { spreadMsFor } from './welcome.ts';

/** Lane 0 has no gateway of its own. */
const LANES_WITHOUT_GATEWAY = 1;
/** The presence waits this long for the number of boxes. After that it uses the last one that was read. */
const COUNT_WITHIN_MS = 500;

/**
 * Says over which time the boxes of a lane spread their hellos (PROTOCOL.md, clause PRE-6). A broker is served without
 * the store, too, so the answer never waits long for it.
 */
export class HelloSpread {
  readonly #world: World;
  readonly #stored: Stored;
  #boxes = 0;

  constructor(world: World, stored: Stored) {
    this.#world = world;
    this.#stored = stored;
  }

  /** Returns the time in milliseconds. Never rejects. */
  async ms(): Promise<number> {
    const { clock, place } = this.#world;
    const counted = this.#count().catch(() => undefined);
    await withDeadline(clock, COUNT_WITHIN_MS, counted);
    const { count: lanes } = place.lanes;
    return spreadMsFor(this.#boxes / (lanes === undefined ? 1 : Math.max(lanes - LANES_WITHOUT_GATEWAY, 1)));
  }

  async #count(): Promise<void> {
    this.#boxes = await this.#stored.directory.boxCount();
  }
}
