import { PayboxError, reasonOf } from '../../../lib/errors.ts';
import type { BoxClient } from '../clients/box.ts';
import { realTime, waitUntilRight } from '../test-time.ts';

/** Paid screens, and the screens of orders that are over, stay for less time than this by default. */
const CLEAR_TIMEOUT_MS = 20_000;
/** In these states an earlier order or payment has the screen. */
const BUSY = ['showing', 'paid', 'expired'];

/**
 * Clears an unpaid QR or a payment from the screen of a running box, as a person does by its key. Otherwise a scenario
 * would take it for its own. Throws PayboxError that says what to do where the key does not work.
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
