import { createMetrics, type Metrics } from '../common/metrics.ts';
import { untilOurs } from '../common/shared-work.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { Edges } from '../faults/edges.ts';
import { createAsking } from '../money/asking.ts';
import { attemptCallback } from '../money/callbacks/attempt.ts';
import { type BacklogReader, cacheBacklog, createBacklog } from '../money/callbacks/backlog.ts';
import { CallbackDispatcher } from '../money/callbacks/dispatcher.ts';
import { Sources } from '../money/open-sources.ts';
import { PaymentRequests } from '../money/payment-requests.ts';
import { QrMakers } from '../money/qr-makers.ts';
import { createReceiveCredit, type ReceiveCredit } from '../money/receive-credits.ts';
import type { PartnerCalls } from '../partner/partner-calls.ts';
import { Sales } from '../partner/sales.ts';
import { Service } from '../partner/service.ts';
import { Pruner } from '../store/pruner.ts';
import type { NewPayment } from '../store/schema/tables.ts';
import type { Boxes } from './boxes.ts';

/** The parts that money goes through, from its sources to the partners, and the service. */
export interface Money {
  service: Service;
  /** The calls of the service behind the gateway's edge. */
  calls: PartnerCalls;
  sales: Sales;
  sources: Sources;
  receiveCredit: ReceiveCredit;
  dispatcher: CallbackDispatcher;
  backlog: BacklogReader;
  /** The backlog, at most one second old. */
  cachedBacklog: BacklogReader;
  metrics: Metrics;
  /** Starts the work that no call triggers. */
  begin(): void;
}

/** Opens the fourth stage of a gateway. */
export async function openMoney(world: World, stored: Stored, boxes: Boxes, edges: Edges): Promise<Money> {
  const { clock, log, opened, place } = world;
  const { store } = stored;
  const { hub, dialect } = boxes;
  const backlog = createBacklog({ clock, store });
  const cachedBacklog = cacheBacklog(backlog, clock);
  const metrics = createMetrics(() => hub.sessions.size, cachedBacklog, stored.time, place);
  const dispatcher = new CallbackDispatcher(world, stored, metrics, edges.attempt(attemptCallback, stored));
  opened.add('callbacks', () => dispatcher.close());
  const pruner = new Pruner({ store, clock, log, isOurs: (signal) => untilOurs(world, 'pruning', signal) });
  opened.add('pruner', () => pruner.close());
  const hearers = { hub, dispatcher, onPaid: (payment: NewPayment) => dialect?.tellHosts(payment) };
  const receiveCredit = createReceiveCredit(world, stored, hearers);
  const asking = createAsking(world, { receiveCredit, heard: metrics.heard });
  const sources = await Sources.open(world, stored, asking, (accounts) => renewBoxesOf(accounts, stored, boxes));
  opened.add('catch-up', () => sources.catchUp.close());
  const paymentRequests = new PaymentRequests(world, stored, sources, asking);
  opened.add('payment requests', () => paymentRequests.close());
  const makers = new QrMakers(world, sources, asking.of);
  const pushHub = edges.pushHub(hub);
  const pay = edges.receivePayment(world, stored, hearers);
  const service = new Service(world, stored, pushHub, { makers, pay, metrics });
  const sales = new Sales(world, stored, pushHub, makers);
  edges.serve({
    payPush: async (pushId) => {
      const orderId = await store.orders.idByPush(pushId);
      if (orderId !== undefined) await service.payOrder(orderId);
    },
    resendCallback: (id) => dispatcher.resend(id),
  });
  const begin = () => {
    for (const part of [boxes.shared, dispatcher, paymentRequests, pruner, sources.catchUp]) part.start();
    // This start may have changed the registry by its file.
    void place.tell({ about: 'registry' });
  };
  const credits = { sources, receiveCredit };
  const calls = edges.partnerCalls(service);
  return { service, calls, sales, ...credits, dispatcher, backlog, cachedBacklog, metrics, begin };
}

/** Makes boxes say hello again, because a welcome contains the virtual accounts that their QRs may pay to. */
async function renewBoxesOf(accounts: readonly string[], { directory }: Stored, { hub }: Boxes): Promise<void> {
  for (const account of accounts) {
    for (const { terminalCode } of await directory.boxesOf(account)) {
      await hub.ends.renew(terminalCode, 'another source makes its QRs');
    }
  }
}
