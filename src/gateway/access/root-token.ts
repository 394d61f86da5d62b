import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readSecretFile } from '../../lib/config-file.ts';
import { ConfigError, reasonOf, systemCodeOf } from '../../lib/errors.ts';
import { makeFolder } from '../../lib/folders.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import { newSecret, strongSecret } from '../../protocol/secret.ts';
import type { GatewayConfig } from '../config/config.ts';
import type { Role } from '../config/roles.ts';

/** This file in dataDir holds the token of the first admin when the gateway's configuration has none. */
const ADMIN_TOKEN_FILE = 'admin-token';

/** A token that is not in the store, so nobody can revoke it. */
export interface RootToken {
  /** Its name in the audit list. */
  name: 'config' | 'admin-token';
  value: string;
}

type Doors = Pick<GatewayConfig, 'mode' | 'adminToken' | 'dataDir'> & { http: Pick<GatewayConfig['http'], 'loopback'> };

/** Returns the role of programs and pages of this machine that send no token (PROTOCOL.md, clause ROL-3). */
export function roleOnLoopback({ mode, adminToken, http }: Doors): Role | 'none' {
  if (mode === 'live') return 'none';
  return http.loopback ?? (adminToken === undefined ? 'admin' : 'none');
}

/**
 * Returns the root token of a gateway: the one in its configuration, else the one in dataDir. The gateway creates a
 * token in dataDir at the first start at which nobody could administer it otherwise. Undefined if it needs no root
 * token. Throws ConfigError.
 */
export function openRootToken(config: Doors, random: Random, log: Logger): RootToken | undefined {
  const { adminToken, dataDir } = config;
  if (adminToken !== undefined) return { name: 'config', value: adminToken };
  const file = adminTokenFile(dataDir);
  if (!existsSync(file) && roleOnLoopback(config) === 'admin') return undefined;
  makeFolder(dataDir, 0o700);
  const { value, isMade } = keptAdminToken(dataDir, random);
  log.info(isMade ? 'admin-token-created' : 'admin-token-found', { file });
  return { name: 'admin-token', value };
}

/** Returns the file in which a gateway without `adminToken` stores its root token. */
export function adminTokenFile(dataDir: string): string {
  return join(dataDir, ADMIN_TOKEN_FILE);
}

/** Reads the root token for a command: the one in the configuration, else the one in dataDir. Undefined without one. */
export function readRootToken({ adminToken, dataDir }: Doors): string | undefined {
  return adminToken ?? (existsSync(adminTokenFile(dataDir)) ? readFrom(dataDir) : undefined);
}

/** Returns the token in a folder. Creates a missing one, in a file that only its owner can read. Throws ConfigError. */
export function keptAdminToken(folder: string, random: Random): { value: string; isMade: boolean } {
  const made = newSecret(random);
  const file = adminTokenFile(folder);
  try {
    writeFileSync(file, `${made}\n`, { mode: 0o600, flag: 'wx', flush: true });
    return { value: made, isMade: true };
  } catch (error) {
    if (systemCodeOf(error) !== 'EEXIST') {
      throw new ConfigError(`${file} cannot be written: ${reasonOf(error)}`, 'name a folder that may be written');
    }
    return { value: readFrom(folder), isMade: false };
  }
}

function readFrom(folder: string): string {
  return readSecretFile({ option: ADMIN_TOKEN_FILE, file: ADMIN_TOKEN_FILE }, { name: folder, folder }, strongSecret);
}
