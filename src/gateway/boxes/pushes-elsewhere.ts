import { reasonOf } from '../../lib/errors.ts';
import type { ShowBody } from '../../protocol/messages.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import { outcomeOf } from '../partner/push-outcome.ts';
import type { Confirmations } from './confirmations.ts';

/** A holder is asked again, and the row read, this often. */
const ASK_EVERY_MS = 1_000;

/** Has pushes shown by the gateways that have their boxes. */
export class PushesElsewhere {
  readonly #world: World;
  readonly #stored: Stored;
  readonly #confirmations: Confirmations;

  constructor(world: World, stored: Stored, confirmations: Confirmations) {
    this.#world = world;
    this.#stored = stored;
    this.#confirmations = confirmations;
  }

  /**
   * Asks the gateway that has the box to show a push, again every second until `signal` aborts, and settles its
   * confirmation. A question or an answer may be lost, and the box may move to another gateway.
   */
  async ask(
    holder: string,
    box: string,
    show: ShowBody,
    { begunMs, signal }: { begunMs: number; signal: AbortSignal },
  ): Promise<void> {
    const { clock, log, config, place } = this.#world;
    const { confirm } = config;
    const { pushId, expiresInMs } = show;
    let run = holder;
    for (let isFirst = true; !signal.aborted; isFirst = false) {
      const agedMs = Math.ceil(clock.monotonicMs() - begunMs);
      void this.#askOnce(run, box, { ...show, expiresInMs: Math.max(0, expiresInMs - agedMs) }, isFirst);
      await clock.sleep(ASK_EVERY_MS, signal);
      if (signal.aborted) return;
      try {
        const outcome = outcomeOf(await this.#stored.store.pushes.state(pushId), confirm);
        if (outcome !== undefined) this.#confirmations.settle(box, pushId, outcome);
        run = (await place.elsewhere(box))?.run ?? run;
      } catch (error) {
        log.warn('push-not-read', { box, pushId, reason: reasonOf(error) });
      }
    }
  }

  /** Asks this run to show a push. Only an answer of the gateway that has the box counts. Never rejects. */
  async #askOnce(run: string, box: string, show: ShowBody, mayBeLost: boolean): Promise<void> {
    const { place, config, clock } = this.#world;
    const question = { box, show, askedAtMs: clock.wallMs() };
    const answer = await place.ask(run, 'push', question, config.confirmTimeoutMs, mayBeLost);
    if (answer === undefined) return;
    const isOffline = !answer.ok && answer.code === 'BOX_OFFLINE';
    const now = isOffline ? await place.elsewhere(box).catch(() => undefined) : undefined;
    if (now === undefined || now.run === run) this.#confirmations.settle(box, show.pushId, answer);
    else if (this.#confirmations.isAwaited(box, show.pushId)) await this.#askOnce(now.run, box, show, false);
  }
}
