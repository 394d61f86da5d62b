import { existsSync, rmSync } from 'node:fs';
import type { Kysely } from 'kysely';
import { ConfigError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { quarantineDamaged } from '../integrity/checksums.ts';
import {
  acceptLossFile,
  HighWaterMark,
  highWaterMarkFile,
  readHighWaterMark,
  type StoreLocation,
} from '../integrity/high-water-mark.ts';
import { type LedgerCheck, missingBetween, restartLedger, verifyLedger } from '../integrity/ledger.ts';
import type { Tables } from '../schema/tables.ts';
import { storeFile } from '../store-files.ts';
import { type DeliveriesFor, requeueDamaged } from './requeue.ts';

/**
 * Checks a store at the start, also against the mark in dataDir. Throws ConfigError that names damaged rows and missing
 * payments, unless an admin accepts the loss with a file beside the store. Then damaged rows are moved to
 * `damaged_rows`, their deliveries are recreated with `deliveriesFor`, and the losses are logged. The file is deleted
 * after one start (PROTOCOL.md, clauses STO-3 and STO-4). Returns the mark, which moves with the ledger; a PostgreSQL
 * store without dataDir has none.
 */
export async function checkAtStart(
  db: Kysely<Tables>,
  location: StoreLocation,
  log: Logger,
  deliveriesFor?: DeliveriesFor,
): Promise<HighWaterMark | undefined> {
  const [file, acceptance] = [highWaterMarkFile(location), acceptLossFile(location)];
  const mark = readHighWaterMark(file);
  const isAccepted = existsSync(acceptance);
  let ledger = await verifyLedger(db);
  const problems = [...ledger.problems, ...(await missingSince(mark, ledger, file))];
  if (problems.length > 0) {
    if (!isAccepted) throw lossError(problems, location);
    for (const problem of problems) log.error('store-loss-accepted', { problem, movedTo: 'damaged_rows' });
    if (ledger.problems.length > 0) {
      await db.transaction().execute(async (trx) => {
        const quarantined = await quarantineDamaged(trx);
        if (deliveriesFor !== undefined) await requeueDamaged(trx, quarantined, deliveriesFor, log);
        await restartLedger(trx);
      });
      ledger = await verifyLedger(db);
    }
  } else if (mark === undefined && ledger.head.seq > 0) {
    log.warn('mark-new', { file, payments: ledger.head.seq });
  }
  if (isAccepted) {
    // If the file stayed, it would accept the next loss too, unseen.
    rmSync(acceptance);
    if (problems.length === 0) log.warn('store-loss-none', { deleted: acceptance });
  }
  return existsSync(location.dataDir) ? new HighWaterMark(file, ledger.head, log) : undefined;
}

async function missingSince(
  mark: ReturnType<typeof readHighWaterMark>,
  { head, has }: LedgerCheck,
  file: string,
): Promise<string[]> {
  if (mark === undefined) return [];
  if (mark === 'damaged') return [`${file} is damaged: without it a start cannot know whether payments are missing`];
  if (mark.seq > head.seq) return [`${missingBetween(head.seq, mark.seq + 1)}, which had been acknowledged`];
  return (await has(mark)) ? [] : [`payment ${mark.seq} is not the one that had been acknowledged`];
}

function lossError(problems: readonly string[], location: StoreLocation): ConfigError {
  const folder = existsSync(location.dataDir) ? '' : `make the folder ${location.dataDir} and `;
  const store = location.databaseUrl === undefined ? storeFile(location.dataDir) : 'in PostgreSQL';
  return new ConfigError(
    `dataDir: the store ${store} is damaged or incomplete: ${problems.join('; ')}`,
    `restore a copy of the store, or ${folder}make the empty file ${acceptLossFile(location)} to go on without what is ` +
      'named here; the start deletes that file, and nothing else',
  );
}
