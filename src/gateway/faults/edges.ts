import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Clock } from '../../lib/clock.ts';
import type { Tokens } from '../access/tokens.ts';
import type { BrokerListener, EmbeddedBroker } from '../boxes/broker.ts';
import type { BrokerLogin } from '../boxes/broker-rights.ts';
import type { Connect } from '../boxes/connection.ts';
import type { Hub } from '../boxes/hub.ts';
import type { MakeAttempt } from '../callbacks/attempt.ts';
import type { Directory } from '../directory.ts';
import type { FaultOrders } from '../fault-orders.ts';
import type { ReceivePayment, ReceivePaymentDeps } from '../service/receive-payment.ts';
import type { PushHub } from '../service/service.ts';

/** The hub, as the transports use it. */
export type BoxHub = Pick<Hub, 'session' | 'receive' | 'disconnected' | 'news'>;

/**
 * The edges between the parts of a gateway. Each method gets a part and returns the one to use in its place. So faults
 * can be injected, and no part knows of them. The composition root applies them.
 */
export interface Edges {
  clock: Clock;
  faults: FaultOrders;
  tokens(tokens: Tokens): Tokens;
  /** Adds hooks to the routes of partners. */
  partnerRoutes(scope: FastifyInstance, directory: Directory): Promise<void>;
  /** Adds hooks to the routes of boxes. */
  boxRoutes(scope: FastifyInstance): void;
  connect(connect: Connect): Connect;
  boxHub(hub: BoxHub): BoxHub;
  pushHub(hub: PushHub): PushHub;
  receivePayment(deps: ReceivePaymentDeps): ReceivePayment;
  attempt(make: MakeAttempt, directory: Directory): MakeAttempt;
  startBroker(
    at: BrokerListener,
    start: (at: BrokerListener, login?: BrokerLogin) => Promise<EmbeddedBroker>,
  ): Promise<EmbeddedBroker>;
  /** Called when a box has connected to the embedded broker. */
  boxConnected(terminalCode: string, socket: Socket): void;
  close(): void;
}

/** Functions that faults call after the gateway is composed. */
export interface FaultTargets {
  /** Pays the order of a push. */
  payPush(pushId: string): Promise<unknown>;
  /** Makes one more attempt of a callback. */
  resendCallback(callbackId: string): Promise<unknown>;
}
