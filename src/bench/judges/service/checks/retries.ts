import { Breach, Mismatch, PreconditionFailed } from '../../check.ts';
import { type CheckContext, gap, type ServiceCheck } from '../check-context.ts';
import { forEachCase } from '../expectations.ts';
import { about, answered, expectOnce, listenerOf, payOrder, type SimulatedPayment } from './callbacks.ts';

/** Waits of clause SYN-4, in seconds. */
const WAITS_S = [1, 2, 3, 4, 5, 60, 60, 60, 60, 60];
/** Tolerance: attempts take time, and timers are coarse. */
const WAIT_LEEWAY_S = 0.9;
const WAIT_STEP_MS = 1_000;
/** A partner that is away for less must not lose a callback. */
const AWAY_S = 60;
const AGAIN_MS = 15_000;
/** Answers of a partner that has not got the callback; a 4xx may end it. */
const FAILURES = [500, 502, 503, 429, 404, 'closed'] as const;
const MAY_END = 404;

/** When callbacks are sent again (PROTOCOL.md, clause SYN-4). */
export const retryChecks: readonly ServiceCheck[] = [
  gap(
    'SYN-4',
    'a callback that was answered 500, 502, 503, 429 or 404, or not at all, is sent again until it is taken',
    ['callbacks'],
    judgeFailures,
  ),
  gap('SYN-4', 'a callback that was answered 400 is not sent again', ['callbacks'], (t) => expectOnce(t, 400)),
  gap(
    'SYN-4',
    'there are eleven attempts, after 1, 2, 3, 4, 5 and five times 60 seconds',
    ['callbacks', 'minutes'],
    judgeWaits,
    600_000,
  ),
];

/** Pays all at the same time, each with an answer of its own. */
async function judgeFailures(t: CheckContext): Promise<void> {
  const listener = listenerOf(t);
  const cases = FAILURES.map((how) => ({ how, order: t.newOrder() }));
  for (const { how, order } of cases) listener.answerWith(how, order.content);
  try {
    const paid: { how: (typeof FAILURES)[number]; payment: SimulatedPayment }[] = [];
    for (const { how, order } of cases) paid.push({ how, payment: await payOrder(t, order) });
    const isAgain = ({ payment }: (typeof paid)[number]) => about(t, payment).length >= 2;
    await t.run.isSoon(AGAIN_MS, () => paid.every(isAgain));
    // An answer is undefined where the connection was closed. CBK-4 judges a callback that has not come, SYN-2 one of
    // another content, which got another answer.
    const wasAnswered = ({ how, payment }: (typeof paid)[number]) =>
      about(t, payment).some(({ answer = 'closed' }) => answer === how);
    const judged = paid.filter(wasAnswered);
    if (judged.length === 0) throw new PreconditionFailed('needs callbacks: CBK-4 judges that');
    await forEachCase(judged, async ({ how, payment }) => {
      if (isAgain({ how, payment })) return;
      const what = how === 'closed' ? 'whose connection was closed' : `that was answered ${how}`;
      const reason = `a callback ${what} is not sent again`;
      throw how === MAY_END ? new Mismatch(reason) : new Breach(reason);
    });
  } finally {
    for (const { order } of cases) listener.answerWith('ok', order.content);
  }
}

async function judgeWaits(t: CheckContext): Promise<void> {
  const { time } = t.subject;
  const totalMs = WAITS_S.reduce((sum, seconds) => sum + seconds, 0) * 1_000;
  await answered(t, 500, async (payment, first) => {
    t.run.step('waiting for every attempt at a callback');
    const endMs = first.atMs + totalMs + 2 * Math.max(...WAITS_S) * 1_000;
    while (time.clock.monotonicMs() < endMs) {
      t.run.signal.throwIfAborted();
      await time.wait(WAIT_STEP_MS);
    }
    const all = about(t, payment);
    const waits = all.slice(1).map(({ atMs }, index) => (atMs - (all[index]?.atMs ?? 0)) / 1_000);
    const isRight = waits.length === WAITS_S.length && waits.every((it, index) => isNear(it, WAITS_S[index] ?? 0));
    if (isRight) return;
    const are = waits.map((it) => it.toFixed(1)).join(', ');
    const reason = `the waits between attempts: expected ${WAITS_S.join(', ')} s, are ${are} s`;
    const lastedS = waits.reduce((sum, it) => sum + it, 0);
    throw lastedS < AWAY_S ? new Breach(`${reason}: given up after ${lastedS.toFixed(1)} s`) : new Mismatch(reason);
  });
}

function isNear(seconds: number, expected: number): boolean {
  return Math.abs(seconds - expected) <= WAIT_LEEWAY_S;
}
