import { join } from 'node:path';
import type { TlsIdentities } from '../../bench/judges/box/gateway/endpoint.ts';
import { type Credential, createAuthority, issue, validFor } from '../../device/setup/pki.ts';
import { systemClock } from '../../lib/clock.ts';
import { readPemFiles } from '../../lib/tls.ts';

const YEARS = 1;
const YEAR_MS = 365 * 86_400_000;
const OTHER_HOST = 'elsewhere.invalid';

/** Returns the authority of a folder made by `paybox provision`. Throws ConfigError that names the file. */
export function authorityIn(folder: string): Credential {
  const files = { 'ca.pem': join(folder, 'ca.pem'), 'ca-key.pem': join(folder, 'ca-key.pem') };
  const { 'ca.pem': cert = '', 'ca-key.pem': key = '' } = readPemFiles(files, '--tls');
  return { cert: String(cert), key: String(key) };
}

/** Returns an authority for this run only. */
export function newAuthority(): Promise<Credential> {
  return createAuthority('paybox bench', validFor(systemClock.wallMs(), YEARS));
}

/** Returns the valid and the invalid certificates of a gateway at this host. */
export async function tlsIdentitiesOf(authority: Credential, host: string): Promise<TlsIdentities> {
  const nowMs = systemClock.wallMs();
  const valid = validFor(nowMs, YEARS);
  const over = { fromMs: nowMs - YEAR_MS, untilMs: nowMs - YEAR_MS / 2 };
  const server = (by: Credential, validity = valid, name = host) =>
    issue(by, name, { kind: 'server', hosts: [name] }, validity);
  return {
    ca: authority.cert,
    valid: await server(authority),
    otherAuthority: await server(await newAuthority()),
    expired: await server(authority, over),
    otherHost: await server(authority, valid, OTHER_HOST),
  };
}
