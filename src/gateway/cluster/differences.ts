import { createHash } from 'node:crypto';
import { ConfigError } from '../../lib/errors.ts';
import { vaultFileId } from '../common/vault.ts';
import type { GatewayConfig } from '../config/config.ts';
import type { ClusterView, Member } from '../store/engines/cluster-database.ts';

/** Digest of what all members should have alike: accounts, boxes, partners, tokens, times. */
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

/** A member must have this as the others: without it calls would reach wrong shards, or a shard would stay closed. */
export async function mustBeAlike({ basePath, mode, dataDir }: GatewayConfig): Promise<Member['alike']> {
  return { basePath, mode, 'registry.key in dataDir': (await vaultFileId(dataDir)) ?? 'none' };
}

/** Throws ConfigError when a member that is there has another value of what all must have alike. */
export function refuseUnlike(member: Member, { members }: ClusterView): void {
  for (const { id, url, alike } of members) {
    for (const [key, value] of id === member.id ? [] : Object.entries(alike)) {
      const own = member.alike[key];
      if (own === undefined || own === value) continue;
      const what = `${key}: expected ${value}, as the member at ${url} has it, not ${own}`;
      throw new ConfigError(what, 'all members of a cluster have it alike; to change it, stop them all first');
    }
  }
}

/** Members whose configuration differs: accounts and boxes of the file are those of whoever runs shard 0. */
export function differing(member: Member, { members }: ClusterView): string[] {
  return members.filter(({ file }) => file !== member.file).map(({ id }) => id);
}
