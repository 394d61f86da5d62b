import type { Code } from '../../protocol/codes.ts';
import { accept, type Result, refuse } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';

/** The row of a push that another gateway awaits is read this often. */
const READ_EVERY_MS = 200;

/**
 * Returns what answers a repeated push: SUCCESS at once if the box shows this order. While another gateway awaits a push
 * of it, waits for that one's answer. Returns undefined if there is no push to join. A push that was not confirmed in
 * time is not joined (PROTOCOL.md, clause SND-9).
 */
export async function joinedPush(
  { clock, config, place }: World,
  { store }: Stored,
  orderRef: string,
  terminalCode: string,
): Promise<Result<undefined> | undefined> {
  for (let awaited: string | undefined; ; ) {
    const nowMs = clock.wallMs();
    const push = await store.pushes.pushOnBox(orderRef, terminalCode, config.confirm, nowMs);
    if (push === 'confirmed') return accept(undefined);
    if (push === undefined) {
      const { status, code } = (awaited === undefined ? undefined : await store.pushes.state(awaited)) ?? {};
      return status === 'failed' && code ? refuse(code as Code, 'the push has failed') : undefined;
    }
    if (place.sharing === undefined || nowMs - push.sinceMs > config.confirmTimeoutMs) return undefined;
    awaited = push.id;
    await clock.sleep(READ_EVERY_MS);
  }
}
