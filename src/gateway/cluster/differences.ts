import { createHash } from 'node:crypto';
import { ConfigError } from '../../lib/errors.ts';
import { vaultFileId } from '../common/vault.ts';
import type { GatewayConfig } from '../config/config.ts';
import type { ClusterView, Member } from '../store/engines/cluster-database.ts';

/** Returns a digest of the settings that all members should share: accounts, boxes, partners, tokens, times. */
export function fileDigest(config: GatewayConfig): string {
  // Addresses, ports and folders may differ between members.
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

/** Returns the conflicts because of which other members cannot reach this one. */
export function conflicts(member: Member, { members }: ClusterView): string[] {
  const rivals = members.filter(({ id, url, leaving }) => url === member.url && id !== member.id && !leaving);
  return rivals.map(({ id }) => `cluster.advertise: member ${id} has the same address, ${member.url}`);
}

/** Returns the settings that must be equal at all members, so that calls reach the right shards and all shards open. */
export async function mustBeAlike({ basePath, mode, dataDir }: GatewayConfig): Promise<Member['alike']> {
  return { basePath, mode, 'registry.key in dataDir': (await vaultFileId(dataDir)) ?? 'none' };
}

/** Throws ConfigError when another member has another value of such a setting. */
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

/** Returns the members whose configuration differs. Accounts and boxes come from the file of shard 0's holder. */
export function differing(member: Member, { members }: ClusterView): string[] {
  return members.filter(({ file }) => file !== member.file).map(({ id }) => id);
}
