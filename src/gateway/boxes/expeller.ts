import type { Clock } from '../../lib/clock.ts';
import type { Hub } from './hub.ts';

/** How long a refusal may take to reach a box before its connections are closed. */
const REFUSAL_MS = 1_000;

/** Returns a function that ends the session of a box and its connections. */
export function expeller(hub: Hub, clock: Clock, dropperOf: (terminalCode: string) => (() => void) | undefined) {
  return async (terminalCode: string, reason: string, disabled = false) => {
    const drop = dropperOf(terminalCode);
    // The refusal must reach the box first, so that the box removes its QR at once (clause MSG-8).
    if (await hub.expel(terminalCode, reason, disabled)) await clock.sleep(REFUSAL_MS);
    drop?.();
  };
}
