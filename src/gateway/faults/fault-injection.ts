import type { GatewayConfig } from '../config.ts';
import type { Context } from '../context.ts';
import type { ShardPlace } from '../shard.ts';
import { startKillable } from './broker-faults.ts';
import { withCallbackFaults } from './callback-faults.ts';
import { SettableClock, skewByFault } from './clock-faults.ts';
import type { Edges, FaultTargets } from './edges.ts';
import { Faults } from './faults.ts';
import { LinkFaults } from './link-faults.ts';
import { LatePayments, withPaymentFaults } from './payment-faults.ts';
import { withOfflineFault } from './push-faults.ts';
import { ExpirableTokens, serviceFaults } from './service-faults.ts';

export interface FaultInjectionDeps extends Pick<Context, 'changes' | 'clock' | 'random' | 'log'> {
  /** Read at each call, because it is set after the gateway is composed. */
  targets: FaultTargets;
  config: Pick<GatewayConfig, 'mqtt' | 'confirmTimeoutMs'>;
  place?: ShardPlace | undefined;
}

/** The edges of a sandbox, with faults (PROTOCOL.md, clause FLT). */
export function injectFaults({ config, targets, place, ...rest }: FaultInjectionDeps): Edges {
  const clock = new SettableClock(rest.clock);
  const payPush = (pushId: string) => targets.payPush(pushId);
  const resendCallback = (id: string) => targets.resendCallback(id);
  const deps = { ...rest, ...config, clock, payPush, resendCallback };
  const tellShards = (id: string, times: number) => place?.tell({ about: 'fault', id, by: place.index, times });
  const faults = new Faults({ ...deps, tellShards });
  const links = new LinkFaults({ ...deps, faults, isBrokerForeign: config.mqtt?.url !== undefined });
  const latePayments = new LatePayments();
  const expirable = new ExpirableTokens();
  skewByFault(clock, faults);
  faults.onOrder('broker-killed', {
    problem: () => "fault: broker-killed needs the gateway's own broker, and this gateway has none",
    begin: () => undefined,
  });
  return {
    clock,
    faults,
    tokens: (tokens) => expirable.wrap(tokens),
    partnerRoutes: async (scope, directory) => {
      await faults.countPartners(directory);
      serviceFaults(scope, { ...deps, directory, faults, expirable });
    },
    boxRoutes: (scope) => links.hookBoxRoutes(scope),
    connect: (connect) => links.connect(connect),
    boxHub: (hub) => links.hub(hub),
    pushHub: (hub) => withOfflineFault(hub, faults),
    receivePayment: (payment) => withPaymentFaults({ ...payment, faults, latePayments }),
    attempt: (make, directory) => withCallbackFaults(make, { ...deps, directory, faults, latePayments }),
    startBroker: (at, start) => startKillable(at, start, { ...deps, faults }),
    boxConnected: (terminalCode, socket) => void socket.once('close', links.connected(terminalCode, socket)),
    close: () => faults.close(),
  };
}
