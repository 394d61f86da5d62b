import { createHash } from 'node:crypto';
import type { GatewayConfig } from '../gateway/config.ts';
import type { ClusterView, Member } from '../store/engines/cluster-database.ts';

/** Keys in which members may differ. */
const OWN = new Set(['cluster', 'dataDir', 'databaseUrl', 'http', 'mqtt', 'logFormat']);

/** Digest of what all members must have alike: accounts, boxes, partners, tokens, times. */
export function fileDigest(config: GatewayConfig): string {
  const shared = Object.entries(config).filter(([key]) => !OWN.has(key));
  return createHash('sha256').update(JSON.stringify(shared.sort())).digest('base64url');
}

/** Why this member cannot do its work: others cannot reach it. */
export function conflicts(member: Member, { members }: ClusterView): string[] {
  const rivals = members.filter(({ id, url, leaving }) => url === member.url && id !== member.id && !leaving);
  return rivals.map(({ id }) => `cluster.advertise: member ${id} has the same address, ${member.url}`);
}

/** Members whose configuration differs: accounts and boxes of the file are those of whoever runs shard 0. */
export function differing(member: Member, { members }: ClusterView): string[] {
  return members.filter(({ file }) => file !== member.file).map(({ id }) => id);
}
