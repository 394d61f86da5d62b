import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { OwnRoute } from '../access/own-route.ts';
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
import type { PushHub } from '../partner/partner-pushes.ts';

/**
 * The edges between the parts of a gateway. Each method receives a part and returns the one to use instead. So faults
 * can be injected without any part knowing about them. The composition root calls these methods.
 */
export interface Edges {
  /** Called with what the edges of another gateway have sent. Throws if that gateway is of another version. */
  hear(text: string): void;
  /** Returns more routes below `/_mock`. */
  mockRoutes(stored: Stored): Promise<OwnRoute[]>;
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
  /** Sets the parts that faults use to pay and to call back. Before that, such a fault changes nothing. */
  serve(targets: FaultTargets): void;
  close(): void;
}

/** The actions of other parts that faults need. */
export interface FaultTargets {
  /** Pays the order of a push. */
  payPush(pushId: string): Promise<unknown>;
  /** Makes one more attempt of a callback. */
  resendCallback(callbackId: string): Promise<unknown>;
}
