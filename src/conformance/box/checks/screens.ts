import { Mismatch } from '../../check.ts';
import { boxCheck } from '../box-check.ts';
import { KEY_MS, NOTICE_MAX_MS, type Trial } from '../check-context.ts';
import type { Body } from '../gateway-transcript.ts';
import { expectPaid } from './payments.ts';
import { OTHER_ACCOUNT } from './sessions.ts';

/** A payment has the screen for 3 s at least; looks are some way apart. */
const PAID_MIN_MS = 2_000;
/** A push waits for none of them, and takes what a slow panel takes. */
const AT_ONCE_MS = 5_000;
/** Another account has it for 5 s at least. */
const ACCOUNT_MIN_MS = 4_000;
/** For three payments, one after the other, and what was on the screen before. */
const WAITING_MS = 45_000;
/** Payments that come at once, before a restart. */
const UNSEEN = 5;
/** For an account that was linked again, and not yet told, to get the screen. */
const BACK_MS = 2_000;
const LONG_BEFORE_MS = 3_600_000;

/** What a box tells people (PROTOCOL.md, clauses AGT-5, AGT-6 and AGT-10 to AGT-13). */
export const NOTICE_CHECKS = [
  boxCheck(
    'AGT-11',
    'a payment that may have been said before is shown and reported, and not said aloud',
    async (trial) => {
      const before = await trial.announcements();
      const payment = trial.payment({ repeated: true, paidAtMs: trial.gateway.clock.wallMs() - LONG_BEFORE_MS });
      trial.tell(payment);
      expectPaid(await trial.paid(payment.transactionId), payment);
      await trial.expectSaid(payment.content);
      if ((await trial.announcements()) !== before) throw new Mismatch('it was said aloud');
      const late = trial.payment({ repeated: true });
      trial.tell(late);
      await trial.given('a report', () => trial.paid(late.transactionId));
      if ((await trial.announcements()) === before) {
        throw new Mismatch('one that was paid after its first welcome was not said aloud');
      }
    },
    { needs: ['pages', 'first life'] },
  ),
  boxCheck(
    'AGT-5',
    'a payment is told on the screen, whether it has an order there or not',
    async (trial) => {
      const order = await trial.shown();
      const its = trial.paymentOf(order);
      trial.tell(its);
      await trial.expectSaid(its.content);
      const other = trial.payment();
      trial.tell(other);
      await trial.expectSaid(other.content);
    },
    { needs: ['pages'] },
  ),
  boxCheck(
    'AGT-6',
    'a key takes the screen of a payment away',
    async (trial) => {
      const payment = await told(trial);
      await trial.dismiss();
      await trial.expectUnsaid(payment.content, KEY_MS);
    },
    { needs: ['pages'] },
  ),
  boxCheck(
    'AGT-6',
    'the screen of a payment ends by itself',
    async (trial) => {
      const payment = await told(trial);
      await trial.expectUnsaid(payment.content);
    },
    { needs: ['pages', 'time'] },
  ),
  boxCheck(
    'AGT-12',
    'payments that come at once have the screen one after the other, each for 3 s',
    async (trial) => {
      await undisturbed(trial);
      const payments = [trial.payment(), trial.payment(), trial.payment()];
      for (const payment of payments) trial.tell(payment);
      for (const [index, { content }] of payments.entries()) {
        const forMs = await trial.saidForMs(content, WAITING_MS);
        if (forMs === 0) throw new Mismatch(`payment ${index + 1} of 3 did not get the screen in its turn`);
        if (forMs < PAID_MIN_MS) throw new Mismatch(`payment ${index + 1} had the screen for ${Math.round(forMs)} ms`);
      }
    },
    { needs: ['pages', 'time'] },
  ),
  boxCheck(
    'AGT-12',
    'a push takes the screen at once, and payments that wait come over it afterwards',
    async (trial) => {
      const payments = [trial.payment(), trial.payment(), trial.payment()];
      for (const payment of payments) trial.tell(payment);
      for (const payment of payments) await trial.given('its report', () => trial.paid(payment.transactionId));
      const order = trial.order();
      trial.tell(order);
      const verdict = await trial.verdictOn(order.pushId, AT_ONCE_MS);
      if (verdict.type === 'rejected') throw new Mismatch(`it was refused with ${verdict.code}: ${verdict.reason}`);
      await trial.qrIsGone(order, NOTICE_MAX_MS).catch((error: unknown) => {
        throw error instanceof Mismatch ? new Mismatch('payments that waited for the screen did not get it') : error;
      });
      await trial.qrIsThere(order, WAITING_MS);
    },
    { needs: ['screen', 'time'] },
  ),
  boxCheck(
    'AGT-10',
    'payments that nobody has seen are shown after a restart, and none is said aloud again',
    async (trial) => {
      await undisturbed(trial);
      const payments = Array.from({ length: UNSEEN }, () => trial.payment());
      for (const payment of payments) trial.tell(payment);
      for (const payment of payments) await trial.given('its report', () => trial.paid(payment.transactionId));
      await trial.restarted();
      await trial.echo();
      for (const { content } of payments.slice(1)) await trial.expectSaid(content, WAITING_MS);
      const said = await trial.announcements();
      if (said > 0) throw new Mismatch(`${said} payments were said aloud after the restart`);
    },
    { needs: ['restart', 'pages', 'time'] },
  ),
  boxCheck(
    'AGT-13',
    'another account is told on the screen with the one before, for 5 s, and once',
    async (trial) => {
      const [before, after] = await linkedAnew(trial);
      const forMs = await trial.saidForMs(before, WAITING_MS);
      if (forMs === 0) throw new Mismatch('the screen does not say which account was linked before');
      if (forMs < ACCOUNT_MIN_MS) throw new Mismatch(`it was told for ${Math.round(forMs)} ms`);
      await trial.expectSaid(after);
      await trial.reconnected();
      await trial.echo();
      if ((await trial.saidForMs(before, ACCOUNT_MIN_MS)) > 0) throw new Mismatch('it was told again');
    },
    { needs: ['pages', 'time'] },
  ),
  boxCheck(
    'AGT-13',
    'a push covers that, and it is told after the push',
    async (trial) => {
      const [before] = await linkedAnew(trial);
      const { bankAccount, bankCode, userBankName } = OTHER_ACCOUNT;
      const order = await trial.shown(trial.order({ bankAccount, bankCode, userBankName }));
      if (await trial.says(before)) throw new Mismatch('it is told although an order has the screen');
      trial.withdraw(order.pushId);
      await trial.expectSaid(before);
    },
    { needs: ['pages', 'time'] },
  ),
  boxCheck(
    'AGT-13',
    'it is told after a restart that came too soon',
    async (trial) => {
      const [before] = await linkedAnew(trial);
      await trial.given('another account on the screen', () => trial.expectSaid(before));
      await trial.restarted();
      await trial.echo();
      await trial.expectSaid(before, WAITING_MS);
    },
    { needs: ['restart', 'pages', 'time'] },
  ),
];

/** A payment that is on the screen. Throws Unmet where it is not: AGT-5 judges that. */
async function told(trial: Trial): Promise<Body<'payment'>> {
  const payment = trial.payment();
  trial.tell(payment);
  await trial.given('a payment on the screen', () => trial.expectSaid(payment.content));
  return payment;
}

/** Takes away whatever notices of before have the screen, so that the next ones have it for their whole time. */
async function undisturbed(trial: Trial): Promise<void> {
  const order = await trial.alone();
  trial.withdraw(order.pushId);
  await trial.given('its end', () => trial.ended(order.pushId));
}

/** Links another account; the numbers of the one before and of this one. */
async function linkedAnew(trial: Trial): Promise<[before: string, after: string]> {
  await undisturbed(trial);
  // The other one of a check before this is told, or the next is no change.
  await trial.saidForMs(OTHER_ACCOUNT.bankAccount, BACK_MS);
  const before = trial.gateway.account?.bankAccount ?? '';
  trial.gateway.account = OTHER_ACCOUNT;
  await trial.reconnected();
  // Its screen may still be that of before the welcome.
  await trial.echo();
  return [before, OTHER_ACCOUNT.bankAccount];
}
