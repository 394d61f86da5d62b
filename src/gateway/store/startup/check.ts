import { existsSync, rmSync } from 'node:fs';
import type { Kysely } from 'kysely';
import type { Logger } from '../../../lib/log.ts';
import { quarantineDamaged } from '../integrity/checksums.ts';
import {
  acceptLossFile,
  type HighWaterMark,
  highWaterMarkFile,
  type StoreLocation,
} from '../integrity/high-water-mark.ts';
import { atOneMoment, beginChain, NO_PAYMENT, restartLedger, verifyLedger } from '../integrity/ledger.ts';
import { logLoss, lossError, lossesIn, settleLosses } from '../integrity/loss.ts';
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
  const { own, former } = mark.read();
  const known = [own, ...former];
  let ledger = await atOneMoment(db, verifyLedger);
  const losses = await atOneMoment(db, (moment) => lossesIn(moment, known));
  const problems = [
    ...ledger.problems,
    ...known.flatMap(({ writer, newest }) =>
      newest === 'damaged' ? [damagedMark(highWaterMarkFile(location, writer))] : [],
    ),
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
      ledger = await atOneMoment(db, verifyLedger);
    }
  }
  const accepted = losses.map(({ newest }) => newest);
  await transact(db, (trx) => settleLosses(trx, accepted));
  await beginChain(db, mark.writer);
  const head = ledger.heads.get(mark.writer) ?? NO_PAYMENT;
  const lost = new Set(losses.flatMap(({ payments }) => payments.map(({ link }) => link)));
  mark.begin(
    head,
    own.recent.filter(({ number, link }) => number <= head.number && !lost.has(link)),
  );
  if (problems.length === 0 && own.newest === undefined && head.number > 0) {
    log.warn('mark-created', { file: mark.file, payments: head.number });
  }
  if (!isAccepted) return;
  // If the file stayed, it would also accept the next loss, unseen.
  rmSync(acceptance);
  if (problems.length === 0) log.warn('store-loss-not-found', { deleted: acceptance });
}

function damagedMark(file: string): string {
  return `${file} is damaged: without it a start cannot know whether payments are missing`;
}
