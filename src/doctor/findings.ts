import { PayboxError, reasonOf } from '../lib/errors.ts';

/** One finding of `paybox doctor`: what was checked, how it stands, and what to do when it does not stand well. */
export interface Finding {
  check: string;
  result: 'ok' | 'warning' | 'failed';
  found: string;
  fix: string;
}

/** A finding that needs nothing done. */
export function well(check: string, found: string): Finding {
  return { check, result: 'ok', found, fix: '' };
}

/** What an error says, with its own fix or, where it has none, with `otherFix`. */
export function failed(check: string, error: unknown, otherFix: string): Finding {
  const own = error instanceof PayboxError ? error.fix : '';
  return { check, result: 'failed', found: reasonOf(error), fix: own === '' ? otherFix : own };
}
