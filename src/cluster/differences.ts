import { createHash } from 'node:crypto';
import type { GatewayConfig } from '../gateway/config.ts';
import type { ClusterView, Member } from '../store/engines/cluster-database.ts';

/** Digest of what all members must have alike: accounts, boxes, partners, tokens, times. */
export function fileDigest(config: GatewayConfig): string {
  // Addresses, ports and folders are each member's own.
  const {
    cluster: _cluster,
    dataDir: _dataDir,
    databaseUrl: _databaseUrl,
    http: _http,
    mqtt: _mqtt,
    ...shared
  } = config;
  return createHash('sha256')
    .update(JSON.stringify(Object.entries(shared).sort()))
    .digest('base64url');
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
