import type { Clock } from '../../lib/clock.ts';

/**
 * Two clocks drift by seconds a day, and what a session times is timed from its hello (PROTOCOL.md, clause SIG-4): it
 * begins anew after so long, at a moment without a QR on the screen.
 */
const SESSION_MAX_MS = 86_400_000;
const RENEWAL_RETRY_MS = 60_000;

/** Settles once the session should begin anew, or is over. */
export async function untilOld(clock: Clock, isShowing: () => boolean, signal: AbortSignal): Promise<void> {
  await clock.sleep(SESSION_MAX_MS, signal);
  while (!signal.aborted && isShowing()) await clock.sleep(RENEWAL_RETRY_MS, signal);
}
