import type { UpMessage } from '../../protocol/messages.ts';
import { accept, type Result, refuse } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { Session } from './session.ts';

/** The tasks of the hub after a report is stored. */
interface ReportEffects {
  /** The result of the push, if its confirmation is awaited. */
  confirmed?: Result<undefined>;
  /** True if the box shows a push that has failed or was cancelled. */
  mustWithdraw?: boolean;
}

/** Stores a report of a registered box. A report that fits no push or payment of this box changes nothing. */
export async function storeReport(
  { clock, log, changes, config: { confirm } }: World,
  { store: { orders, payments } }: Stored,
  session: Session,
  box: string,
  report: Exclude<UpMessage, { type: 'hello' | 'alive' }>,
): Promise<ReportEffects> {
  const nowMs = clock.wallMs();
  const ignore = (reason: string): ReportEffects => {
    log.warn('report-ignored', { box, type: report.type, reason });
    return {};
  };
  const over = 'the push is over, or was not sent to this box';
  switch (report.type) {
    case 'accepted':
    case 'shown': {
      if (!(await orders.confirmPush(report.pushId, box, report.type, nowMs))) {
        ignore(over);
        return { mustWithdraw: await orders.markStillOnBox(report.pushId, box) };
      }
      changes.publish('orders');
      return report.type === 'shown' || confirm === 'accepted' ? { confirmed: accept(undefined) } : {};
    }
    case 'rejected': {
      const { pushId, code, reason } = report;
      if (await orders.markEndedOnBox(pushId, box, nowMs)) return {};
      if (!(await orders.failPush(pushId, box, code, nowMs, true))) return ignore(over);
      log.warn('push-rejected', { box, pushId, code, reason });
      changes.publish('orders');
      return { confirmed: refuse(code, reason) };
    }
    case 'ended': {
      const { pushId, how } = report;
      if (!(await orders.endPush(pushId, box, how, nowMs))) return ignore('the push was not sent to this box');
      changes.publish('orders');
      const code = how === 'replaced' ? 'REPLACED' : 'WITHDRAWN';
      return { confirmed: refuse(code, `the box ended the push before it confirmed it: ${how}`) };
    }
    case 'paid': {
      const { transactionId, recorded } = report;
      const stored = await payments.report(transactionId, box, recorded, nowMs);
      if (stored === undefined) return ignore('no such payment was sent to this box');
      if (stored === 'first') {
        log.info(session.wasLate(transactionId) ? 'payment-listed' : 'payment-announced', {
          box,
          transactionId,
          recorded,
        });
        changes.publish('payments');
      }
      return {};
    }
  }
}
