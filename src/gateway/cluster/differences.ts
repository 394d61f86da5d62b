import { createHash } from 'node:crypto';
import { ConfigError } from '../../lib/errors.ts';
import { vaultFileId } from '../common/vault.ts';
import type { GatewayConfig } from '../config/config.ts';
import type { GatewayRow, View } from './gateway-rows.ts';

/** Returns a digest of the settings that all gateways should share: accounts, boxes, partners, tokens, times. */
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
  return createHash('sha256')
    .update(JSON.stringify(Object.entries(shared).sort()))
    .digest('base64url');
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

/** Returns the names of gateways whose configuration differs. The file of the one that started last is in force. */
export function differing(own: GatewayRow, { gateways }: View): string[] {
  return gateways.filter(({ file }) => file !== own.file).map(({ name }) => name);
}
