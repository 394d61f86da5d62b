import type { Display, Frame } from '../../display/contract.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Scene } from '../../scene.ts';

/** When a display is to be refreshed, and with what: only while something is on it, and however often it is drawn on. */
export class RefreshTimer {
  readonly #refresh: Display['refresh'];
  readonly #clock: Clock;
  #shown: { frame: Frame; scene: Scene } | undefined;
  #atMs: number | undefined;

  constructor({ refresh }: Display, clock: Clock) {
    this.#refresh = refresh;
    this.#clock = clock;
  }

  /** To be told of each frame that the display has taken. */
  shows(frame: Frame, scene: Scene): void {
    this.#shown = scene.kind === 'blank' ? undefined : { frame, scene };
    if (this.#shown === undefined) this.#atMs = undefined;
    else this.#atMs ??= this.#next();
  }

  /** Milliseconds until it is due, not below 0; undefined where it never is. */
  leftMs(): number | undefined {
    return this.#atMs === undefined ? undefined : Math.max(0, this.#atMs - this.#clock.monotonicMs());
  }

  /** Settles once what was drawn last is on the display. Throws as the display's `refresh` does. */
  async run(): Promise<void> {
    if (this.#shown === undefined) return;
    await this.#refresh?.run(this.#shown.frame, this.#shown.scene);
    this.#atMs = this.#next();
  }

  #next(): number | undefined {
    return this.#refresh && this.#clock.monotonicMs() + this.#refresh.everyMs;
  }
}
