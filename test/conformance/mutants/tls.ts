import type { ConnectionOptions } from 'node:tls';

/** Boxes that take a gateway that is none (PROTOCOL.md, clause TLS). */
export const TLS_MUTANTS: Record<string, { breaks: readonly string[]; tls: ConnectionOptions }> = {
  'takes any certificate': { breaks: ['TLS-2'], tls: { rejectUnauthorized: false } },
  'does not look at the host of a certificate': { breaks: ['TLS-2'], tls: { checkServerIdentity: () => undefined } },
  'speaks TLS 1.1 too': { breaks: ['TLS-1'], tls: { minVersion: 'TLSv1', ciphers: 'DEFAULT:@SECLEVEL=0' } },
  'speaks without authenticated encryption too': { breaks: ['TLS-1'], tls: { ciphers: 'DEFAULT' } },
};
