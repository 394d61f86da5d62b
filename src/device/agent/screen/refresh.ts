import type { Clock } from '../../../lib/clock.ts';
import type { Display, Frame } from '../../display/contract.ts';
import type { Scene } from '../../scene.ts';

/**
 * Decides when to refresh a display, and with which frame. It runs only while the display shows something, and drawing
 * does not restart it.
 */
export class RefreshTimer {
  readonly #refresh: Display['refresh'];
  readonly #clock: Clock;
  #shown: { frame: Frame; scene: Scene } | undefined;
  #atMs: number | undefined;

  constructor({ refresh }: Display, clock: Clock) {
    this.#refresh = refresh;
    this.#clock = clock;
  }

  /** Records a frame that the display has accepted. */
  shows(frame: Frame, scene: Scene): void {
    this.#shown = scene.kind === 'blank' ? undefined : { frame, scene };
    if (this.#shown === undefined) this.#atMs = undefined;
    else this.#atMs ??= this.#next();
  }

  /** Returns the milliseconds until the next refresh, at least 0; undefined if none is due. */
  leftMs(): number | undefined {
    return this.#atMs === undefined ? undefined : Math.max(0, this.#atMs - this.#clock.monotonicMs());
  }

  /** Refreshes the display with the last frame. Throws as the display's `refresh` does. */
  async run(): Promise<void> {
    if (this.#shown === undefined) return;
    await this.#refresh?.run(this.#shown.frame, this.#shown.scene);
    this.#atMs = this.#next();
  }

  #next(): number | undefined {
    return this.#refresh && this.#clock.monotonicMs() + this.#refresh.everyMs;
  }
}
