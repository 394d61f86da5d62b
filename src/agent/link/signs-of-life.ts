import type { Clock } from '../../lib/clock.ts';
import type { Random } from '../../lib/random.ts';
import { BOX_ALIVE_MS } from '../../protocol/http-api.ts';

/**
 * Asks the gateway again and again whether it hears the box in its session, because a connection may be well although
 * messages come to nobody (PROTOCOL.md, clause MSG-11).
 */
export class SignsOfLife {
  readonly #deps: { clock: Clock; random: Random };
  /** The sign of life that has not been answered. */
  #unanswered: string | undefined;

  constructor(deps: { clock: Clock; random: Random }) {
    this.#deps = deps;
  }

  heard(aliveId: string): void {
    if (aliveId === this.#unanswered) this.#unanswered = undefined;
  }

  /** Has one said every `BOX_ALIVE_MS`; settles once one was not answered by the next, or the session is over. */
  async untilUnheard(say: (aliveId: string) => void, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#deps;
    for (;;) {
      await clock.sleep(BOX_ALIVE_MS, signal);
      if (signal.aborted || this.#unanswered !== undefined) return;
      const aliveId = random.uuid();
      this.#unanswered = aliveId;
      say(aliveId);
    }
  }
}
