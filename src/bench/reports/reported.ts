import type { Outcome, Result } from '../run/run.ts';

/**
 * What reports tell of: a scenario that was run, or a check that was made. `differs`, of a check: another choice where the
 * specification leaves one.
 */
export type ReportRow = Omit<Result, 'outcome'> & { outcome: Outcome | 'differs' };
