import type { GatewayConfig } from '../config.ts';
import type { OpenParts } from '../open-parts.ts';
import type { AskSource, Source } from '../sources/source.ts';
import { type AskSourceDeps, createAskSource } from './ask-source.ts';
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
  catchUp: Sources['catchUp'];
  makers: QrMakers;
  paymentRequests: PaymentRequests;
}

type MoneyDeps = Omit<SourcesDeps, 'askOf' | 'receiveCredit' | 'registry' | 'makersChanged'> &
  ReceiveCreditDeps &
  Outside & {
    config: GatewayConfig;
    hub: { renew(terminalCode: string, reason: string): Promise<void> };
  };

/** Opens the sources of real money, what asks their lists, and what has them make QRs. */
export async function openMoney(deps: MoneyDeps, opened: OpenParts): Promise<Money> {
  const { store, directory, hub } = deps;
  const receiveCredit = createReceiveCredit(deps);
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
  const sources = await Sources.open({ ...parts, registry: store.registry });
  const makers = new QrMakers({ ...parts, sources });
  const paymentRequests = new PaymentRequests({ ...parts, sources });
  opened.add('catch-up', () => sources.catchUp.close());
  opened.add('payment requests', () => paymentRequests.close());
  return { sources, receiveCredit, catchUp: sources.catchUp, makers, paymentRequests };
}
