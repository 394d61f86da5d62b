import type { OpenParts } from '../common/open-parts.ts';
import type { Place } from '../common/place.ts';
import type { GatewayDeps } from '../common/world.ts';
import type { GatewayConfig } from '../config/config.ts';

export type ClusterConfig = GatewayConfig & {
  cluster: NonNullable<GatewayConfig['cluster']>;
  databaseUrl: string;
};

/** Joins the gateways that share a database. */
export async function joinCluster(_config: ClusterConfig, _deps: GatewayDeps, _opened: OpenParts): Promise<Place> {
  throw new Error('not yet');
}
