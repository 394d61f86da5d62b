import { createHash } from 'node:crypto';
import { ConfigError } from '../../lib/errors.ts';
import { vaultFileId } from '../common/vault.ts';
import type { GatewayConfig } from '../config/config.ts';
import type { GatewayRow, View } from './gateway-rows.ts';

/** A digest of this length shows whether a setting differs. It is too short to find out the password that is in it. */
const DIGEST_CHARS = 3;

/** Returns digests of the settings that all gateways should share, by their keys: accounts, boxes, partners, times. */
export function fileDigest(config: GatewayConfig): string {
  // Addresses, ports and folders may differ between gateways.
  const {
    cluster: _cluster,
    dataDir: _dataDir,
    databaseUrl: _databaseUrl,
    http: _http,
    mqtt: _mqtt,
    ...shared
  } = config;
  return Object.entries(shared)
    .flatMap(([key, value]) => settingsOf(key, value))
    .map(([key, value]) => `${key}=${createHash('sha256').update(value).digest('base64url').slice(0, DIGEST_CHARS)}`)
    .sort()
    .join(' ');
}

/** Returns a setting, or those below it, as text. A setting that is left out has none. */
function settingsOf(key: string, value: unknown): [key: string, text: string][] {
  if (value === undefined) return [];
  const isGroup = typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Map);
  if (isGroup) return Object.entries(value).flatMap(([name, it]) => settingsOf(`${key}.${name}`, it));
  return [[key, JSON.stringify(value, (_key, it: unknown) => (it instanceof Map ? [...it] : it))]];
}

/** Returns the settings that must be equal at all gateways, because any of them may answer any call. */
export async function mustBeAlike(config: GatewayConfig): Promise<GatewayRow['alike']> {
  const { basePath, mode, sandbox, confirm, confirmTimeoutMs, dataDir, databaseUrl = '' } = config;
  return {
    basePath,
    mode,
    sandbox: String(sandbox),
    confirm,
    confirmTimeoutMs: String(confirmTimeoutMs),
    // Another user could not end the sessions of a gateway that is gone.
    'the user in databaseUrl': new URL(databaseUrl).username,
    'registry.key in dataDir': (await vaultFileId(dataDir)) ?? 'none',
  };
}

/** Throws ConfigError when another gateway has another value of such a setting. */
export function refuseUnlike(own: GatewayRow, { gateways }: View): void {
  for (const { name, alike } of gateways) {
    for (const [key, value] of name === own.name ? [] : Object.entries(alike)) {
      const here = own.alike[key];
      if (here === undefined || here === value) continue;
      const what = `${key}: expected ${value}, as the gateway ${name} has it, not ${here}`;
      throw new ConfigError(what, 'all gateways of a database have it alike; to change it, stop them all first');
    }
  }
}

/** Returns the keys of the settings that differ between two files, by what `fileDigest` has returned for each. */
export function differingKeys(one: string, other: string): string[] {
  const [ours, theirs] = [new Set(one.split(' ')), new Set(other.split(' '))];
  const apart = [...ours, ...theirs].filter((it) => !ours.has(it) || !theirs.has(it));
  return [...new Set(apart.map((it) => it.replace(/=.*/, '')))].sort();
}
