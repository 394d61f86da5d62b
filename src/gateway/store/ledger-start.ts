import { existsSync } from 'node:fs';
import type { Kysely } from 'kysely';
import { ConfigError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { acceptLoss, type LedgerEnd, missingBetween, type Verdict, verifyLedger } from './ledger.ts';
import { Mark, type MarkedPlace, markFile, readMark } from './mark.ts';
import type { Tables } from './schema.ts';

/**
 * Looks through the store at a start, also for payments that the mark in dataDir knows and the store does not. Throws
 * ConfigError that names what is damaged or missing. Without a mark, which is how an owner says so, it goes on with what is
 * whole, and the log names the rest. Returns the mark that is to move on with the ledger; a PostgreSQL store without dataDir
 * has none.
 */
export async function openLedger(db: Kysely<Tables>, place: MarkedPlace, log: Logger): Promise<Mark | undefined> {
  const file = markFile(place);
  const known = readMark(file);
  let verdict = await verifyLedger(db);
  const problems = [...verdict.problems, ...(await lostSince(known, verdict))];
  if (problems.length > 0) {
    if (known !== undefined) throw lossOf(problems, file);
    for (const problem of problems) log.error('store-loss-accepted', { problem, setAsideIn: 'damaged_rows' });
    await acceptLoss(db);
    verdict = await verifyLedger(db);
  } else if (known === undefined && verdict.end.seq > 0) {
    log.warn('mark-new', { file: file, payments: verdict.end.seq });
  }
  return existsSync(place.dataDir) ? new Mark(file, verdict.end, log) : undefined;
}

async function lostSince(known: LedgerEnd | undefined, { end, holds }: Verdict): Promise<string[]> {
  if (known === undefined) return [];
  if (known.seq > end.seq) return [`${missingBetween(end.seq, known.seq + 1)}, which had been acknowledged`];
  return (await holds(known)) ? [] : [`payment ${known.seq} is another than the one that had been acknowledged`];
}

function lossOf(problems: readonly string[], file: string): ConfigError {
  return new ConfigError(
    `dataDir: the store has lost what it kept: ${problems.join('; ')}`,
    `restore a copy of the store, or move ${file} away to go on without what is named here; nothing is deleted`,
  );
}
