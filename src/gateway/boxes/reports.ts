import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { UpMessage, UpOf } from '../../protocol/messages.ts';
import type { Changes } from '../changes.ts';
import type { Store } from '../store/store.ts';
import type { PushResult } from './confirmations.ts';

interface Deps {
  store: Store;
  clock: Clock;
  log: Logger;
  changes: Changes;
  confirm: 'displayed' | 'accepted';
}

/** What follows from a report once it is stored. */
interface ReportEffects {
  /** The box may forget it (PROTOCOL.md, clause MSG-6). */
  isAcknowledged: boolean;
  /** What it says of the push whose confirmation is awaited. */
  confirmed?: PushResult;
  /** The box shows a push that has failed or was cancelled: it has to be told so. */
  isShownInVain?: boolean;
}

/** Stores what a registered box reports. A report that fits no push or payment of this box changes nothing. */
export async function storeReport(
  deps: Deps,
  terminalCode: string,
  report: Exclude<UpMessage, { type: 'hello' | 'alive' }>,
): Promise<ReportEffects> {
  const { store, clock, log, changes, confirm } = deps;
  const stray = (reason: string) => log.warn('report-ignored', { box: terminalCode, type: report.type, reason });
  switch (report.type) {
    case 'accepted':
    case 'shown': {
      if (!(await store.orders.confirmPush(report.pushId, terminalCode, report.type, clock.wallMs()))) {
        stray('the push is over, or was not sent to this box');
        return { isAcknowledged: false, isShownInVain: await store.orders.markStillOnBox(report.pushId, terminalCode) };
      }
      changes.publish('orders');
      return report.type === 'shown' || confirm === 'accepted'
        ? { isAcknowledged: false, confirmed: { ok: true } }
        : { isAcknowledged: false };
    }
    case 'rejected': {
      const { pushId, code, reason } = report;
      if (await store.orders.markEndedOnBox(pushId, terminalCode, clock.wallMs())) return { isAcknowledged: false };
      if (!(await store.orders.failPush(pushId, terminalCode, code, clock.wallMs(), true))) {
        stray('the push is over, or was not sent to this box');
        return { isAcknowledged: false };
      }
      log.warn('push-rejected', { box: terminalCode, pushId, code, reason });
      changes.publish('orders');
      return { isAcknowledged: false, confirmed: { ok: false, code, reason } };
    }
    case 'ended':
      return { isAcknowledged: true, ...(await storeEnd(deps, terminalCode, report, stray)) };
    case 'paid': {
      const { transactionId, recorded } = report;
      const kept = await store.payments.report(transactionId, terminalCode, recorded, clock.wallMs());
      if (kept === undefined) stray('this box was not told of such a payment');
      if (kept === 'first') {
        log.info('payment-announced', { box: terminalCode, transactionId, recorded });
        changes.publish('payments');
      }
      return { isAcknowledged: true };
    }
  }
}

async function storeEnd(
  { store, clock, changes }: Deps,
  terminalCode: string,
  report: UpOf<'ended'>,
  stray: (reason: string) => void,
): Promise<{ confirmed?: PushResult }> {
  if (!(await store.orders.endPush(report.pushId, terminalCode, report.how, clock.wallMs()))) {
    stray('the push was not sent to this box');
    return {};
  }
  changes.publish('orders');
  const code = report.how === 'replaced' ? 'REPLACED' : 'WITHDRAWN';
  return { confirmed: { ok: false, code, reason: `the box ended it before it confirmed: ${report.how}` } };
}
