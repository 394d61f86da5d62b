import { PayboxError } from '../lib/errors.ts';

/** The screen failed: `what` happened and the `fix`. It may be well again at the next try. */
export function displayFault(what: string, fix: string, cause?: unknown): PayboxError {
  return new PayboxError('DISPLAY_FAULT', what, { severity: 'retryable', fix, cause });
}

/** What drawing on a display that has been closed throws. */
export function closedFault(): PayboxError {
  return displayFault('the display has been closed', 'open it again');
}
