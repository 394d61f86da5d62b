import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Hub } from '../boxes/hub.ts';
import type { Faults } from './faults.ts';
import type { LinkFaults } from './link-faults.ts';

/** The hub as the service has it. */
export type ServiceHub = Pick<Hub, 'session' | 'push' | 'withdrawPush'>;

export interface ServiceHubDeps {
  faults: Faults;
  links: Pick<LinkFaults, 'beforeShow'>;
  /** Pays an order by its id. */
  payOrder: (orderRef: string) => Promise<unknown>;
  log: Logger;
}

/** The hub with the faults that begin with a push: the box is not there, or the order is paid first (clause FLT-6). */
export function withPushFaults(hub: Hub, { faults, links, payOrder, log }: ServiceHubDeps): ServiceHub {
  return {
    session: (terminalCode) => hub.session(terminalCode),
    withdrawPush: (...args) => hub.withdrawPush(...args),
    push: async (push, newOrder, show) => {
      const box = push.terminal_code;
      const subject = { boxes: [box], content: show.content };
      faults.orderByContent(box, show.content);
      if (faults.take('box-offline', subject))
        return { ok: false, code: 'BOX_OFFLINE', reason: 'the fault box-offline' };
      if (faults.take('paid-before', subject)) {
        const failed = (error: unknown) => log.error('payment-failed', { reason: reasonOf(error) });
        links.beforeShow.set(push.id, () => payOrder(push.order_ref).catch(failed));
      }
      try {
        return await hub.push(push, newOrder, show);
      } finally {
        links.beforeShow.delete(push.id);
      }
    },
  };
}
