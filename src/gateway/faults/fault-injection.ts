import type { FastifyInstance } from 'fastify';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import type { BrokerListener, EmbeddedBroker } from '../boxes/broker.ts';
import type { BrokerLogin } from '../boxes/broker-rights.ts';
import type { Hub } from '../boxes/hub.ts';
import type { MakeAttempt } from '../callbacks/attempt.ts';
import type { Changes } from '../changes.ts';
import type { GatewayConfig } from '../config.ts';
import type { Directory } from '../directory.ts';
import type { ReceivePayment, ReceivePaymentDeps } from '../pay.ts';
import type { Tokens } from '../tokens.ts';
import { startKillable } from './broker-faults.ts';
import { withCallbackFaults } from './callback-faults.ts';
import { type SettableClock, skewByFault } from './clock-faults.ts';
import { Faults } from './faults.ts';
import { type BoxHub, LinkFaults, throughLinks } from './link-faults.ts';
import { payWithFaults } from './payment-faults.ts';
import { type ExpirableTokens, expirable, serviceFaults } from './service-faults.ts';
import { type ServiceHub, withPushFaults } from './service-hub.ts';
import { LatePayments } from './told-late.ts';

export interface FaultInjectionDeps {
  config: Pick<GatewayConfig, 'mqtt' | 'sandbox' | 'confirmTimeoutMs' | 'partners'>;
  directory: Directory;
  changes: Changes;
  clock: SettableClock;
  random: Random;
  log: Logger;
}

/** Where faults are made: between the parts of a gateway, which know nothing of them. */
export class FaultInjection {
  readonly faults: Faults;
  readonly links: LinkFaults;
  readonly #deps: FaultInjectionDeps;
  readonly #toldLate = new LatePayments();

  constructor(deps: FaultInjectionDeps) {
    const { config } = deps;
    this.#deps = deps;
    this.faults = new Faults({ ...deps, ...config });
    this.links = new LinkFaults({
      ...deps,
      ...config,
      faults: this.faults,
      isBrokerForeign: config.mqtt?.url !== undefined,
    });
    skewByFault(deps.clock, this.faults);
    this.faults.onOrder('broker-killed', {
      problem: () => "fault: broker-killed needs the gateway's own broker, and this gateway has none",
      begin: () => undefined,
    });
  }

  /** For the transports of boxes. */
  boxHub(hub: Hub): BoxHub {
    return throughLinks(hub, this.links);
  }

  /** For the service; `payOrder` pays an order by its id. */
  serviceHub(hub: Hub, payOrder: (orderRef: string) => Promise<unknown>): ServiceHub {
    return withPushFaults(hub, { ...this.#deps, faults: this.faults, links: this.links, payOrder });
  }

  pay(deps: ReceivePaymentDeps): ReceivePayment {
    return payWithFaults({ ...deps, faults: this.faults, toldLate: this.#toldLate });
  }

  /** `sendAgain` makes one attempt more of a callback. */
  attempt(make: MakeAttempt, sendAgain: (callbackId: string) => Promise<unknown>): MakeAttempt {
    return withCallbackFaults(make, { ...this.#deps, faults: this.faults, toldLate: this.#toldLate, sendAgain });
  }

  tokens(tokens: Tokens): ExpirableTokens {
    return expirable(tokens);
  }

  /** For the calls of partners, whose tokens are `tokens`. */
  calls(tokens: ExpirableTokens): (scope: FastifyInstance) => void {
    return (scope) => serviceFaults(scope, { ...this.#deps, faults: this.faults, tokens });
  }

  broker(
    at: BrokerListener,
    start: (at: BrokerListener, login?: BrokerLogin) => Promise<EmbeddedBroker>,
  ): Promise<EmbeddedBroker> {
    return startKillable(at, start, { ...this.#deps, faults: this.faults });
  }
}
