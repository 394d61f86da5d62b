import { Mismatch, precondition } from '../../check.ts';
import { ANNOUNCEMENT_MAX_MS, LINGER_MS } from '../box-pages.ts';
import type { Body, CheckContext, ProblemNow } from '../check-context.ts';

/**
 * Provokes the box with something that must change nothing. Throws Mismatch at once when `problemNow` names what the
 * box does. Throws it too when the box answers nothing any more, because it has lost its numbers or its session.
 */
export async function expectIgnored(
  t: CheckContext,
  provoke: () => void | Promise<void>,
  problemNow: ProblemNow,
): Promise<void> {
  await t.sync();
  t.ignoreEarlier();
  await provoke();
  if (!(await t.answers(problemNow))) throw new Mismatch('since then the box has answered nothing');
  // A box may act on it later than it answers.
  await t.time.wait(LINGER_MS);
  const late = await problemNow();
  if (late !== undefined) throw new Mismatch(late);
}

/**
 * Expects that the box ignores a payment. A box that believed it reports it, shows its text, or announces it, as far as
 * its pages show that.
 */
export async function expectPaymentIgnored(
  t: CheckContext,
  payment: Body<'payment'>,
  provoke: () => void | Promise<void>,
): Promise<void> {
  const { transactionId, content } = payment;
  const wasOnScreen = await t.box.hasTextIfTold(content);
  const before = await t.box.announcementsIfTold();
  await expectIgnored(t, provoke, async () => {
    if (t.received('paid').some((message) => message.transactionId === transactionId)) {
      return 'the box believed it, and reports a payment';
    }
    if (!wasOnScreen && (await t.box.hasTextIfTold(content))) return 'the box believed it, and shows a payment';
    const isAnnounced = before !== undefined && ((await t.box.announcementsIfTold()) ?? 0) > before;
    return isAnnounced ? 'the box believed it, and announces a payment' : undefined;
  });
}

/** Sends a payment again. Throws Mismatch when it covers the QR of the next order. */
export async function expectQrUncovered(t: CheckContext, next: Body<'show'>, payment: Body<'payment'>): Promise<void> {
  const message = 'the repeated payment took the screen';
  t.ignoreEarlier();
  t.send({ ...payment, repeated: true });
  await t.box.expectQrStays(next, message);
  await precondition('its report', () => t.paid(payment.transactionId, ANNOUNCEMENT_MAX_MS));
  await t.box.expectQrStays(next, message);
}
