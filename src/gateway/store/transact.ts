import type { Kysely, Transaction } from 'kysely';
import { systemClock } from '../../lib/clock.ts';
import { PayboxError, reasonOf, systemCodeOf } from '../../lib/errors.ts';
import { systemRandom } from '../../lib/random.ts';
import type { Tables } from './schema/tables.ts';

/** SQLSTATEs: the transaction could not have run before or after another one, or two waited for each other. */
const CONFLICTS = ['40001', '40P01'];
/** A SQLSTATE. Another transaction may have inserted this key meanwhile. Then a second try finds its row. */
const UNIQUE_VIOLATION = '23505';
const UNIQUE_TRIES_MAX = 3;
const TRIES_MAX = 30;
/** The longest wait before the second try. It grows with each try, so that all tries take about a second. */
const WAIT_MS = 4;

/**
 * Returns whether a session has its box. If it has, nobody takes the box before the transaction of this database has
 * ended.
 */
export type HeldInTransaction = (trx: Kysely<Tables>) => Promise<boolean>;

/** Returns whether PostgreSQL has undone this work only because of what somebody else did at the same moment. */
export function isConflict(error: unknown): boolean {
  return CONFLICTS.includes(systemCodeOf(error) ?? '');
}

/**
 * Runs `work` in one transaction, and settles once that is durable. Stores nothing when `work` or the store fails.
 * Several gateways may use a PostgreSQL database at once: `work` is run again from its start when its transaction
 * conflicted with another one. So it must change nothing outside the transaction.
 */
export function transact<T>(db: Kysely<Tables>, work: (trx: Transaction<Tables>) => Promise<T>): Promise<T> {
  return repeated(
    () => db.transaction().execute(work),
    (error, tries) => isConflict(error) || (systemCodeOf(error) === UNIQUE_VIOLATION && tries < UNIQUE_TRIES_MAX),
  );
}

/**
 * Runs `attempt` until it succeeds, and again while `isRepeated` says so of its error. Waits before each try for a random
 * time, so that two gateways do not meet again. After many tries throws a retryable PayboxError.
 */
export async function repeated<T>(
  attempt: () => Promise<T>,
  isRepeated: (error: unknown, tries: number) => boolean = isConflict,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!isRepeated(error, tries)) throw error;
      if (tries === TRIES_MAX) throw givenUp(error);
      await systemClock.sleep(systemRandom.fraction() * WAIT_MS * tries);
    }
  }
}

function givenUp(cause: unknown): PayboxError {
  const what = `the database has undone a change ${TRIES_MAX} times, because others changed the same rows: ${reasonOf(cause)}`;
  return new PayboxError('STORAGE_FAULT', what, { severity: 'retryable', fix: 'repeat the call', cause });
}
