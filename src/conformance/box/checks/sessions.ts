import { BOX_ALIVE_MS, BOX_UNHEARD_MAX_MS } from '../../../protocol/http-api.ts';
import { Mismatch } from '../../check.ts';
import { boxCheck } from '../box-check.ts';
import { NOTICE_MAX_MS, type Trial } from '../check-context.ts';
import { announced } from './payments.ts';
import { expectEnd, refusedAs } from './pushes.ts';

/** A session must not begin in this time where none may. */
const QUIET_MS = 60_000;
const SLACK_MS = 2_000;
const AT_ONCE_MS = 5_000;
export const OTHER_ACCOUNT = { bankAccount: '9876543210', bankCode: 'VCB', userBankName: 'TRAN THI B' };

/** A box that does not come back is judged by nothing else: to be run first. */
export const RETURN_CHECK = boxCheck(
  'MSG-4',
  'each connection begins with a hello of a fresh session',
  async (trial) => {
    const before = trial.gateway.session;
    trial.gateway.cut();
    const after = await trial.nextSession(before);
    if (after.sessionId === before?.sessionId) throw new Mismatch('the new session has the id of the one before');
    if (after.hello.shownPushId !== null) throw new Mismatch('the hello names a push although none is on the screen');
  },
);

/** How sessions begin and end (PROTOCOL.md, clauses MSG-4, MSG-8, MSG-10, AGT-3 and AGT-8). */
export const SESSION_CHECKS = [
  boxCheck('MSG-4', 'the hello names the push that has the screen', async (trial) => {
    const order = await trial.shown();
    trial.gateway.openPushIds = [order.pushId];
    const { hello } = await trial.reconnected();
    if (hello.shownPushId !== order.pushId) {
      throw new Mismatch(`the hello names ${hello.shownPushId ?? 'no push'}, expected ${order.pushId}`);
    }
  }),
  boxCheck('MSG-4', 'what is said before the welcome changes nothing', async (trial) => {
    trial.gateway.helloAnswer = 'nothing';
    await trial.reconnected();
    const payment = trial.payment();
    trial.tell(payment);
    trial.gateway.welcome();
    await trial.echo();
    if (trial.since('paid').length > 0) throw new Mismatch('a payment from before the welcome was taken');
  }),
  boxCheck(
    'MSG-11',
    'the box asks every 10 s whether it is heard',
    async (trial) => {
      for (const _ of [1, 2]) {
        trial.mark();
        await trial.hear('a sign of life', ['alive'], () => true, BOX_ALIVE_MS + SLACK_MS);
      }
    },
    { needs: ['time'] },
  ),
  boxCheck(
    'MSG-11',
    'a box that is not heard says hello anew within 25 s',
    async (trial) => {
      const { session } = trial.gateway;
      trial.gateway.answersAlive = false;
      await trial.nextSession(session, BOX_UNHEARD_MAX_MS + SLACK_MS);
      trial.gateway.answersAlive = true;
      await trial.echo();
    },
    { needs: ['time'] },
  ),
  boxCheck('MSG-12', 'a box that is told that its session is over says hello anew at once', async (trial) => {
    const { session } = trial.gateway;
    trial.tell({ type: 'refused', code: 'SESSION_ENDED', reason: 'said by the bench' });
    await trial.nextSession(session, AT_ONCE_MS);
    await trial.echo();
  }),
  boxCheck('MSG-10', 'an order that the welcome does not name ends', async (trial) => {
    const order = await trial.shown();
    await trial.reconnected();
    expectEnd(await trial.ended(order.pushId), 'withdrawn');
  }),
  boxCheck(
    'MSG-10',
    'an order that the welcome names stays on the screen',
    async (trial) => {
      const order = await trial.alone();
      trial.gateway.openPushIds = [order.pushId];
      await trial.reconnected();
      await trial.echo();
      if (trial.since('ended').length > 0) throw new Mismatch('it was ended');
      await trial.qrStays(order, 'its QR was taken away');
    },
    { needs: ['screen'] },
  ),
  boxCheck('AGT-3', 'an order ends when another account is linked', async (trial) => {
    const order = await trial.shown();
    Object.assign(trial.gateway, { account: OTHER_ACCOUNT, openPushIds: [order.pushId] });
    await trial.reconnected();
    expectEnd(await trial.ended(order.pushId), 'withdrawn');
    const next = trial.order();
    trial.tell(next);
    await refusedAs(trial, next, 'QR_MISMATCH');
  }),
  boxCheck('MSG-8', 'a box that is refused comes back, and has ended what was on its screen', async (trial) => {
    const order = await trial.shown();
    trial.gateway.helloAnswer = 'NOT_REGISTERED';
    const refused = await trial.reconnected();
    Object.assign(trial.gateway, { answersHello: 'welcome', openPushIds: [order.pushId] });
    const session = await trial.nextSession(refused);
    if (session.hello.shownPushId !== null) throw new Mismatch('its hello says that the QR is still on the screen');
    expectEnd(await trial.ended(order.pushId), 'withdrawn');
  }),
  boxCheck(
    'MSG-8',
    'a box that is refused takes its QR away',
    async (trial) => {
      const order = await trial.onScreen();
      trial.gateway.helloAnswer = 'NOT_REGISTERED';
      await trial.reconnected();
      await trial.qrIsGone(order);
    },
    { needs: ['screen'] },
  ),
  boxCheck(
    'AGT-8',
    'the order on the screen is there again after a restart, and ends in its time',
    async (trial) => {
      const order = await trial.onScreen(trial.order({ expiresInMs: 90_000 }));
      trial.gateway.openPushIds = [order.pushId];
      await trial.restarted();
      await trial.qrIsThere(order, NOTICE_MAX_MS);
      expectEnd(await trial.ended(order.pushId, 95_000), 'expired');
    },
    { needs: ['restart', 'screen', 'time'] },
  ),
  boxCheck(
    'AGT-5',
    'a payment from before a restart is not announced again after it',
    async (trial) => {
      const payment = await announced(trial);
      await trial.restarted();
      await trial.given('a session', () => trial.begin());
      const next = await trial.alone();
      trial.mark();
      trial.tell({ ...payment, repeated: true });
      await trial.paid(payment.transactionId);
      await trial.qrStays(next, 'the repetition took the screen');
    },
    { needs: ['restart', 'screen'] },
  ),
  boxCheck(
    'SIG-5',
    'the box makes another key at each start',
    async (trial) => {
      const { kid } = trial.gateway.session ?? {};
      const after = await trial.restarted();
      if (after.kid === kid) throw new Mismatch('its key outlived the restart');
    },
    { needs: ['restart'] },
  ),
];

/** Leaves the box refused: to be run last. */
export const SUPERSEDED_CHECK = boxCheck(
  'MSG-8',
  'a box that is superseded takes its QR away, and comes back only where it takes the box from nobody',
  async (trial) => {
    const order = await trial.shown();
    const { session } = trial.gateway;
    trial.gateway.send({ type: 'refused', code: 'SUPERSEDED', reason: 'said by the bench' });
    try {
      await staysAway(trial, session);
      if (trial.subject.hands.see !== undefined) await trial.qrIsGone(order);
    } finally {
      await trial.subject.hands.restart?.();
    }
  },
  { needs: ['restart', 'time'] },
);

async function staysAway(trial: Trial, session: Trial['gateway']['session']): Promise<void> {
  const endMs = trial.nowMs + QUIET_MS;
  while (trial.nowMs < endMs) {
    await trial.time.wait(1_000);
    const now = trial.gateway.session;
    if (now !== session && now?.hello.yields !== true) throw new Mismatch('it said hello again without yields');
  }
}
