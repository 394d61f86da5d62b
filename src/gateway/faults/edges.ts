import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Tokens } from '../access/tokens.ts';
import type { BrokerListener, EmbeddedBroker } from '../boxes/broker.ts';
import type { BrokerLogin } from '../boxes/broker-rights.ts';
import type { Connect } from '../boxes/connection.ts';
import type { BoxHub } from '../boxes/wire.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { MakeAttempt } from '../money/callbacks/attempt.ts';
import type { PaymentHearers, ReceivePayment } from '../money/receive-payment.ts';
import type { PartnerCalls } from '../partner/partner-calls.ts';
import type { PushHub } from '../partner/service.ts';

/**
 * The edges between the parts of a gateway. Each method gets a part and returns the one to use in its place. So faults
 * can be injected, and no part knows of them. The composition root applies them.
 */
export interface Edges {
  /** Something that was ordered under this id at all shards of a cluster has happened in another shard. */
  happenedElsewhere(id: string, times: number): void;
  /** Adds routes below `/_mock`. */
  mockRoutes(scope: FastifyInstance, stored: Stored): Promise<void>;
  tokens(tokens: Tokens): Tokens;
  /** Adds hooks to the routes of partners. */
  partnerRoutes(scope: FastifyInstance, stored: Stored): Promise<void>;
  /** Adds hooks to the routes of boxes. */
  boxRoutes(scope: FastifyInstance): void;
  connect(connect: Connect): Connect;
  boxHub(hub: BoxHub): BoxHub;
  pushHub(hub: PushHub): PushHub;
  partnerCalls(calls: PartnerCalls): PartnerCalls;
  receivePayment(world: World, stored: Stored, hearers: PaymentHearers): ReceivePayment;
  attempt(make: MakeAttempt, stored: Stored): MakeAttempt;
  startBroker(
    at: BrokerListener,
    start: (at: BrokerListener, login?: BrokerLogin) => Promise<EmbeddedBroker>,
  ): Promise<EmbeddedBroker>;
  /** Called when a box has connected to the embedded broker. */
  boxConnected(terminalCode: string, socket: Socket): void;
  /** Tells faults who pays and calls back, once those parts are there. Before that such a fault changes nothing. */
  serve(targets: FaultTargets): void;
  close(): void;
}

/** Faults have other parts do this. */
export interface FaultTargets {
  /** Pays the order of a push. */
  payPush(pushId: string): Promise<unknown>;
  /** Makes one more attempt of a callback. */
  resendCallback(callbackId: string): Promise<unknown>;
}
