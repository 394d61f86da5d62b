import type { KnownBox } from '../../common/directory.ts';
import type { Stored } from '../../common/stored.ts';
import type { World } from '../../common/world.ts';

/** The waits before each greeting of a box that has enrolled. It subscribes to its topic only after that. */
const GREETING_WAITS_MS = [0, 250, 500, 1_000, 2_000, 4_000, 8_000, 15_000];
/** The wait where the broker does not report listeners: a box has subscribed within this time. */
const BLIND_GREETING_WAITS_MS = [2_000];
const FIRST_WAIT_MS = 1_000;
const WAIT_MAX_MS = 15_000;

/** Returns the waits before each greeting. `tellsListeners`: the broker reports whether a box listens. */
export function greetingWaitsMs(tellsListeners: boolean): readonly number[] {
  return tellsListeners ? GREETING_WAITS_MS : BLIND_GREETING_WAITS_MS;
}

/**
 * Calls `begin` until it has begun a session of this box, the box has no right to one, or `signal` aborts. The hub ends
 * sessions while its database is away, and a box of the dialect says nothing by itself.
 */
export async function beginAgain(
  { terminalCode, serialNumber }: KnownBox,
  begin: () => Promise<boolean>,
  { clock, log }: World,
  { directory }: Stored,
  signal: AbortSignal,
): Promise<void> {
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, WAIT_MAX_MS)) {
    await clock.sleep(waitMs, signal);
    if (signal.aborted) return;
    const box = await directory.box(terminalCode).catch(() => 'unknown' as const);
    if (box !== 'unknown' && (box?.serialNumber !== serialNumber || box.disabled)) return;
    if (!signal.aborted && box !== 'unknown' && (await begin())) {
      log.info('box-begun-again', { box: terminalCode });
      return;
    }
  }
}
