import { Mismatch, precondition } from '../../check.ts';
import { spec } from '../box-check.ts';
import { ANNOUNCEMENT_MAX_MS } from '../box-pages.ts';

/** A box whose display or disk fails (PROTOCOL.md, clauses AGT-2, AGT-5 and AGT-10). */
export const FAULT_CHECKS = [
  spec('AGT-2', 'a push is rejected as STORAGE_FAULT while the disk fails', ['pages', 'faults'], async (t) => {
    await t.box.injectFault('disk-full');
    await t.expectRejected(t.order(), 'STORAGE_FAULT');
  }),
  spec('AGT-2', 'a push is rejected as DISPLAY_FAULT while the display fails', ['pages', 'faults'], async (t) => {
    await t.box.injectFault('display-gone');
    const order = t.order();
    t.send(order);
    const result = await t.pushResult(order.pushId, ANNOUNCEMENT_MAX_MS);
    if (result.type === 'shown') throw new Mismatch('it was shown on a display that is gone');
    if (result.code !== 'DISPLAY_FAULT') throw new Mismatch(`rejected with ${result.code}: ${result.reason}`);
  }),
  spec('AGT-2', 'a push that is sent again is not shown before its QR is', ['pages', 'faults'], async (t) => {
    await t.box.injectFault('display-slow');
    const order = t.order();
    t.send(order);
    await precondition('its acceptance', () => t.receive('accepted', ['accepted']));
    t.send(order);
    const why = 'shown came within the second that the picture takes';
    await t.sync(() => (t.received('shown').length > 0 ? why : undefined));
    await t.receive('shown for the push', ['shown'], ({ pushId }) => pushId === order.pushId);
  }),
  spec('AGT-5', 'a failing disk: a payment is shown and reported as unrecorded', ['pages', 'faults'], async (t) => {
    await t.box.injectFault('disk-full');
    const payment = t.payment();
    await t.expectPaid(payment, false);
    await t.box.expectText(payment.content);
  }),
  spec('AGT-10', 'a failed display shows a payment when it works again', ['pages', 'faults', 'slow'], async (t) => {
    await t.box.injectFault('display-gone');
    const payment = t.payment();
    await t.expectPaid(payment);
    await precondition('the end of its time', () => t.box.expectTextGone(payment.content));
    await t.box.endFaults();
    await t.box.expectText(payment.content);
  }),
  spec('AGT-10', 'a restart interrupts a push that is not shown yet', ['pages', 'faults', 'restart'], async (t) => {
    await t.box.injectFault('display-slow');
    // The box restarts while it still draws the first picture.
    const [first, order] = [t.order(), t.order()];
    for (const it of [first, order]) {
      t.send(it);
      const isIt = ({ pushId }: { pushId: string }) => pushId === it.pushId;
      await precondition('its acceptance', () => t.receive('accepted', ['accepted'], isIt));
    }
    // A box that stops normally may write that it did not show the push. A box without power cannot.
    await t.box.injectFault('disk-full');
    t.gateway.openPushIds = [order.pushId];
    const { hello } = await t.restart();
    if (hello.shownPushId !== null) throw new Mismatch('its hello says that it is on the screen');
    await t.expectEnded(order.pushId, 'interrupted');
  }),
];
