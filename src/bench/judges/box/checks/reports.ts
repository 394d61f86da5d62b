import { Mismatch, precondition } from '../../check.ts';
import { spec } from '../box-check.ts';
import type { CheckContext } from '../check-context.ts';

/** A report is repeated after 10 s. The rest is tolerance. */
const AGAIN_MS = 13_000;
const TOO_SOON_MS = 9_000;
const IN_FLIGHT_MAX = 100;
/** More reports than the box may have in flight. */
const MORE = 5;
const ANSWER_MS = 10_000;
/** Time for the other reports, one by one if the box has only one in flight. */
const FOLLOW_MS = 60_000;
/** For a hundred pushes on a slow panel. */
const MANY_TIMEOUT_MS = 900_000;

/** Reports that the gateway must acknowledge (PROTOCOL.md, clause MSG-6). */
export const REPORT_CHECKS = [
  spec('MSG-6', 'reports come in the order in which things happened', [], async (t) => {
    const reports = await threeReports(t);
    if (reports.join() === t.received('ended', 'paid').map(idOf).join()) return;
    throw new Mismatch('the reports came in another order');
  }),
  spec('MSG-6', 'a report comes again after 10 s until it is acknowledged', ['slow'], async (t) => {
    t.gateway.acksReports = false;
    const { transactionId, ...payment } = t.payment();
    t.send({ transactionId, ...payment });
    const first = await precondition('a report', () => t.paid(transactionId));
    const firstMs = t.receivedAtMs(first);
    for (const _ of [1, 2]) {
      t.ignoreEarlier();
      const again = await t.paid(transactionId, AGAIN_MS);
      if (again.id !== first.id) throw new Mismatch('the repeated report has another id');
    }
    const tookMs = t.nowMs - firstMs;
    if (tookMs < 2 * TOO_SOON_MS) throw new Mismatch(`it came twice again within ${Math.round(tookMs)} ms`);
    t.ignoreEarlier();
    t.gateway.acknowledge([first.id]);
    await t.time.wait(AGAIN_MS);
    if (t.received('paid').length > 0) throw new Mismatch('an acknowledged report came again');
  }),
  spec('MSG-6', 'unacknowledged reports come again in the next session, in their order', [], async (t) => {
    t.gateway.acksReports = false;
    const reports = await threeReports(t);
    t.ignoreEarlier();
    await t.reconnect();
    await expectAgain(t, reports);
  }),
  spec('MSG-6', 'acknowledged reports do not come again in the next session', [], async (t) => {
    await threeReports(t);
    await t.sync();
    t.ignoreEarlier();
    await t.reconnect();
    await t.sync(() => (t.received('paid', 'ended').length > 0 ? 'a report came again' : undefined));
  }),
  spec('MSG-6', 'unacknowledged reports outlive a restart of the box', ['restart'], async (t) => {
    t.gateway.acksReports = false;
    const reports = await threeReports(t);
    t.ignoreEarlier();
    await t.restart();
    await expectAgain(t, reports);
  }),
  spec(
    'MSG-6',
    'at most 100 reports are in flight, and the others follow',
    ['slow'],
    async (t) => {
      t.gateway.acksReports = false;
      const replaced: string[] = [];
      for (let count = 0; count <= IN_FLIGHT_MAX + MORE; count += 1) replaced.push((await t.pushShown()).pushId);
      await t.until('reports', ANSWER_MS, () => t.received('ended').length > 0);
      const first = () => new Set(t.received('ended').map(idOf));
      await t.sync(() => (first().size > IN_FLIGHT_MAX ? `${first().size} reports are in flight` : undefined));
      t.gateway.acksReports = true;
      t.gateway.acknowledge([...first()]);
      await t.ended(replaced.at(-2) ?? '', FOLLOW_MS);
    },
    MANY_TIMEOUT_MS,
  ),
];

/**
 * Makes the box report a replaced push, a payment and a withdrawn push. Returns the ids of these reports, in this
 * order.
 */
async function threeReports(t: CheckContext): Promise<string[]> {
  const older = await t.pushShown();
  const order = await t.pushShown();
  const replaced = await precondition('an end as replaced', () => t.ended(older.pushId));
  const payment = t.payment();
  t.send(payment);
  const paid = await precondition('a report of a payment', () => t.paid(payment.transactionId));
  t.withdraw(order.pushId);
  const withdrawn = await precondition('an end as withdrawn', () => t.ended(order.pushId));
  return [replaced, paid, withdrawn].map(idOf);
}

async function expectAgain(t: CheckContext, reports: readonly string[]): Promise<void> {
  const again = () => t.received('ended', 'paid').map(idOf).slice(0, reports.length);
  await t.until(`${reports.length} reports again`, ANSWER_MS, () => again().length === reports.length);
  if (again().join() === reports.join()) return;
  throw new Mismatch('the reports came again in another order or with other ids');
}

function idOf({ id }: { id: string }): string {
  return id;
}
