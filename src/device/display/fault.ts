import { PayboxError } from '../../lib/errors.ts';

/** Returns an error of the screen: `what` happened, and the `fix`. The next try may succeed. */
export function displayFault(what: string, fix: string, cause?: unknown): PayboxError {
  return new PayboxError('DISPLAY_FAULT', what, { severity: 'retryable', fix, cause });
}

/** Makes the error of a draw on a closed display. */
export function closedFault(): PayboxError {
  return displayFault('the display has been closed', 'open it again');
}
