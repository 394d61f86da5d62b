import { z } from 'zod';
import { HTTP_SCHEMES, isExposed } from '../../lib/tls.ts';
import { SHARDS_MAX } from '../../protocol/topics.ts';
import type { Complain } from './boxes-config.ts';

const SHARDS_DEFAULT = 16;

/** The cluster that a gateway is a member of. */
export const cluster = z.strictObject({
  advertise: z
    .url({ protocol: /^https?$/, error: 'expected an address as http://10.0.0.5:8800' })
    .describe('the address at which the other members reach this one'),
  ca: z.string().min(1).max(1000).optional().describe('PEM file with the CA of the other members, for https://'),
  shards: z
    .int()
    .min(1)
    .max(SHARDS_MAX)
    .default(SHARDS_DEFAULT)
    .describe('number of parts that move between members; it cannot change after the first start of the cluster'),
});

/** The keys that decide whether a gateway can be a member of a cluster. */
export interface ClusterKeys {
  cluster?: z.output<typeof cluster> | undefined;
  databaseUrl?: string | undefined;
  standby: boolean;
  enrolment: string;
  adminToken?: string | undefined;
  http: { allowPlain: boolean; loopback?: string | undefined };
  mqtt: { embedded?: unknown } | null;
  vietqrBoxes?: unknown;
}

/** Complains about keys that a member lacks, and about keys that a member must not have. */
export function checkCluster(config: ClusterKeys, complain: Complain): void {
  const { cluster: member, databaseUrl, standby, enrolment, adminToken, http, mqtt, vietqrBoxes } = config;
  if (member === undefined) return;
  const needs = (path: string[], isMet: boolean, message: string) => {
    if (!isMet) complain(path, message);
  };
  needs(['databaseUrl'], databaseUrl !== undefined, 'expected with cluster: its members share a PostgreSQL database');
  needs(['mqtt'], mqtt?.embedded === undefined, 'expected the url of a broker that all members share, or null');
  needs(['adminToken'], adminToken !== undefined, 'expected with cluster: calls come from other members');
  const isClosed = ['none', undefined].includes(http.loopback);
  needs(['http', 'loopback'], isClosed, 'expected none with cluster: calls come from other members');
  needs(['standby'], !standby, 'expected false: in a cluster every member takes over from every other');
  needs(['enrolment'], enrolment !== 'open', 'expected code or closed with cluster');
  needs(
    ['vietqrBoxes'],
    vietqrBoxes === undefined,
    'expected a gateway of its own: boxes of the dialect have no shards',
  );
  const plain = isExposed(member.advertise, HTTP_SCHEMES) && !http.allowPlain;
  needs(['cluster', 'advertise'], !plain, 'expected https:// for another machine, or allowPlain: true in http');
}
