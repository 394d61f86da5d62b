import { PayboxError, reasonOf } from '../../lib/errors.ts';

/** One finding of `paybox doctor`: the check, its result, and the fix if it failed. */
export interface Finding {
  check: string;
  /** The result. With `skipped` nobody can find it out from here, and `found` says why. */
  result: 'ok' | 'warning' | 'failed' | 'skipped';
  found: string;
  fix: string;
}

/** Returns a finding without a problem. */
export function well(check: string, found: string): Finding {
  return { check, result: 'ok', found, fix: '' };
}

/** Returns a check that could not be made. */
export function skipped(check: string, why: string): Finding {
  return { check, result: 'skipped', found: why, fix: '' };
}

/** Returns a finding from an error, with the error's own fix or else `otherFix`. */
export function failed(check: string, error: unknown, otherFix: string): Finding {
  const own = error instanceof PayboxError ? error.fix : '';
  return { check, result: 'failed', found: reasonOf(error), fix: own === '' ? otherFix : own };
}
