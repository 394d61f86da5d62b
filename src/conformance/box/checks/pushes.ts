import { Mismatch } from '../../check.ts';
import { boxCheck } from '../box-check.ts';
import type { Trial } from '../check-context.ts';
import type { Body } from '../gateway-transcript.ts';

/** How much earlier or later than its deadline a box may end a push: its clock has ticks, and the way takes time. */
const EARLY_MS = 700;
const LATE_MS = 3_000;
const LONG_AGO_MS = Date.UTC(2001, 8, 9);
const FAR_AWAY_MS = Date.UTC(2100, 0, 1);

/** Pushes that a box of any size remembers. */
const BETWEEN = 5;

/** What becomes of a push that is right (PROTOCOL.md, clauses AGT-2 to AGT-4, MSG-3, MSG-5 and MSG-9). */
export const PUSH_CHECKS = [
  boxCheck('AGT-2', 'a push is accepted, then shown, each once', async (trial) => {
    const order = trial.order();
    trial.tell(order);
    const verdict = await trial.verdictOn(order.pushId);
    if (verdict.type === 'rejected') throw new Mismatch(`rejected with ${verdict.code}: ${verdict.reason}`);
    await trial.echo();
    const heard = trial.since('accepted', 'shown', 'ended').filter(({ pushId }) => pushId === order.pushId);
    const types = heard.map(({ type }) => type).join(', ');
    if (types !== 'accepted, shown') throw new Mismatch(`expected accepted, shown; heard ${types}`);
  }),
  boxCheck(
    'AGT-2',
    'shown is said once its QR is on the screen, not before',
    async (trial) => {
      const order = await trial.shown();
      await trial.qrIsThere(order);
    },
    { needs: ['screen'] },
  ),
  boxCheck('AGT-3', 'a newer push takes the screen, and the older one ends as replaced', async (trial) => {
    const older = await trial.shown();
    await trial.shown();
    expectEnd(await trial.ended(older.pushId), 'replaced');
  }),
  boxCheck(
    'AGT-3',
    'the QR of a newer push takes the place of the older one',
    async (trial) => {
      const older = await trial.onScreen();
      await trial.onScreen();
      await trial.qrIsGone(older);
    },
    { needs: ['screen'] },
  ),
  boxCheck('AGT-3', 'a push ends when its lifetime is over', async (trial) => {
    const order = await trial.shown(trial.order({ expiresInMs: 4_000 }));
    await expiresIn(trial, order, 4_000);
  }),
  boxCheck(
    'AGT-3',
    'the QR is gone once its lifetime is over',
    async (trial) => {
      const order = await trial.onScreen(trial.order({ expiresInMs: 8_000 }));
      await trial.time.wait(8_000);
      await trial.qrIsGone(order);
    },
    { needs: ['screen'] },
  ),
  boxCheck(
    'AGT-3',
    'it is gone then also while the box has no session',
    async (trial) => {
      const order = await trial.onScreen(trial.order({ expiresInMs: 8_000 }));
      trial.gateway.helloAnswer = 'nothing';
      trial.gateway.cut();
      await trial.time.wait(8_000);
      await trial.qrIsGone(order);
    },
    { needs: ['screen'] },
  ),
  boxCheck('AGT-3', 'a withdrawal ends the push on the screen', async (trial) => {
    const order = await trial.shown();
    trial.withdraw(order.pushId, 'cancelled');
    expectEnd(await trial.ended(order.pushId), 'withdrawn');
  }),
  boxCheck(
    'AGT-3',
    'a withdrawal takes the QR away',
    async (trial) => {
      const order = await trial.onScreen();
      trial.withdraw(order.pushId, 'cancelled');
      await trial.qrIsGone(order);
    },
    { needs: ['screen'] },
  ),
  boxCheck(
    'AGT-3',
    'a person takes the QR away, and that is reported',
    async (trial) => {
      const order = await trial.shown();
      await trial.dismiss();
      expectEnd(await trial.ended(order.pushId), 'dismissed');
    },
    { needs: ['pages'] },
  ),
  boxCheck(
    'AGT-3',
    'a QR that a person takes away is gone',
    async (trial) => {
      const order = await trial.onScreen();
      await trial.dismiss();
      await trial.qrIsGone(order);
    },
    { needs: ['pages', 'screen'] },
  ),
  boxCheck('AGT-4', 'a push whose withdrawal came first is refused, and never shown', async (trial) => {
    const order = trial.order();
    trial.withdraw(order.pushId);
    await trial.given('an answer to the withdrawal', () => refusedAs(trial, order, 'WITHDRAWN'));
    trial.mark();
    trial.tell(order);
    await refusedAs(trial, order, 'WITHDRAWN');
  }),
  boxCheck('AGT-4', 'a push that has ended is not shown a second time', async (trial) => {
    const order = await trial.shown();
    trial.withdraw(order.pushId);
    await trial.given('its end', () => trial.ended(order.pushId));
    trial.mark();
    trial.tell(order);
    await refusedAs(trial, order, 'WITHDRAWN');
  }),
  boxCheck('AGT-4', 'nor when others came between', async (trial) => {
    const order = await trial.shown();
    for (let count = 0; count < BETWEEN; count += 1) await trial.shown();
    trial.mark();
    trial.tell(order);
    await refusedAs(trial, order, 'WITHDRAWN');
  }),
  boxCheck('MSG-9', 'a withdrawal of what is not on the screen is answered, each time', async (trial) => {
    const { pushId } = trial.order();
    for (const _ of [1, 2]) {
      trial.mark();
      trial.withdraw(pushId);
      const { code } = await trial.hear('rejected', ['rejected'], (message) => message.pushId === pushId);
      if (code !== 'WITHDRAWN') throw new Mismatch(`rejected with ${code}, expected WITHDRAWN`);
    }
  }),
  boxCheck('MSG-5', 'a push that comes late lives no longer for that', async (trial) => {
    const lateMs = 3_000;
    await oldEnough(trial, lateMs);
    const { sessionMs, ...order } = trial.order({ expiresInMs: 7_000 });
    const late = await trial.shown({ ...order, sessionMs: sessionMs - lateMs });
    await expiresIn(trial, late, 7_000 - lateMs);
  }),
  boxCheck(
    'MSG-5',
    'a lifetime is a duration, also where the calendar says that it was over long ago',
    async (trial) => {
      const order = trial.order({ expiresAtMs: LONG_AGO_MS });
      trial.tell(order);
      const verdict = await trial.verdictOn(order.pushId);
      if (verdict.type === 'rejected') throw new Mismatch(`rejected with ${verdict.code}: ${verdict.reason}`);
      await trial.time.wait(LATE_MS);
      await trial.echo();
      const ended = trial.since('ended').some(({ pushId }) => pushId === order.pushId);
      if (ended) throw new Mismatch('the push ended by the calendar');
    },
  ),
  boxCheck('MSG-5', 'a lifetime is a duration, also where the calendar says that it lasts for years', async (trial) => {
    const order = await trial.shown(trial.order({ expiresInMs: 4_000, expiresAtMs: FAR_AWAY_MS }));
    await expiresIn(trial, order, 4_000);
  }),
];

