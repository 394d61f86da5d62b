import type { Clock } from '../../lib/clock.ts';
import type { World } from '../common/world.ts';
import { startKillable } from './broker-faults.ts';
import { withCallbackFaults } from './callback-faults.ts';
import { SettableClock, skewByFault } from './clock-faults.ts';
import type { Edges, FaultTargets } from './edges.ts';
import { faultNewsIn } from './fault-news.ts';
import { Faults } from './faults.ts';
import { LinkFaults } from './link-faults.ts';
import { LatePayments, withPaymentFaults } from './payment-faults.ts';
import { withOfflineFault } from './push-faults.ts';
import { faultRoutes } from './routes.ts';
import { ExpirableTokens, keepContents, serviceFaults } from './service-faults.ts';

/** Returns a clock that the fault clock-skew can set ahead. */
export function settable(clock: Clock): SettableClock {
  return new SettableClock(clock);
}

/** Makes the edges that inject the faults of a sandbox (PROTOCOL.md, clause FLT). `world` must have this `clock`. */
export function injectFaults(world: World, clock: SettableClock): Edges {
  let targets: FaultTargets = { payPush: async () => undefined, resendCallback: async () => undefined };
  const resendCallback = (id: string) => targets.resendCallback(id);
  const faults = new Faults(world);
  const latePayments = new LatePayments();
  const links = new LinkFaults(world, { faults, latePayments, payPush: (pushId) => targets.payPush(pushId) });
  const expirable = new ExpirableTokens();
  skewByFault(clock, faults);
  faults.onOrder('broker-killed', {
    problem: () => "fault: broker-killed needs the gateway's own broker, and this gateway has none",
    begin: () => undefined,
  });
  return {
    hear: (text) => {
      const news = faultNewsIn(text);
      if (news.about === 'token-expired') expirable.expire(news.sha256);
      else if (news.about === 'late-payment') latePayments.add(news.payment, faults.delayFor(news.id)(news.ms));
      else faults.hear(news);
    },
    mockRoutes: async (stored) => faultRoutes(stored, faults),
    tokens: (tokens) => expirable.wrap(tokens),
    partnerRoutes: async (scope, stored) => {
      await faults.countPartners(stored.directory);
      serviceFaults(scope, world, stored, { faults, expirable });
    },
    boxRoutes: (scope) => links.hookBoxRoutes(scope),
    connect: (connect) => links.connect(connect),
    boxHub: (hub) => links.hub(hub),
    pushHub: (hub) => withOfflineFault(hub, faults),
    partnerCalls: keepContents,
    receivePayment: (on, stored, hearers) => withPaymentFaults(on, stored, hearers, { faults, latePayments }),
    attempt: (make, stored) => withCallbackFaults(make, world, stored, { faults, latePayments, resendCallback }),
    startBroker: (at, start) => startKillable(at, start, world, faults),
    boxConnected: (terminalCode, socket) => void socket.once('close', links.connected(terminalCode, socket)),
    serve: (served) => {
      targets = served;
    },
    close: () => faults.close(),
  };
}
