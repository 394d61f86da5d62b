import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';

/** The row of a push that another gateway awaits is read this often. */
const READ_EVERY_MS = 200;

/**
 * Returns whether a box shows this order, so that a repeated push is answered at once. While another gateway awaits a
 * push of it, this waits for that one. A push that was not confirmed in time is not joined (PROTOCOL.md, clause SND-9).
 */
export async function joinsPush(
  { clock, config, place }: World,
  { store }: Stored,
  orderRef: string,
  terminalCode: string,
): Promise<boolean> {
  for (;;) {
    const nowMs = clock.wallMs();
    const push = await store.pushes.pushOnBox(orderRef, terminalCode, config.confirm, nowMs);
    if (push === undefined || push === 'confirmed') return push === 'confirmed';
    if (place.others().length === 0 || nowMs - push.sinceMs > config.confirmTimeoutMs) return false;
    await clock.sleep(READ_EVERY_MS);
  }
}
