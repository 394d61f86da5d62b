import { accept, type Result, refuse } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import { outcomeOf } from './push-outcome.ts';

/** The row of a push that another gateway awaits is read this often. */
const READ_EVERY_MS = 200;

/** A push that is repeated. */
export interface Repeated {
  /** The id of its order. */
  orderRef: string;
  terminalCode: string;
  /** A push of the order that another gateway has begun since this call. Its answer is the answer of this call. */
  begunElsewhere?: string | undefined;
}

/**
 * Returns what answers a repeated push: SUCCESS at once if the box shows this order. While another gateway awaits a push
 * of it, waits for that one, and returns its answer, whatever has become of the order. Returns undefined if there is no
 * push to join. A push that was not confirmed in time is not joined (PROTOCOL.md, clause SND-9).
 */
export async function joinedPush(
  { clock, config, place }: World,
  { store }: Stored,
  { orderRef, terminalCode, begunElsewhere }: Repeated,
): Promise<Result<undefined> | undefined> {
  const { confirm, confirmTimeoutMs } = config;
  const begunMs = clock.monotonicMs();
  for (let awaited = begunElsewhere; ; ) {
    const nowMs = clock.wallMs();
    const push = await store.pushes.pushOnBox(orderRef, terminalCode, confirm, nowMs);
    if (push === 'confirmed') return accept(undefined);
    if (push === undefined) {
      if (awaited === undefined) return undefined;
      const state = await store.pushes.state(awaited);
      // The order may be pushed to two boxes at once.
      if (state !== undefined && state.terminalCode !== terminalCode) return undefined;

      const outcome = outcomeOf(state, confirm);
      if (outcome !== undefined) return outcome;
      if (clock.monotonicMs() - begunMs > confirmTimeoutMs) {
        return refuse('BOX_TIMEOUT', `no confirmation within ${confirmTimeoutMs} ms`);
      }
    } else {
      if (place.sharing === undefined || nowMs - push.sinceMs > confirmTimeoutMs) return undefined;
      awaited = push.id;
    }
    await clock.sleep(READ_EVERY_MS);
  }
}
