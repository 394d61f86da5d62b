import { z } from 'zod';
import { Mismatch, precondition } from '../../check.ts';
import { spec } from '../box-check.ts';
import { ANNOUNCEMENT_MAX_MS, LINGER_MS } from '../box-pages.ts';
import type { CheckContext } from '../check-context.ts';
import type { WelcomeMode } from '../gateway/endpoint.ts';

const MARK = 'SANDBOX';
/** Time within which the mark follows a welcome. */
const MARK_MS = 5_000;

const status = z.looseObject({ lastPayment: z.looseObject({ transactionId: z.string() }).nullish() });

/** Late payments, and the mark of a sandbox (PROTOCOL.md, clauses MSG-13, AGT-14 and AGT-15). */
export const REAL_MONEY_CHECKS = [
  spec('AGT-14', 'a late payment is reported', [], async (t) => {
    const payment = t.payment({ late: true });
    t.send(payment);
    await t.paid(payment.transactionId);
  }),
  spec('AGT-14', 'a late payment is in the status, not on the screen, and not said aloud', ['pages'], async (t) => {
    const before = await t.box.announcements();
    const payment = t.payment({ late: true });
    await t.paymentsReported(payment);
    await t.sync();
    await t.time.wait(LINGER_MS);
    if (await t.box.hasText(payment.content)) throw new Mismatch('it is on the screen');
    if ((await t.box.announcements()) !== before) throw new Mismatch('it was announced');
    const { lastPayment } = status.parse(await t.box.status());
    // Not every box says in its status what came in last.
    if (lastPayment === undefined || lastPayment?.transactionId === payment.transactionId) return;
    throw new Mismatch('the last payment in its status is another one');
  }),
  spec('AGT-14', 'a late payment leaves the QR of another order alone', ['screen', 'slow'], async (t) => {
    const order = await t.qrUndisturbed();
    const payment = t.payment({ amount: order.amount, late: true });
    t.send(payment);
    await t.box.expectQrStays(order, 'the late payment took the screen');
    await precondition('its report', () => t.paid(payment.transactionId));
    if (t.hasEnded(order)) throw new Mismatch('the order on the screen was ended');
  }),
  spec('AGT-14', 'the QR that a late payment pays goes away', ['screen'], async (t) => {
    const order = await t.qrShown();
    await t.paymentsReported({ ...t.paymentFor(order), late: true });
    await t.box.expectQrGone(order);
  }),
  spec('AGT-15', 'at a sandbox that asks for it every screen says SANDBOX', ['pages'], async (t) => {
    await welcomedTo(t, { mode: 'sandbox', sandboxMark: true });
    await t.box.expectText(MARK, MARK_MS);
    await t.pushShown();
    await t.box.expectText(MARK, MARK_MS);
    await t.paymentsReported(t.payment());
    if (!(await t.box.hasText(MARK))) throw new Mismatch(`after a payment the screen does not say ${MARK}`);
  }),
  spec('AGT-15', 'it does not once a welcome says otherwise', ['pages'], async (t) => {
    await welcomedTo(t, { mode: 'sandbox', sandboxMark: true });
    await precondition('the mark', () => t.box.expectText(MARK, MARK_MS));
    await welcomedTo(t, { mode: 'live', sandboxMark: false });
    await t.box.expectTextGone(MARK, MARK_MS);
  }),
  spec('AGT-15', 'a restarted box says SANDBOX without its gateway', ['restart', 'pages', 'slow'], async (t) => {
    await welcomedTo(t, { mode: 'sandbox', sandboxMark: true });
    await precondition('the mark', () => t.box.expectText(MARK, MARK_MS));
    t.gateway.helloAnswer = 'nothing';
    await t.restart();
    await t.box.expectText(MARK, ANNOUNCEMENT_MAX_MS);
  }),
];

async function welcomedTo(t: CheckContext, mode: WelcomeMode): Promise<void> {
  t.gateway.mode = mode;
  await t.reconnect();
}
