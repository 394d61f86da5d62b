import { ConfigError, reasonOf } from '../../lib/errors.ts';
import { HTTP_SCHEMES, isExposed } from '../../lib/tls.ts';
import { readGivenText } from './given-text.ts';

const SECRET_CHARS_MAX = 4_096;
/** No secret is longer, with blanks and line ends around it. */
const SECRET_BYTES_MAX = 65_536;

/**
 * Returns the secret in a file, or from standard input for `-`, without its line end; secrets must not appear in the
 * process list. Throws ConfigError that names the option.
 */
export function secretFrom(option: string, file: string): string {
  let text: string;
  try {
    text = readGivenText(file, SECRET_BYTES_MAX).trim();
  } catch (error) {
    throw new ConfigError(`${option} ${file} cannot be read: ${reasonOf(error)}`, 'name a file that holds the secret');
  }
  if (text.length > 0 && text.length <= SECRET_CHARS_MAX && !/[\r\n]/.test(text)) return text;
  throw new ConfigError(`${option} ${file}: expected one line that is the secret`);
}

/**
 * Returns the gateway's token from `--admin-token-file`, else from PAYBOX_ADMIN_TOKEN; may be undefined. Throws
 * ConfigError.
 */
export function adminTokenOf({ adminTokenFile }: { adminTokenFile?: string }): string | undefined {
  return tokenOf('--admin-token-file', adminTokenFile, process.env.PAYBOX_ADMIN_TOKEN);
}

/**
 * Returns the boxes' `http.token` from `--box-token-file`, else from PAYBOX_BOX_TOKEN; may be undefined. Throws
 * ConfigError.
 */
export function boxTokenOf({ boxTokenFile }: { boxTokenFile?: string }): string | undefined {
  return tokenOf('--box-token-file', boxTokenFile, process.env.PAYBOX_BOX_TOKEN);
}

function tokenOf(option: string, file: string | undefined, fromEnvironment: string | undefined): string | undefined {
  if (file) return secretFrom(option, file);
  // Node reads every byte of the environment that is not UTF-8 as this character.
  if (fromEnvironment?.includes('\ufffd') === true) {
    throw new ConfigError(
      `the token of the environment is not UTF-8`,
      `put it into a file, and name that by ${option}`,
    );
  }
  return fromEnvironment || undefined;
}

/** Throws ConfigError if the token would be sent unencrypted to `url`, the value of `option`. */
export function assertHidden(adminToken: string | undefined, option: string, url: string): void {
  if (adminToken === undefined || !isExposed(url, HTTP_SCHEMES)) return;
  throw new ConfigError(`${option} ${url}: the admin token would be sent where others can read it`, 'use https://');
}