/** Throws Mismatch for an end of another kind. */
export function expectEnd({ how }: { how: string }, expected: string): void {
  if (how !== expected) throw new Mismatch(`ended as ${how}, expected ${expected}`);
}

/** Waits for a refusal with one of these codes. Throws Mismatch for whatever else the box says to the push. */
export async function refusedAs(trial: Trial, { pushId }: Body<'show'>, ...codes: string[]): Promise<void> {
  const isIt = (message: { pushId: string }) => message.pushId === pushId;
  const answer = await trial.hear('rejected for the push', ['accepted', 'shown', 'rejected'], isIt);
  if (answer.type !== 'rejected')
    throw new Mismatch(`it was ${answer.type}, expected rejected with ${codes.join(' or ')}`);
  if (!codes.includes(answer.code)) {
    throw new Mismatch(`rejected with ${answer.code} (${answer.reason}), expected ${codes.join(' or ')}`);
  }
}

/** Waits for the push to end as expired, and for the right moment. */
export async function expiresIn(trial: Trial, { pushId }: Body<'show'>, ms: number): Promise<void> {
  const shown = trial.since('accepted').find((message) => message.pushId === pushId);
  const beganMs = shown === undefined ? trial.nowMs : trial.heardAtMs(shown);
  const end = await trial.ended(pushId, ms + LATE_MS);
  expectEnd(end, 'expired');
  const tookMs = trial.heardAtMs(end) - beganMs;
  if (tookMs < ms - EARLY_MS) throw new Mismatch(`it expired after ${Math.round(tookMs)} ms, expected ${ms} ms`);
}

/** Waits until the session has lasted for so long. */
export async function oldEnough(trial: Trial, ms: number): Promise<void> {
  const missingMs = ms + 100 - (trial.gateway.session?.signer.ageMs ?? 0);
  if (missingMs > 0) await trial.time.wait(missingMs);
}
