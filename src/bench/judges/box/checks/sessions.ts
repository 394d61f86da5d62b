import { BOX_ALIVE_MS, unheardMaxMs } from '../../../../protocol/messages.ts';
import { Mismatch, precondition } from '../../check.ts';
import { spec, waitForSession } from '../box-check.ts';
import { ANNOUNCEMENT_MAX_MS } from '../box-pages.ts';
import type { CheckContext } from '../check-context.ts';
import { expectPaymentIgnored, expectQrUncovered } from './ignored.ts';
import { paymentAnnounced } from './payments.ts';

/** Time within which no session may begin, where none may begin at all. */
const QUIET_MS = 60_000;
const SLACK_MS = 2_000;
const AT_ONCE_MS = 5_000;
export const OTHER_ACCOUNT = { bankAccount: '9876543210', bankCode: 'VCB', userBankName: 'TRAN THI B' };

/** Run first: a box that does not come back cannot be judged. */
export const RETURN_CHECK = spec('MSG-4', 'each connection begins with a hello of a fresh session', [], async (t) => {
  const before = t.gateway.session;
  t.gateway.cut();
  const after = await t.nextSession(before);
  if (after.sessionId === before?.sessionId) throw new Mismatch('the new session has the id of the one before');
  if (after.hello.shownPushId !== null) throw new Mismatch('the hello names a push although none is on the screen');
});

/** How sessions begin and end (PROTOCOL.md, clauses MSG-4, MSG-8, MSG-10 to MSG-12, AGT-3, AGT-5, AGT-8 and SIG-5). */
export const SESSION_CHECKS = [
  spec('MSG-4', 'the hello names the push on the screen', [], async (t) => {
    const { pushId } = await t.pushShown();
    t.gateway.openPushIds = [pushId];
    const { hello } = await t.reconnect();
    if (hello.shownPushId === pushId) return;
    throw new Mismatch(`the hello names ${hello.shownPushId ?? 'no push'}, expected ${pushId}`);
  }),
  spec('MSG-4', 'a message before the welcome changes nothing', [], async (t) => {
    const payment = t.payment();
    await expectPaymentIgnored(t, payment, async () => {
      t.gateway.helloAnswer = 'nothing';
      await t.reconnect();
      t.send(payment);
      t.gateway.welcome();
    });
  }),
  spec('MSG-11', 'the box sends a sign of life every 10 s', ['slow'], async (t) => {
    for (const _ of [1, 2]) {
      t.ignoreEarlier();
      await t.receive('a sign of life', ['alive'], () => true, BOX_ALIVE_MS + SLACK_MS);
    }
  }),
  spec('MSG-11', 'without answers to it the box says hello anew within 25 s', ['slow'], async (t) => {
    const { session } = t.gateway;
    t.gateway.answersAlive = false;
    await t.nextSession(session, unheardMaxMs(BOX_ALIVE_MS) + SLACK_MS);
    t.gateway.answersAlive = true;
    await t.sync();
  }),
  spec('MSG-12', 'a box whose session the gateway has ended says hello anew at once', [], async (t) => {
    const { session } = t.gateway;
    t.send({ type: 'refused', code: 'SESSION_ENDED', reason: 'said by the bench' });
    await t.nextSession(session, AT_ONCE_MS);
    await t.sync();
  }),
  spec('MSG-10', 'an order that the welcome does not name ends', [], async (t) => {
    const { pushId } = await t.pushShown();
    await t.reconnect();
    await t.expectEnded(pushId, 'withdrawn');
  }),
  spec('MSG-10', 'an order that the welcome names stays on the screen', ['screen'], async (t) => {
    const order = await t.qrUndisturbed();
    t.gateway.openPushIds = [order.pushId];
    await t.reconnect();
    await t.sync(() => (t.hasEnded(order) ? 'it was ended' : undefined));
    await t.box.expectQrStays(order, 'its QR was removed');
  }),
  spec('AGT-3', 'an order ends when another account is linked', [], async (t) => {
    const { pushId } = await t.pushShown();
    Object.assign(t.gateway, { account: OTHER_ACCOUNT, openPushIds: [pushId] });
    await t.reconnect();
    await t.expectEnded(pushId, 'withdrawn');
    await t.expectRejected(t.order(), 'QR_MISMATCH');
  }),
  spec('MSG-8', 'a refused box comes back, and has ended the order on its screen', [], async (t) => {
    const { pushId } = await t.pushShown();
    t.gateway.helloAnswer = 'NOT_REGISTERED';
    const refused = await t.reconnect();
    Object.assign(t.gateway, { helloAnswer: 'welcome', openPushIds: [pushId] });
    const { hello } = await t.nextSession(refused);
    if (hello.shownPushId !== null) throw new Mismatch('its hello says that the QR is still on the screen');
    await t.expectEnded(pushId, 'withdrawn');
  }),
  spec('MSG-8', 'a refused box removes its QR', ['screen'], async (t) => {
    const order = await t.qrShown();
    t.gateway.helloAnswer = 'NOT_REGISTERED';
    await t.reconnect();
    await t.box.expectQrGone(order);
  }),
  spec('AGT-8', 'an order is shown again after a restart, and expires', ['restart', 'screen', 'slow'], async (t) => {
    const order = await t.qrShown(t.order({ expiresInMs: 90_000 }));
    t.gateway.openPushIds = [order.pushId];
    await t.restart();
    await t.box.expectQr(order, ANNOUNCEMENT_MAX_MS);
    await t.expectEnded(order.pushId, 'expired', 95_000);
  }),
  spec('AGT-5', 'a payment is not announced again after a restart', ['restart', 'screen'], async (t) => {
    const payment = await paymentAnnounced(t);
    await t.restart();
    await precondition('a session', () => waitForSession(t));
    await expectQrUncovered(t, await t.qrUndisturbed(), payment);
  }),
  spec('SIG-5', 'the box makes another key at each start', ['restart'], async (t) => {
    const { kid } = t.gateway.session ?? {};
    const after = await t.restart();
    if (after.kid === kid) throw new Mismatch('its key outlived the restart');
  }),
];

/** Run last, because it leaves the box superseded. */
export const SUPERSEDED_CHECK = spec(
  'MSG-8',
  'a superseded box removes its QR, and yields to the other one',
  ['restart', 'slow'],
  async (t) => {
    const order = await t.pushShown();
    const { session } = t.gateway;
    t.gateway.send({ type: 'refused', code: 'SUPERSEDED', reason: 'said by the bench' });
    try {
      await expectYields(t, session);
      if (t.subject.controls.see !== undefined) await t.box.expectQrGone(order);
    } finally {
      await t.subject.controls.restart?.();
    }
  },
);

async function expectYields(t: CheckContext, session: CheckContext['gateway']['session']): Promise<void> {
  const endMs = t.nowMs + QUIET_MS;
  while (t.nowMs < endMs) {
    await t.time.wait(1_000);
    const now = t.gateway.session;
    if (now !== session && now?.hello.yields !== true) throw new Mismatch('it said hello again without yields');
  }
}
