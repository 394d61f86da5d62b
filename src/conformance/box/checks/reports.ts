import { Mismatch } from '../../check.ts';
import { boxCheck } from '../box-check.ts';
import type { Trial } from '../check-context.ts';

/** Unacknowledged for 10 s, and what a box takes to notice. */
const AGAIN_MS = 13_000;
const TOO_SOON_MS = 9_000;
const UNDER_WAY_MAX = 100;
/** Reports beside those that may be under way. */
const MORE = 5;
const ANSWER_MS = 10_000;
/** For the others to follow, one after the other where a box has only one under way. */
const FOLLOW_MS = 60_000;
/** For a hundred pushes on a slow panel. */
const MANY_TIMEOUT_MS = 900_000;

/** The reports that a box owes (PROTOCOL.md, clause MSG-6). */
export const REPORT_CHECKS = [
  boxCheck('MSG-6', 'reports come in the order in which things happened', async (trial) => {
    const reports = await threeReports(trial);
    if (reports.join() !== trial.since('ended', 'paid').map(idOf).join()) {
      throw new Mismatch('the reports came in another order');
    }
  }),
  boxCheck(
    'MSG-6',
    'a report comes again after 10 s without an acknowledgement, until it has one',
    async (trial) => {
      trial.gateway.acksReports = false;
      const payment = trial.payment();
      trial.tell(payment);
      const first = await trial.given('a report', () => trial.paid(payment.transactionId));
      const firstMs = trial.heardAtMs(first);
      for (const _ of [1, 2]) {
        trial.mark();
        const again = await trial.paid(payment.transactionId, AGAIN_MS);
        if (again.id !== first.id) throw new Mismatch('the repetition of a report has another id');
      }
      const tookMs = trial.nowMs - firstMs;
      if (tookMs < 2 * TOO_SOON_MS) throw new Mismatch(`it came twice again within ${Math.round(tookMs)} ms`);
      trial.mark();
      trial.gateway.acknowledge([first.id]);
      await trial.time.wait(AGAIN_MS);
      if (trial.since('paid').length > 0) throw new Mismatch('a report that was acknowledged came again');
    },
    { needs: ['time'] },
  ),
  boxCheck('MSG-6', 'reports that are owed come again in the next session, in their order', async (trial) => {
    trial.gateway.acksReports = false;
    const reports = await threeReports(trial);
    trial.mark();
    await trial.reconnected();
    await comeAgain(trial, reports);
  }),
  boxCheck('MSG-6', 'what was acknowledged does not come again in the next session', async (trial) => {
    await threeReports(trial);
    await trial.echo();
    trial.mark();
    await trial.reconnected();
    await trial.echo();
    if (trial.since('paid', 'ended').length > 0) throw new Mismatch('it came again');
  }),
  boxCheck(
    'MSG-6',
    'reports that are owed outlive a restart of the box',
    async (trial) => {
      trial.gateway.acksReports = false;
      const reports = await threeReports(trial);
      trial.mark();
      await trial.restarted();
      await comeAgain(trial, reports);
    },
    { needs: ['restart'] },
  ),
  boxCheck(
    'MSG-6',
    'at most 100 reports are under way at a time, and the others follow them',
    async (trial) => {
      trial.gateway.acksReports = false;
      const replaced: string[] = [];
      for (let count = 0; count <= UNDER_WAY_MAX + MORE; count += 1) replaced.push((await trial.shown()).pushId);
      await trial.until('reports', ANSWER_MS, () => trial.since('ended').length > 0);
      await trial.echo();
      const first = new Set(trial.since('ended').map(idOf));
      if (first.size > UNDER_WAY_MAX) throw new Mismatch(`${first.size} reports are under way`);
      trial.gateway.acksReports = true;
      trial.gateway.acknowledge([...first]);
      await trial.ended(replaced.at(-2) ?? '', FOLLOW_MS);
    },
    { needs: ['time'], timeoutMs: MANY_TIMEOUT_MS },
  ),
];

/** A replaced push, a payment and a withdrawn push; their reports' ids, in this order. */
async function threeReports(trial: Trial): Promise<string[]> {
  const older = await trial.shown();
  const order = await trial.shown();
  const replaced = await trial.given('an end as replaced', () => trial.ended(older.pushId));
  const payment = trial.payment();
  trial.tell(payment);
  const paid = await trial.given('a report of a payment', () => trial.paid(payment.transactionId));
  trial.withdraw(order.pushId);
  const withdrawn = await trial.given('an end as withdrawn', () => trial.ended(order.pushId));
  return [replaced, paid, withdrawn].map(idOf);
}

async function comeAgain(trial: Trial, reports: readonly string[]): Promise<void> {
  const again = () => trial.since('ended', 'paid').map(idOf).slice(0, reports.length);
  await trial.until(`${reports.length} reports again`, 10_000, () => again().length === reports.length);
  if (again().join() !== reports.join())
    throw new Mismatch('the reports came again in another order or with other ids');
}

function idOf({ id }: { id: string }): string {
  return id;
}
