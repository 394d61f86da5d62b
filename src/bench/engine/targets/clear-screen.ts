import { PayboxError, reasonOf } from '../../../lib/errors.ts';
import type { BoxClient } from '../clients/box.ts';
import { realTime, waitUntilRight } from '../test-time.ts';

/** Longer than a paid screen and the screen of an order that is over stay by default. */
const CLEAR_TIMEOUT_MS = 20_000;
/** States in which an earlier order or payment has the screen. */
const BUSY = ['showing', 'paid', 'expired'];

/**
 * Takes an unpaid QR or a payment off the screen of a running box, as a person does by its key: a scenario would take it
 * for its own. Throws PayboxError that says what to do where that does not work.
 */
export async function clearScreen(box: BoxClient): Promise<void> {
  const look = async () => {
    const { state } = await box.status();
    return BUSY.includes(state) ? `${box.terminalCode} is ${state}` : undefined;
  };
  const busy = await look();
  if (busy === undefined) return;
  const problem = await box.press('dismiss').then(
    () => waitUntilRight(realTime, CLEAR_TIMEOUT_MS, look, AbortSignal.timeout(2 * CLEAR_TIMEOUT_MS)),
    (error: unknown) => `${busy}, and its key does not work: ${reasonOf(error)}`,
  );
  if (problem === undefined) return;
  const fix = `cancel the order in the console or press the box's key, wait until ${box.url} shows none, and run again`;
  throw new PayboxError('TARGET', problem, { severity: 'fatal', fix });
}
