import { ifKnown, Mismatch, precondition } from '../../check.ts';
import { spec } from '../box-check.ts';
import type { Body, CheckContext } from '../check-context.ts';

/** A box may end a push this much before or after its deadline: clocks have ticks, and messages take time. */
const EARLY_MS = 700;
const LATE_MS = 3_000;
const LONG_AGO_MS = Date.UTC(2001, 8, 9);
const FAR_AWAY_MS = Date.UTC(2100, 0, 1);
/** Every box remembers at least this many closed pushes. */
const REMEMBERED = 5;
/** Time after a new QR in which the older one must not come back, and the time between two pictures in it. */
const FLASH_MS = 1_000;
const FRAME_MS = 80;
/** Pictures at the moment of a report: one alone could be late by chance. */
const LOOKS = 3;
const CONTENT_MAX = 99;
const ORDER_ID_MAX = 64;
const ACCOUNT_OF_LETTERS = { bankAccount: 'aB3'.repeat(7).slice(0, 19), bankCode: 'VCB', userBankName: 'TRAN THI B' };

/**
 * A legal push, from its acceptance to its end (PROTOCOL.md, clauses AGT-2 to AGT-4, AGT-7, MSG-5, MSG-9, LIM-2 and
 * LIM-3).
 */
export const PUSH_CHECKS = [
  spec('AGT-2', 'a push is accepted, then shown, each once', [], async (t) => {
    const { pushId } = await t.expectShown(t.order());
    await t.sync(() => {
      const types = t.received('accepted', 'shown', 'ended').filter((it) => it.pushId === pushId);
      const words = types.map(({ type }) => type).join(', ');
      return words === 'accepted, shown' ? undefined : `expected accepted, shown; received ${words}`;
    });
  }),
  spec('AGT-2', 'shown is sent when the QR is on the screen, not before', ['screen'], async (t) => {
    for (let count = 0; count < LOOKS; count += 1) await t.expectQrAtShown();
  }),
  spec('AGT-3', 'a newer push takes the screen, and the older one ends as replaced', [], async (t) => {
    const older = await t.pushShown();
    await t.pushShown();
    await t.expectEnded(older.pushId, 'replaced');
  }),
  spec('AGT-3', 'the QR of a newer push replaces the older QR', ['screen'], async (t) => {
    const older = await t.qrShown();
    await t.qrShown();
    await t.box.expectQrGone(older);
    await t.box.expectQrStaysAway(older, FLASH_MS, 'the older QR came back for a moment', FRAME_MS);
  }),
  spec('AGT-3', 'a push ends when its lifetime is over', [], async (t) => {
    await expectExpiry(t, await t.pushShown(t.order({ expiresInMs: 4_000 })), 4_000);
  }),
  spec('AGT-3', 'a push of more than a minute ends when its lifetime is over', ['slow'], async (t) => {
    await expectExpiry(t, await t.pushShown(t.order({ expiresInMs: 65_000 })), 65_000);
  }),
  spec('AGT-3', 'the QR is gone when its lifetime is over', ['screen'], async (t) => {
    const order = await t.qrShown(t.order({ expiresInMs: 8_000 }));
    await t.time.wait(8_000);
    await t.box.expectQrGone(order);
  }),
  spec('AGT-3', 'the QR is gone then also when the box has no session', ['screen'], async (t) => {
    const order = await t.qrShown(t.order({ expiresInMs: 8_000 }));
    t.gateway.helloAnswer = 'nothing';
    t.gateway.cut();
    await t.time.wait(8_000);
    await t.box.expectQrGone(order);
  }),
  spec('AGT-3', 'a withdrawal ends the push on the screen', [], async (t) => {
    for (const why of ['cancelled', 'timeout', 'paid'] as const) {
      const { pushId } = await t.pushShown();
      t.withdraw(pushId, why);
      await t.expectEnded(pushId, 'withdrawn');
    }
  }),
  spec('AGT-3', 'a withdrawal removes the QR', ['screen'], async (t) => {
    const order = await t.qrShown();
    t.withdraw(order.pushId, 'cancelled');
    await t.box.expectQrGone(order);
  }),
  spec('AGT-3', 'a key ends the push on the screen, and the box reports that', ['pages'], async (t) => {
    const { pushId } = await t.pushShown();
    await t.box.pressDismiss();
    await t.expectEnded(pushId, 'dismissed');
  }),
  spec('AGT-3', 'a key removes the QR', ['pages', 'screen'], async (t) => {
    const order = await t.qrShown();
    await t.box.pressDismiss();
    await t.box.expectQrGone(order);
  }),
  spec('AGT-4', 'a push whose withdrawal came first is rejected, and never shown', [], async (t) => {
    const order = t.order();
    t.withdraw(order.pushId);
    // MSG-9 judges the answer to it.
    await ifKnown(() => precondition('an answer', () => t.expectRejection(order, 'WITHDRAWN')));
    t.ignoreEarlier();
    await t.expectRejected(order, 'WITHDRAWN');
  }),
  spec('AGT-4', 'a push that has ended is not shown again', [], async (t) => {
    const order = await t.pushShown();
    t.withdraw(order.pushId);
    await precondition('its end', () => t.ended(order.pushId));
    t.ignoreEarlier();
    await t.expectRejected(order, 'WITHDRAWN');
  }),
  spec('AGT-4', 'a push that has ended is not shown again after several others', [], async (t) => {
    const order = await t.pushShown();
    for (let count = 0; count < REMEMBERED; count += 1) await t.pushShown();
    t.ignoreEarlier();
    await t.expectRejected(order, 'WITHDRAWN');
  }),
  spec('MSG-9', 'a withdrawal of an unknown push is answered, each time', [], async (t) => {
    const { pushId } = t.order();
    for (const _ of [1, 2]) {
      t.ignoreEarlier();
      t.withdraw(pushId);
      const { code } = await t.receive('rejected', ['rejected'], (message) => message.pushId === pushId);
      if (code !== 'WITHDRAWN') throw new Mismatch(`rejected with ${code}, expected WITHDRAWN`);
    }
  }),
  spec('MSG-5', 'a push that comes late does not live longer', [], async (t) => {
    const lateMs = 3_000;
    await waitForSessionAge(t, lateMs);
    const { sessionMs, ...order } = t.order({ expiresInMs: 7_000 });
    const late = await t.pushShown({ ...order, sessionMs: sessionMs - lateMs });
    await expectExpiry(t, late, 7_000 - lateMs);
  }),
  spec('MSG-5', 'a lifetime is a duration: an expiresAtMs in the past ends nothing', [], async (t) => {
    const order = await t.expectShown(t.order({ expiresAtMs: LONG_AGO_MS }));
    await t.time.wait(LATE_MS);
    await t.sync(() => (t.hasEnded(order) ? 'the push ended by the calendar' : undefined));
  }),
  spec('MSG-5', 'a lifetime is a duration: an expiresAtMs far in the future prolongs nothing', [], async (t) => {
    await expectExpiry(t, await t.pushShown(t.order({ expiresInMs: 4_000, expiresAtMs: FAR_AWAY_MS })), 4_000);
  }),
  spec('AGT-2', 'a push that is sent again while it is on the screen is not taken again', [], async (t) => {
    const order = await t.pushShown();
    t.ignoreEarlier();
    t.send(order);
    await t.sync(() => {
      const answers = t.received('accepted', 'shown', 'rejected', 'ended').filter((it) => it.pushId === order.pushId);
      const types = answers.map(({ type }) => type).join(', ');
      return types === '' || types === 'shown' ? undefined : `it was answered ${types}`;
    });
  }),
  spec('AGT-7', 'an acknowledgement of what the box did not report changes nothing', [], async (t) => {
    const order = await t.pushShown();
    const { pushId } = order;
    t.gateway.acknowledge([pushId, t.gateway.random.uuid()]);
    await t.sync(() => (t.hasEnded(order) ? 'it ended the order on the screen' : undefined));
    t.gateway.acksReports = false;
    t.withdraw(pushId);
    await t.ended(pushId);
  }),
  spec('AGT-7', 'a withdrawal of another push leaves the QR on the screen', ['screen'], async (t) => {
    const order = await t.qrUndisturbed();
    t.withdraw(t.gateway.random.uuid(), 'cancelled');
    await t.sync(() => (t.hasEnded(order) ? 'it ended the order on the screen' : undefined));
    await t.box.expectQrStays(order, 'the QR was removed');
  }),
];

