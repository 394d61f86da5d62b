import { PayboxError } from '../lib/errors.ts';

/** The screen failed: `what` happened and the `fix`. It may be well again at the next try. */
export function displayFault(what: string, fix: string, cause?: unknown): PayboxError {
  return new PayboxError('DISPLAY_FAULT', what, { severity: 'retryable', fix, cause });
}

/** Thrown by drawing on a closed display. */
export function closedFault(): PayboxError {
  return displayFault('the display has been closed', 'open it again');
}
