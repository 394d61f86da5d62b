import { HostResolver } from '../../lib/resolver.ts';
import { Changes } from '../common/changes.ts';
import type { OpenParts } from '../common/open-parts.ts';
import { type Place, placeAlone } from '../common/place.ts';
import { shareChanges } from '../common/shared-changes.ts';
import { TrafficLog } from '../common/traffic-log.ts';
import type { GatewayDeps, World } from '../common/world.ts';
import type { GatewayConfig } from '../config/config.ts';
import type { Edges } from '../faults/edges.ts';
import { createReceivePayment } from '../money/receive-payment.ts';

/**
 * Opens the first stage of a gateway: time, chance, log and names, and the edges at which faults may happen. The code
 * of faults is loaded only in a sandbox.
 */
export async function openWorld(
  config: GatewayConfig,
  { clock: wall, random, log }: GatewayDeps,
  opened: OpenParts,
): Promise<{ world: World; edges: Edges }> {
  const place = await placeOf(config, { clock: wall, random, log }, opened);
  const machine = place.dated(wall);
  const faulty = config.sandbox ? await import('../faults/fault-injection.ts') : undefined;
  const settable = faulty?.settable(machine);
  const clock = settable ?? machine;
  const changes = new Changes();
  const shared = shareChanges(changes, place, wall);
  opened.add('changes', () => shared.close());
  place.lanes.watch(() => changes.publishElsewhere('cluster'));
  const trafficLog = new TrafficLog({ clock, random, changes });
  const names = new HostResolver({ clock });
  opened.add('names', () => names.close());
  const outside = { ownPorts: new Set<number>(), lookup: (signal: AbortSignal) => names.lookup(signal) };
  const world = { config, clock, machine, random, log, changes, trafficLog, outside, opened, place };
  const edges = settable && faulty ? faulty.injectFaults(world, settable) : edgesWithoutFaults();
  opened.add('faults', () => edges.close());
  return { world, edges };
}

/** Returns the place of this gateway among those of its database, and joins them. */
async function placeOf(config: GatewayConfig, deps: GatewayDeps, opened: OpenParts): Promise<Place> {
  const { cluster, databaseUrl } = config;
  if (cluster === undefined || databaseUrl === undefined) return placeAlone(deps.random.uuid());
  const { joinCluster } = await import('../cluster/cluster.ts');
  return joinCluster({ ...config, cluster, databaseUrl }, deps, opened);
}

/** Returns edges that change nothing. */
function edgesWithoutFaults(): Edges {
  return {
    hear: () => undefined,
    mockRoutes: async (stored) => (await import('../faults/routes.ts')).faultRoutes(stored),
    tokens: (tokens) => tokens,
    partnerRoutes: async () => undefined,
    boxRoutes: () => undefined,
    connect: (connect) => connect,
    boxHub: (hub) => hub,
    pushHub: (hub) => hub,
    partnerCalls: (calls) => calls,
    receivePayment: createReceivePayment,
    attempt: (make) => make,
    startBroker: (at, start) => start(at),
    boxConnected: () => undefined,
    serve: () => undefined,
    close: () => undefined,
  };
}