/** The largest contents of a push (PROTOCOL.md, clauses LIM-2 and LIM-3). */
export const PUSH_LIMIT_CHECKS = [
  spec('LIM-2', 'an order for an account of 19 letters and digits is shown', [], async (t) => {
    t.gateway.account = ACCOUNT_OF_LETTERS;
    await t.reconnect();
    await t.expectShown(t.order(ACCOUNT_OF_LETTERS));
  }),
  spec('LIM-3', 'an order with a content of 99 characters and an id of 64 is shown', [], async (t) => {
    await t.expectShown({ ...t.order(), content: 'ế'.repeat(CONTENT_MAX), orderId: 'x'.repeat(ORDER_ID_MAX) });
  }),
];

/** Throws Mismatch unless the push expires this long after it was accepted. */
async function expectExpiry(t: CheckContext, { pushId }: Body<'show'>, ms: number): Promise<void> {
  const accepted = t.received('accepted').find((message) => message.pushId === pushId);
  const beganMs = accepted === undefined ? t.nowMs : t.receivedAtMs(accepted);
  const end = await t.expectEnded(pushId, 'expired', ms + LATE_MS);
  const tookMs = t.receivedAtMs(end) - beganMs;
  if (tookMs < ms - EARLY_MS) throw new Mismatch(`it expired after ${Math.round(tookMs)} ms, expected ${ms} ms`);
}

export async function waitForSessionAge(t: CheckContext, ms: number): Promise<void> {
  const missingMs = ms + 100 - (t.gateway.session?.signer.ageMs ?? 0);
  if (missingMs > 0) await t.time.wait(missingMs);
}
