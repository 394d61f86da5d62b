import { Mismatch, precondition } from '../../check.ts';
import { spec } from '../box-check.ts';
import type { Body, CheckContext } from '../check-context.ts';
import { OTHER_ACCOUNT } from './sessions.ts';

/** Time within which a key works. */
const KEY_MS = 5_000;
/** A payment is on the screen for at least 3 s; the bench only looks at intervals. */
const PAID_MIN_MS = 2_000;
/** A push does not wait for payments; a slow panel needs this time. */
const PUSH_MS = 5_000;
/** Another account is on the screen for at least 5 s. */
const ACCOUNT_MIN_MS = 4_000;
/** For three payments one after the other, and for the earlier screen. */
const QUEUE_MS = 45_000;
/** Payments that are sent together before a restart. */
const BEFORE_RESTART = 5;
/** Time until the announcement of an account that was linked again is on the screen. */
const LINKED_BACK_MS = 2_000;
const AN_HOUR_MS = 3_600_000;

/** Screen and sound (PROTOCOL.md, clauses AGT-5, AGT-6 and AGT-10 to AGT-13). */
export const ANNOUNCEMENT_CHECKS = [
  spec('AGT-11', 'an old payment at the first start is shown, not said aloud', ['pages', 'first start'], async (t) => {
    const before = await t.box.announcements();
    const payment = t.payment({ repeated: true, paidAtMs: t.gateway.clock.wallMs() - AN_HOUR_MS });
    await t.expectPaid(payment);
    await t.box.expectText(payment.content);
    if ((await t.box.announcements()) !== before) throw new Mismatch('it was said aloud');
    await t.paymentsReported(t.payment({ repeated: true }));
    if ((await t.box.announcements()) !== before) return;
    throw new Mismatch('one that was paid after its first welcome was not said aloud');
  }),
  spec('AGT-5', 'a payment is on the screen, with and without an order there', ['pages'], async (t) => {
    const order = await t.pushShown();
    for (const payment of [t.paymentFor(order), t.payment()]) {
      t.send(payment);
      await t.box.expectText(payment.content);
    }
  }),
  spec('AGT-6', 'a key clears a payment from the screen', ['pages'], async (t) => {
    const { content } = await paymentShown(t);
    await t.box.pressDismiss();
    await t.box.expectTextGone(content, KEY_MS);
  }),
  spec('AGT-12', 'payments that come together have the screen in turn for 3 s', ['pages', 'slow'], async (t) => {
    await clearScreen(t);
    const payments = [t.payment(), t.payment(), t.payment()];
    t.send(...payments);
    for (const [index, { content }] of payments.entries()) {
      const forMs = await t.box.textDurationMs(content, QUEUE_MS);
      if (forMs === 0) throw new Mismatch(`payment ${index + 1} of 3 did not get the screen in its turn`);
      if (forMs < PAID_MIN_MS) throw new Mismatch(`payment ${index + 1} had the screen for ${Math.round(forMs)} ms`);
    }
  }),
  spec('AGT-12', 'a push takes the screen, waiting payments follow its QR', ['screen', 'pages', 'slow'], async (t) => {
    const last = t.payment();
    await t.paymentsReported(t.payment(), t.payment(), last);
    const order = await t.expectShown(t.order(), PUSH_MS);
    await t.box.expectQr(order, PUSH_MS);
    await t.box.expectQrStays(order, 'payments that waited for the screen cover the QR of a push that was shown');
    t.withdraw(order.pushId);
    await t.box.expectText(last.content, QUEUE_MS);
  }),
  spec('AGT-10', 'unseen payments are shown silently after a restart', ['restart', 'pages', 'slow'], async (t) => {
    await clearScreen(t);
    const payments = Array.from({ length: BEFORE_RESTART }, () => t.payment());
    await t.paymentsReported(...payments);
    await t.restart();
    await t.sync();
    for (const { content } of payments.slice(1)) await t.box.expectText(content, QUEUE_MS);
    const count = await t.box.announcements();
    if (count > 0) throw new Mismatch(`${count} payments were said aloud after the restart`);
  }),
  spec('AGT-13', 'another account is announced beside the old one, for 5 s, once', ['pages', 'slow'], async (t) => {
    const before = await linkOtherAccount(t);
    await t.box.expectText(before, QUEUE_MS);
    if (!(await t.box.hasText(OTHER_ACCOUNT.bankAccount)))
      throw new Mismatch('the screen does not say the new one with it');
    const forMs = await t.box.textDurationMs(before);
    if (forMs < ACCOUNT_MIN_MS) throw new Mismatch(`it was announced for ${Math.round(forMs)} ms`);
    await t.reconnect();
    await t.sync();
    if ((await t.box.textDurationMs(before, ACCOUNT_MIN_MS)) > 0) throw new Mismatch('it was announced again');
  }),
  spec('AGT-13', 'a push covers another account, which is announced after it', ['pages', 'slow'], async (t) => {
    const before = await linkOtherAccount(t);
    const { bankAccount, bankCode, userBankName } = OTHER_ACCOUNT;
    const order = await t.pushShown(t.order({ bankAccount, bankCode, userBankName }));
    if (await t.box.hasText(before)) throw new Mismatch('it is announced although an order has the screen');
    t.withdraw(order.pushId);
    await t.box.expectText(before);
  }),
  spec('AGT-13', 'an early restart announces another account again', ['restart', 'pages', 'slow'], async (t) => {
    const before = await linkOtherAccount(t);
    await precondition('another account on the screen', () => t.box.expectText(before));
    await t.restart();
    await t.sync();
    await t.box.expectText(before, QUEUE_MS);
  }),
];

/** Shows a payment on the screen. Throws PreconditionFailed otherwise: AGT-5 judges that. */
export async function paymentShown(t: CheckContext, change: Partial<Body<'payment'>> = {}): Promise<Body<'payment'>> {
  const payment = t.payment(change);
  t.send(payment);
  await precondition('a payment on the screen', () => t.box.expectText(payment.content));
  return payment;
}

/** Waits until earlier announcements have ended, so that the next ones get their full time. */
async function clearScreen(t: CheckContext): Promise<void> {
  const order = await t.qrUndisturbed();
  t.withdraw(order.pushId);
  await precondition('its end', () => t.ended(order.pushId));
}

/** Links another account. Returns the number of the earlier one. */
async function linkOtherAccount(t: CheckContext): Promise<string> {
  await clearScreen(t);
  // An earlier check may have linked this account. Its announcement must have ended, or the link below changes nothing.
  await t.box.textDurationMs(OTHER_ACCOUNT.bankAccount, LINKED_BACK_MS);
  const before = t.gateway.account?.bankAccount ?? '';
  t.gateway.account = OTHER_ACCOUNT;
  await t.reconnect();
  // The screen may still be the one from before the welcome.
  await t.sync();
  return before;
}
