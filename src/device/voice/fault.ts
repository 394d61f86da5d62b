import { PayboxError, reasonOf } from '../../lib/errors.ts';

/** Returns an error of sound or light: `what` happened, and the `fix`. The next try may succeed. */
export function voiceFault(what: string, fix: string, cause?: unknown): PayboxError {
  return new PayboxError('VOICE_FAULT', what, { severity: 'retryable', fix, cause });
}

/** Returns the problem and the advice, in one line. */
export function reasonAndFix(error: unknown): string {
  const fix = error instanceof PayboxError && error.fix !== '' ? ` (${error.fix})` : '';
  return `${reasonOf(error)}${fix}`;
}
