import type { Server } from 'node:net';
import { createSecureContext } from 'node:tls';
import { ConfigError, reasonOf, systemCodeOf } from './errors.ts';
import { readPemFiles } from './tls.ts';

/** Bytes that a client may leave unread. With more, its connection is closed. */
export const UNREAD_BYTES_MAX = 1_048_576;

/** PEM files of a server. */
export interface ServerTlsFiles {
  cert: string;
  key: string;
}

/** Reads the files and checks that they belong together. Throws ConfigError that names the option. */
export function readServerTls(files: ServerTlsFiles & { ca?: string | undefined }, option: string) {
  const contents = readPemFiles(files, option);
  try {
    createSecureContext(contents);
  } catch (error) {
    const fix = 'name a certificate and its own key, both PEM, as `paybox provision` makes them';
    throw new ConfigError(`${option}: cannot be used: ${reasonOf(error)}`, fix);
  }
  return contents;
}

/** Opens a server and returns its port. Throws ConfigError that names the option when the address cannot be used. */
export async function listenOn(server: Server, at: { host: string; port: number }, option: string): Promise<number> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host: at.host, port: at.port, backlog: 1024 }, () => {
        server.off('error', reject);
        resolve();
      });
    });
  } catch (error) {
    throw addressError(error, at, option);
  }
  const address = server.address();
  return address === null || typeof address === 'string' ? at.port : address.port;
}

/** Turns the error of a failed listen into a ConfigError with advice, if possible. */
export function addressError(error: unknown, at: { host: string; port: number }, option: string): unknown {
  const code = systemCodeOf(error);
  if (code === 'EADDRINUSE') {
    return new ConfigError(
      `${option}.port: port ${at.port} is already in use on ${at.host}`,
      `choose another ${option}.port, or end the program that uses it`,
    );
  }
  if (code === 'EACCES' || code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return new ConfigError(`${option}: ${at.host}:${at.port} cannot be opened: ${code}`, `choose another ${option}`);
  }
  return error;
}

/** Returns the host in a URL that a program on this machine can open. */
export function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}
