import { existsSync, rmSync } from 'node:fs';
import type { Kysely } from 'kysely';
import { ConfigError } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import { storeFile } from '../backup/store-files.ts';
import type { DeliveriesFor } from '../repositories/deliveries.ts';
import type { Tables } from '../schema/tables.ts';
import {
  acceptLossFile,
  HighWaterMark,
  highWaterMarkFile,
  readHighWaterMark,
  type StoreLocation,
} from './high-water-mark.ts';
import { acceptLoss, type LedgerCheck, missingBetween, verifyLedger } from './ledger.ts';

/**
 * Looks through the store at a start, also for payments that the mark in dataDir knows and the store does not. Throws
 * ConfigError that names what is damaged or missing, unless the owner has laid the file beside it that accepts this loss:
 * then it goes on with what is whole, owes anew what `owedFor` says, and the log names the rest. The file is for one start
 * and is deleted (PROTOCOL.md, clause STO-3). Returns the mark that is to move on with the ledger; a PostgreSQL store
 * without dataDir has none.
 */
export async function openLedger(
  db: Kysely<Tables>,
  place: StoreLocation,
  log: Logger,
  owedFor?: DeliveriesFor,
): Promise<HighWaterMark | undefined> {
  const [file, acceptance] = [highWaterMarkFile(place), acceptLossFile(place)];
  const known = readHighWaterMark(file);
  const isAccepted = existsSync(acceptance);
  let verdict = await verifyLedger(db);
  const problems = [...verdict.problems, ...(await lostSince(known, verdict, file))];
  if (problems.length > 0) {
    if (!isAccepted) throw lossOf(problems, place);
    for (const problem of problems) log.error('store-loss-accepted', { problem, setAsideIn: 'damaged_rows' });
    if (verdict.problems.length > 0) await acceptLoss(db, log, owedFor);
    verdict = await verifyLedger(db);
  } else if (known === undefined && verdict.end.seq > 0) {
    log.warn('mark-new', { file: file, payments: verdict.end.seq });
  }
  // Left there it would accept the next loss too, which nobody knows yet.
  if (isAccepted) rmSync(acceptance);
  if (isAccepted && problems.length === 0) log.warn('store-loss-none', { deleted: acceptance });
  return existsSync(place.dataDir) ? new HighWaterMark(file, verdict.end, log) : undefined;
}

async function lostSince(
  known: ReturnType<typeof readHighWaterMark>,
  { end, holds }: LedgerCheck,
  file: string,
): Promise<string[]> {
  if (known === undefined) return [];
  if (known === 'damaged') return [`${file} is damaged, by which a start knows whether payments are missing`];
  if (known.seq > end.seq) return [`${missingBetween(end.seq, known.seq + 1)}, which had been acknowledged`];
  return (await holds(known)) ? [] : [`payment ${known.seq} is another than the one that had been acknowledged`];
}

function lossOf(problems: readonly string[], place: StoreLocation): ConfigError {
  const folder = existsSync(place.dataDir) ? '' : `make the folder ${place.dataDir} and `;
  const store = place.databaseUrl === undefined ? storeFile(place.dataDir) : 'in PostgreSQL';
  return new ConfigError(
    `dataDir: the store ${store} is not whole: ${problems.join('; ')}`,
    `restore a copy of the store, or ${folder}make the empty file ${acceptLossFile(place)} to go on without what is named ` +
      'here; the start deletes that file, and nothing else',
  );
}
