import { type Command, InvalidArgumentError } from 'commander';
import { DETACH } from '../../lib/starter.js';

/** Parses a whole number from 1 to `max`. Like all parsers here it throws InvalidArgumentError. */
export function whole(max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d{1,9}$/.test(text) && value >= 1 && value <= max) return value;
    throw new InvalidArgumentError(`expected a whole number from 1 to ${max}`);
  };
}

/** Returns a TCP port. */
export function port(text: string): number {
  const value = Number(text);
  if (/^\d{1,5}$/.test(text) && value >= 1 && value <= 65_535) return value;
  throw new InvalidArgumentError('a port is a whole number from 1 to 65535');
}

/** Returns a TCP port, or 0 for a free one. */
export function portOrAny(text: string): number {
  return text === '0' ? 0 : port(text);
}

/** Returns an amount of money in dong. */
export function dong(text: string): number {
  const value = Number(text);
  if (/^\d{1,13}$/.test(text) && value >= 1) return value;
  throw new InvalidArgumentError('an amount is whole đồng, digits only, from 1 to 9999999999999');
}

/** Returns a regular expression, as text or as /text/flags; as text it ignores case. */
export function pattern(text: string): RegExp {
  const [, source, flags] = /^\/(.+)\/([imsu]*)$/s.exec(text) ?? [];
  try {
    return new RegExp(source ?? text, flags ?? 'i');
  } catch {
    throw new InvalidArgumentError('expected a regular expression');
  }
}

/** Returns a part of a whole, as 1/3. */
export function shard(text: string): { number: number; of: number } {
  const [, number, of] = /^(\d{1,4})\/(\d{1,4})$/.exec(text)?.map(Number) ?? [];
  if (number !== undefined && of !== undefined && number >= 1 && number <= of) return { number, of };
  throw new InvalidArgumentError('expected a part and the number of parts, as 1/3');
}

/** Collects a repeatable option. */
export function several(value: string, before: string[] = []): string[] {
  return [...before, value];
}

const GATEWAY = 'http://127.0.0.1:8800';

/** Adds `--gateway`, the address of a gateway. Every command uses this name. With `isNeeded` it has a default. */
export function withGateway(command: Command, { isNeeded = true } = {}): Command {
  const about = `the gateway, as ${GATEWAY}, or its service, as ${GATEWAY}/vqr`;
  return isNeeded ? command.option('--gateway <url>', about, GATEWAY) : command.option('--gateway <url>', about);
}

/** Adds `--ca`, for a command that calls a gateway. */
export function withAuthority(command: Command): Command {
  return command.option('--ca <file>', "the CA of the gateway's certificate, PEM, if it is no well-known one");
}

/** Adds the options of a command that calls the gateway's own routes. `about` says why the command reads `--config`. */
export function withGatewayOrigin(command: Command, about = 'for its adminToken'): Command {
  const options = withAdminToken(withAuthority(withGateway(command)));
  return options.option('--config <file>', `the gateway's configuration: ${about}, or the admin-token in its dataDir`);
}

/** Adds `--admin-token-file`, for a command that calls the gateway's own routes. */
export function withAdminToken(command: Command): Command {
  return command.option(
    '--admin-token-file <file>',
    'a file with a token of the gateway, - for standard input (or PAYBOX_ADMIN_TOKEN)',
  );
}

/** Adds `--box-token-file`, for a command that talks to running boxes. */
export function withBoxToken(command: Command): Command {
  return command.option(
    '--box-token-file <file>',
    'a file with http.token of the boxes that run, - for standard input (or PAYBOX_BOX_TOKEN)',
  );
}

/** Adds the options of a command that acts as partner and admin of a running gateway. */
export function withGatewayAccess(command: Command): Command {
  return withAdminToken(
    withAuthority(command)
      .option('--username <name>', "the partner's user name (default: asked from the gateway)")
      .option('--password-file <file>', 'a file with its password, - for standard input')
      .option('--account <number>', 'bank account')
      .option('--bank <code>', 'bank code')
      .option('--holder <name>', 'account holder'),
  );
}

/** The option of commands that serve, for `endWithParent`. */
export const STAYING = [
  DETACH,
  'keeps running when the program that started it (npx, npm, a test runner) ends; without it both end (on Linux)',
] as const;
