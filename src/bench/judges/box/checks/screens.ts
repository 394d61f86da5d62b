import { precondition } from '../../check.ts';
import { type BoxCheck, spec } from '../box-check.ts';
import { ANNOUNCEMENT_MAX_MS } from '../box-pages.ts';
import type { CheckContext } from '../check-context.ts';
import type { BoxNeed } from '../subject.ts';
import { paymentShown } from './announcements.ts';

/** Amounts, and their words without what north and south say differently. */
const AMOUNTS = new Map([
  [50_000, 'năm mươi nghìn đồng'],
  [1_234_567, 'một triệu hai trăm ba mươi tư nghìn năm trăm sáu mươi bảy đồng'],
  [120_000_000, 'một trăm hai mươi triệu đồng'],
]);
/** The screen must also name amounts of more digits. */
const SEEN_AMOUNTS = [...AMOUNTS.keys(), 12_345_678_901, 9_999_999_999_999];
/** Payments after which a box must still know an earlier one, and the time that they may have the screen. */
const MANY = 25;
const MANY_MS = 120_000;
/** An amount that was paid too much. */
const OTHER = 11_000;
/** Each screen may stay for its time, after earlier payments that wait. */
const IDLE_MS = 2 * ANNOUNCEMENT_MAX_MS;

/** Brings something to the screen that is over some time later. Returns its content and amount. */
type Show = (t: CheckContext) => Promise<{ content: string; amount: number }>;

/** Screens after which the box must become idle. */
const ENDS: readonly [title: string, show: Show][] = [
  ['a payment', paymentShown],
  ['the end of a lifetime', (t) => t.pushShown(t.order({ expiresInMs: 4_000 }))],
  [
    'a withdrawal',
    async (t) => {
      const order = await t.pushShown();
      t.withdraw(order.pushId, 'cancelled');
      return order;
    },
  ],
];

/** Happens between the first time that a payment is sent and the second. */
const REPETITIONS: readonly [
  when: string,
  needs: readonly BoxNeed[],
  between: (t: CheckContext) => Promise<unknown>,
][] = [
  ['at once', [], async () => undefined],
  ['after a reconnect', [], (t) => t.reconnect()],
  ['after a restart', ['restart'], (t) => t.restart()],
  ['after twenty-five others', ['slow'], manyPayments],
];

/** Pays many times, and waits until each payment has had the screen. */
async function manyPayments(t: CheckContext): Promise<void> {
  const payments = Array.from({ length: MANY }, () => t.payment());
  await t.paymentsReported(...payments);
  const [last] = payments.slice(-1);
  if (last !== undefined) await precondition('an idle box', () => t.box.expectIdle(last, MANY_MS));
}

/** Amounts on the screen, announcements, and the way back to idle (PROTOCOL.md, clauses AGT-2, AGT-5 and AGT-6). */
export const SCREEN_CHECKS: readonly BoxCheck[] = [
  spec('AGT-2', 'the screen names the amount of an order beside its QR', ['pages'], async (t) => {
    for (const amount of SEEN_AMOUNTS) {
      await t.pushShown(t.order({ amount }));
      await t.box.expectAmount(amount);
    }
  }),
  spec('AGT-5', 'the screen names the amount of a payment', ['pages'], async (t) => {
    for (const amount of SEEN_AMOUNTS) {
      await paymentShown(t, { amount });
      await t.box.expectAmount(amount);
    }
  }),
  spec(
    'AGT-5',
    'the screen names what was paid where the order on it asked for another amount',
    ['pages'],
    async (t) => {
      const payment = t.paymentFor(await t.pushShown());
      const amount = payment.amount + OTHER;
      await paymentShown(t, { ...payment, amount });
      await t.box.expectAmount(amount);
    },
  ),
  spec('AGT-5', 'the words said aloud name the amount of a payment, once', ['pages'], async (t) => {
    for (const [amount, words] of AMOUNTS) {
      // A sentence of the check before may still be under way.
      const said = await t.box.saidSoFar();
      await paymentShown(t, { amount });
      await t.box.expectWords(words, said);
    }
  }),
  spec('AGT-5', 'each payment is announced exactly once', ['pages'], async (t) => {
    const before = await t.box.announcements();
    t.send(t.paymentFor(await t.pushShown()));
    await t.box.expectAnnouncements(before + 1);
    t.send(t.payment(), t.payment());
    await t.box.expectAnnouncements(before + 3);
  }),
  ...REPETITIONS.map(([when, needs, between]) =>
    spec('AGT-5', `a payment that is sent again ${when} is not announced again`, ['pages', ...needs], async (t) => {
      const payment = t.payment();
      t.send(payment);
      await precondition('a report', () => t.paid(payment.transactionId));
      await between(t);
      await t.sync();
      const count = await t.box.announcements();
      for (const _ of [1, 2]) t.send({ ...payment, repeated: true });
      await t.box.expectAnnouncements(count);
    }),
  ),
  ...ENDS.map(([title, show]) =>
    spec('AGT-6', `after ${title} the box is idle again`, ['pages'], async (t) => {
      await t.box.expectIdle(await show(t), IDLE_MS);
    }),
  ),
];
