import { Mismatch } from '../../check.ts';
import { boxCheck } from '../box-check.ts';
import { NOTICE_MAX_MS } from '../check-context.ts';
import { expectPaid } from './payments.ts';
import { expectEnd, refusedAs } from './pushes.ts';

/** What a box does while its display or its disk fails (PROTOCOL.md, clauses AGT-2, AGT-5 and AGT-10). */
export const FAULT_CHECKS = [
  boxCheck(
    'AGT-2',
    'a push is refused as STORAGE_FAULT while the disk fails',
    async (trial) => {
      await trial.fault('disk-full');
      const order = trial.order();
      trial.tell(order);
      await refusedAs(trial, order, 'STORAGE_FAULT');
    },
    { needs: ['pages', 'faults'] },
  ),
  boxCheck(
    'AGT-2',
    'a push is refused as DISPLAY_FAULT while the display fails',
    async (trial) => {
      await trial.fault('display-gone');
      const order = trial.order();
      trial.tell(order);
      const verdict = await trial.verdictOn(order.pushId, NOTICE_MAX_MS);
      if (verdict.type === 'shown') throw new Mismatch('it was shown on a display that is gone');
      if (verdict.code !== 'DISPLAY_FAULT') throw new Mismatch(`rejected with ${verdict.code}: ${verdict.reason}`);
    },
    { needs: ['pages', 'faults'] },
  ),
  boxCheck(
    'AGT-2',
    'a push that is told again before its QR is on the screen is not said to be there for that',
    async (trial) => {
      await trial.fault('display-slow');
      const order = trial.order();
      trial.tell(order);
      await trial.given('its acceptance', () => trial.hear('accepted', ['accepted']));
      trial.tell(order);
      await trial.echo();
      if (trial.since('shown').length > 0)
        throw new Mismatch('shown was said within the second that the picture takes');
      await trial.hear('shown for the push', ['shown'], ({ pushId }) => pushId === order.pushId);
    },
    { needs: ['pages', 'faults'] },
  ),
  boxCheck(
    'AGT-5',
    'a payment is shown and reported while the disk fails, as not recorded',
    async (trial) => {
      await trial.fault('disk-full');
      const payment = trial.payment();
      trial.tell(payment);
      expectPaid(await trial.paid(payment.transactionId), payment, false);
      await trial.expectSaid(payment.content);
    },
    { needs: ['pages', 'faults'] },
  ),
  boxCheck(
    'AGT-10',
    'a payment that the display failed to show is shown when it works again',
    async (trial) => {
      await trial.fault('display-gone');
      const payment = trial.payment();
      trial.tell(payment);
      expectPaid(await trial.paid(payment.transactionId), payment);
      await trial.given('the end of its time', () => trial.expectUnsaid(payment.content));
      await trial.healed();
      await trial.expectSaid(payment.content);
    },
    { needs: ['pages', 'faults', 'time'] },
  ),
  boxCheck(
    'AGT-10',
    'a push that was accepted, but not on the screen before a restart, has ended as interrupted',
    async (trial) => {
      await trial.fault('display-slow');
      // The picture of the first is under way for as long as it takes to restart the box.
      const [first, order] = [trial.order(), trial.order()];
      for (const it of [first, order]) {
        trial.tell(it);
        await trial.given('its acceptance', () =>
          trial.hear('accepted', ['accepted'], (said) => said.pushId === it.pushId),
        );
      }
      // One that is asked to end may write that it did not show it; one that loses its power does not.
      await trial.fault('disk-full');
      trial.gateway.openPushIds = [order.pushId];
      const { hello } = await trial.restarted();
      if (hello.shownPushId !== null) throw new Mismatch('its hello says that it is on the screen');
      expectEnd(await trial.ended(order.pushId), 'interrupted');
    },
    { needs: ['pages', 'faults', 'restart'] },
  ),
];
