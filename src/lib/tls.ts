import { isIP } from 'node:net';
import { ConfigError, reasonOf } from './errors.ts';
import { readFileNow } from './files.ts';

/** Limits TLS on both sides, in Node's names: TLS 1.2 or newer, only forward secrecy and authenticated encryption. */
export const TLS_FLOOR = {
  minVersion: 'TLSv1.2',
  ciphers: [
    'TLS_AES_128_GCM_SHA256',
    'TLS_AES_256_GCM_SHA384',
    'TLS_CHACHA20_POLY1305_SHA256',
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-CHACHA20-POLY1305',
    'ECDHE-RSA-AES128-GCM-SHA256',
    'ECDHE-RSA-AES256-GCM-SHA384',
    'ECDHE-RSA-CHACHA20-POLY1305',
  ].join(':'),
} as const;

/** A peer must finish its part of a handshake within this time. */
export const HANDSHAKE_TIMEOUT_MS = 10_000;

/** Reads these PEM files. Throws ConfigError that names the option, for example `http.tls.key`. */
export function readPemFiles<Name extends string>(
  files: Readonly<Partial<Record<Name, string | undefined>>>,
  option: string,
): Partial<Record<Name, Buffer>> {
  const contents: Partial<Record<Name, Buffer>> = {};
  for (const [name, file] of Object.entries<string | undefined>(files) as [Name, string | undefined][]) {
    if (file === undefined) continue;
    try {
      contents[name] = readFileNow(file);
    } catch (error) {
      const fix = 'name a PEM file that this user may read; `paybox provision` makes them';
      throw new ConfigError(`${option}.${name}: cannot be read: ${reasonOf(error)}`, fix);
    }
  }
  return contents;
}

/** Returns whether this host of a configuration or URL is this machine, so that data never leaves it. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, '').toLowerCase();
  if (isIP(bare) === 4) return bare.startsWith('127.');
  return bare === 'localhost' || bare === '::1';
}

/** Gives each URL scheme, without a colon, its usual port, and says whether it uses TLS. */
export type UrlSchemes = Readonly<Record<string, { port: number; isTls: boolean }>>;

export const HTTP_SCHEMES = { http: { port: 80, isTls: false }, https: { port: 443, isTls: true } } as const;

/** Returns whether an address has a scheme of these that uses TLS. */
export function isTlsUrl(address: string, schemes: UrlSchemes): boolean {
  return schemes[URL.parse(address)?.protocol.slice(0, -1) ?? '']?.isTls === true;
}

/** Returns the port of an address, by default that of its scheme; 0 for any other scheme than these. */
export function portOfUrl({ port, protocol }: URL, schemes: UrlSchemes): number {
  return port === '' ? (schemes[protocol.slice(0, -1)]?.port ?? 0) : Number(port);
}

/**
 * Returns whether others on the network can read and change messages to this address. They can if it is on another
 * machine and its scheme is none of these with TLS.
 */
export function isExposed(address: string, schemes: UrlSchemes): boolean {
  const url = URL.parse(address);
  return url !== null && url.hostname !== '' && !isTlsUrl(address, schemes) && !isLoopbackHost(url.hostname);
}
