import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { ConfigError, reasonOf } from '../../lib/errors.ts';
import { readGivenText } from './given-text.ts';

const PEM_BYTES_MAX = 4_194_304;

/** Returns the CA certificates in the file that `--ca` names, PEM. Throws ConfigError. */
export function readAuthority(file: string): string {
  let pem: string;
  try {
    pem = readGivenText(file, PEM_BYTES_MAX);
  } catch (error) {
    throw new ConfigError(`--ca ${file} cannot be read: ${reasonOf(error)}`, 'name a PEM file');
  }
  if (pem.includes('-----BEGIN ')) return pem;
  throw new ConfigError(`--ca ${file}: expected certificates, PEM`, 'name a PEM file');
}

/**
 * Makes the calls of this process trust the authority in the file of `--ca`, unless a call names its own authority.
 * Does nothing without `--ca`. Throws ConfigError.
 */
export function trustAuthorityIn({ ca }: { ca?: string | undefined }): void {
  if (ca !== undefined) trustAuthority(readAuthority(ca), `--ca ${ca}`);
}

/** Makes every call of this process trust this authority too. Throws ConfigError that names it as `from`. */
export function trustAuthority(pem: string, from: string): void {
  try {
    setDefaultCACertificates([...getCACertificates(), pem]);
  } catch (error) {
    throw new ConfigError(`${from}: expected certificates, PEM: ${reasonOf(error)}`, 'name a PEM file');
  }
}
