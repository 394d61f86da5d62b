import { z } from 'zod';
import type { Complain } from './boxes-config.ts';

/** Keys of earlier versions, in which gateways carried calls to each other. */
const FORMER_KEYS = ['advertise', 'shards', 'ca'];
const FORMER =
  'any gateway takes any call now: remove advertise, shards and ca, and give each gateway a name (src/gateway/README.md, Several gateways)';

/** The place of a gateway among those of its database. */
export const cluster = z.strictObject(
  {
    name: z
      .string()
      .regex(/^[A-Za-z0-9._-]{1,32}$/, 'expected 1 to 32 letters, digits, dots, underscores and hyphens')
      .describe('the name of this gateway, which no other one of its database has'),
  },
  { error: ({ code, keys }) => (code === 'unrecognized_keys' && isFormer(keys) ? FORMER : undefined) },
);

function isFormer(keys: unknown): boolean {
  return Array.isArray(keys) && keys.some((it) => FORMER_KEYS.includes(String(it)));
}

/** The keys that decide whether a gateway can share its database with others. */
export interface ClusterKeys {
  cluster?: z.output<typeof cluster> | undefined;
  databaseUrl?: string | undefined;
  standby: boolean;
  adminToken?: string | undefined;
  http: { loopback?: string | undefined };
  mqtt: { embedded?: unknown } | null;
}

/** Complains about keys that a gateway of a cluster lacks, and about keys that it must not have. */
export function checkCluster(config: ClusterKeys, complain: Complain): void {
  const { cluster, databaseUrl, standby, adminToken, http, mqtt } = config;
  if (cluster === undefined) return;
  const needs = (path: string[], isMet: boolean, message: string) => {
    if (!isMet) complain(path, message);
  };
  needs(['databaseUrl'], databaseUrl !== undefined, 'expected with cluster: its gateways share a PostgreSQL database');
  needs(['mqtt'], mqtt?.embedded === undefined, 'expected the url of a broker that all gateways share, or null');
  needs(['adminToken'], adminToken !== undefined, 'expected with cluster: any gateway takes the calls of admins');
  const isClosed = ['none', undefined].includes(http.loopback);
  needs(['http', 'loopback'], isClosed, 'expected none with cluster: a balancer on this machine passes on any call');
  needs(['standby'], !standby, 'expected false: in a cluster every gateway takes over from every other');
}
