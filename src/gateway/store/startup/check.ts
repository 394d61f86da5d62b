import { existsSync, rmSync } from 'node:fs';
import type { Kysely } from 'kysely';
import type { Logger } from '../../../lib/log.ts';
import { quarantineDamaged } from '../integrity/checksums.ts';
import {
  acceptLossFile,
  type HighWaterMark,
  type KnownPayments,
  type StoreLocation,
} from '../integrity/high-water-mark.ts';
import { restartLedger, verifyLedger } from '../integrity/ledger.ts';
import { type Loss, logLoss, lossError, lossIn, reportedLoss, settleLosses } from '../integrity/loss.ts';
import type { Tables } from '../schema/tables.ts';
import { transact } from '../transact.ts';
import { type DeliveriesFor, requeueDamaged } from './requeue.ts';

/**
 * Checks a store at the start: its rows, the mark in dataDir, and losses that another gateway has reported. Throws a
 * ConfigError that names damaged rows and missing payments, unless an admin accepts the loss with a file beside the
 * store. Then damaged rows are moved to `damaged_rows`, their deliveries are recreated with `deliveriesFor`, and the
 * losses are logged. The file is deleted after one start (PROTOCOL.md, clauses STO-3 to STO-5). Begins the mark, which
 * follows the ledger from then on.
 */
export async function checkAtStart(
  db: Kysely<Tables>,
  location: StoreLocation,
  { mark, log }: { mark: HighWaterMark; log: Logger },
  deliveriesFor?: DeliveriesFor,
): Promise<void> {
  const acceptance = acceptLossFile(location);
  const isAccepted = existsSync(acceptance);
  const known = mark.read();
  let ledger = await verifyLedger(db);
  const losses = await lossesIn(db, known);
  const problems = [
    ...ledger.problems,
    ...(known.newest === 'damaged' ? [damagedMark(mark.file)] : []),
    ...new Set(losses.map(({ problem }) => problem)),
  ];
  if (problems.length > 0) {
    for (const loss of losses) logLoss(loss, location, log);
    if (!isAccepted) throw lossError(problems, location);
    for (const problem of problems) log.error('store-loss-accepted', { problem, movedTo: 'damaged_rows' });
    if (ledger.problems.length > 0) {
      await transact(db, async (trx) => {
        const quarantined = await quarantineDamaged(trx);
        if (deliveriesFor !== undefined) await requeueDamaged(trx, quarantined, deliveriesFor, log);
        await restartLedger(trx);
      });
      ledger = await verifyLedger(db);
    }
  }
  await settleLosses(
    db,
    losses.map(({ newest }) => newest),
  );
  const lost = new Set(losses.flatMap(({ payments }) => payments.map(({ link }) => link)));
  mark.begin(
    ledger.head,
    known.recent.filter(({ seq, link }) => seq <= ledger.head.seq && !lost.has(link)),
  );
  if (problems.length === 0 && known.newest === undefined && ledger.head.seq > 0) {
    log.warn('mark-created', { file: mark.file, payments: ledger.head.seq });
  }
  if (!isAccepted) return;
  // If the file stayed, it would also accept the next loss, unseen.
  rmSync(acceptance);
  if (problems.length === 0) log.warn('store-loss-not-found', { deleted: acceptance });
}

/** Returns the losses of this gateway, and those that another gateway has reported. */
async function lossesIn(db: Kysely<Tables>, known: KnownPayments): Promise<Loss[]> {
  const own = await lossIn(db, known);
  const newest = await reportedLoss(db);
  const isOther = newest !== undefined && newest.link !== own?.newest.link;
  const other = isOther ? await lossIn(db, { newest, recent: [] }) : undefined;
  return [own, other].flatMap((loss) => loss ?? []);
}

function damagedMark(file: string): string {
  return `${file} is damaged: without it a start cannot know whether payments are missing`;
}
