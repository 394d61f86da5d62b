import type { Store } from '../../store/store.ts';
import type { GatewayConfig } from '../config.ts';
import type { OpenParts } from '../open-parts.ts';
import type { ShardPlace } from '../shard.ts';
import type { AskSource, Source } from '../sources/source.ts';
import type { CreditTask, ToldCredit } from '../told-credit.ts';
import { type AskSourceDeps, createAskSource } from './ask-source.ts';
import { CreditRoutes, waitingInAll } from './credit-routes.ts';
import { PaymentRequests } from './payment-requests.ts';
import { QrMakers } from './qr-makers.ts';
import { createReceiveCredit, type ReceiveCredit, type ReceiveCreditDeps } from './receive-credits.ts';
import { Sources, type SourcesDeps } from './sources.ts';

/** How other machines are reached: never the gateway's own ports. */
export type Outside = Pick<AskSourceDeps, 'ownPorts' | 'lookup'>;

/** The parts that real money goes through. */
export interface Money {
  sources: Sources;
  receiveCredit: ReceiveCredit;
  /** In a cluster: does what another shard asks of this one. */
  takeCredit: CreditRoutes['take'] | undefined;
  catchUp: Sources['catchUp'];
  makers: QrMakers;
  paymentRequests: PaymentRequests;
}

type MoneyDeps = Omit<SourcesDeps, 'askOf' | 'receiveCredit' | 'registry' | 'makersChanged'> &
  ReceiveCreditDeps &
  Outside & {
    config: GatewayConfig;
    store: Store;
    place?: ShardPlace | undefined;
    hub: { renew(terminalCode: string, reason: string): Promise<void> };
  };

/** Opens the sources of real money, what asks their lists, and what has them make QRs. */
export async function openMoney(deps: MoneyDeps, opened: OpenParts): Promise<Money> {
  const { store, directory, hub, place } = deps;
  const storeHere = createReceiveCredit(deps);
  const routes = place && new CreditRoutes({ ...deps, place, storeHere });
  const receiveCredit = routes?.receive ?? storeHere;
  // Whoever asks a source waits for the same turn.
  const asking = new WeakMap<Source, AskSource>();
  const askOf = (source: Source) => {
    const ask = asking.get(source) ?? createAskSource(deps);
    asking.set(source, ask);
    return ask;
  };
  // A welcome says to which virtual accounts the QRs of a box may pay.
  const makersChanged = async (accounts: readonly string[]) => {
    for (const account of accounts) {
      for (const { terminalCode } of await directory.boxesOf(account)) {
        await hub.renew(terminalCode, 'another source makes its QRs');
      }
    }
  };
  const parts = { ...deps, receiveCredit, askOf, makersChanged };
  const read = place === undefined ? store : waitingInAll(store, place.count);
  const sources = await Sources.open({ ...parts, store: read, registry: store.registry });
  const makers = new QrMakers({ ...parts, sources });
  const paymentRequests = new PaymentRequests({ ...parts, sources });
  opened.add('catch-up', () => sources.catchUp.close());
  opened.add('payment requests', () => paymentRequests.close());
  const takeCredit = routes && ((task: CreditTask, told: ToldCredit) => routes.take(task, told));
  return { sources, receiveCredit, takeCredit, catchUp: sources.catchUp, makers, paymentRequests };
}
